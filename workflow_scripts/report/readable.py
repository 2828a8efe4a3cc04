"""The tables to read, Markdown and LaTeX, what the screen shows of them, and what a reader must know of them."""

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from workflow_scripts.core.tables import TESTS
from workflow_scripts.divergence.results import divergence_lines
from workflow_scripts.plot.labels import MEASURE_NAMES, SPLIT_NAMES
from workflow_scripts.report.table import Row, Scored
from workflow_scripts.report.verdicts import Verdict
from workflow_scripts.score.fid import Fids, distance

NONE = "–"
HEAD = [
    "generator", "split", "prompts", "distractors", "n", "R-precision", "adjective", "sampled", "balanced", "blind",
    "oracle", "oracle adjective", "FID",
]  # fmt: skip
LEFT_ALIGNED = {"generator", "split", "prompts", "distractors", "divergence from train"}
# By ``score.chunking``.
CHUNKS = {"even": "chunks", "published": "equal chunks (as published, without the remainder)"}
# By ``judge.train_on``.
JUDGE_HAS_SEEN = {
    "train": "has seen train alone",
    "half": "has seen train and the half of the test images that is not judged",
    "all": "has seen all images, the judged ones too",
}
# What the screen shows fits into 80 columns; its table has at most 12 lines.
SCREEN, MOST_GENERATORS = 80, 9
SHORT = {"exact": "R-precision", "adjective": "adj. accuracy"}
MEASURED = (
    "R-precision: how often a judge ranks the caption of a generated image first among the candidates; adjective"
    " accuracy: how often it ranks it above its copies with other adjectives. Seen captions have pairs of the training"
    " captions, unseen ones a held-out pair, swapped ones a held-out pair in place of a seen one."
)
# Rows of table.csv by generator and split.
Main = dict[str, dict[str, Row]]
# Marks in table.md what the screen shows.
HEADLINES = "<!-- headlines -->\n```text\n{}\n```\n<!-- /headlines -->\n"
LATEX = {
    "\\": r"\textbackslash{}",
    "_": r"\_",
    "%": r"\%",
    "&": r"\&",
    "#": r"\#",
    "±": r"$\pm$",
    "–": "--",
    "<": "$<$",
    "−": "$-$",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "~": r"\textasciitilde{}",
    "^": r"\^{}",
}


def percent(value: float | None, low: float | None = None, high: float | None = None) -> str:
    """Return ``61.2 [58.9, 63.4]``, or ``61.2`` without an interval; a dash without a value."""
    if value is None:
        return NONE
    ends = "" if low is None or high is None else f" [{100 * low:.1f}, {100 * high:.1f}]"
    return f"{100 * value:.1f}{ends}"


def exact(row: Row | None, name: str = "exact") -> str:
    return percent(row[name], row[f"{name}_low"], row[f"{name}_high"]) if row else NONE


def _fid(scored: Scored, fids: Fids) -> str:
    """Return the Fréchet distances beside a score that is compared with others."""
    fid = distance(fids, scored.generator, scored.split) if scored.main else ""
    even = distance(fids, scored.generator, scored.split, balanced=True) if fid else ""
    return (f"{fid} (balanced {even})" if even else fid) or NONE


def score_table(scores: Sequence[Scored], rows: Sequence[Row], fids: Fids) -> pd.DataFrame:
    """Return the cells of one composition: a row a score by the trained judge, the oracle's and the FID in columns.

    Columns that are the same everywhere, dashes or ``original``, are dropped.
    """
    oracle = {(s.generator, *s.place): row for s, row in zip(scores, rows, strict=True) if not s.trained}
    cells = []
    for scored, row in zip(scores, rows, strict=True):
        if not scored.trained or scored.part:
            continue
        balance = scored.about.get("balance")
        unbalanced = " (no cut)" if balance and not balance["cut"] and row["n"] else ""
        by_oracle = oracle.get((row["generator"], *scored.place))
        deviation = "" if row["sampled_std"] is None else f" ± {100 * row['sampled_std']:.1f}"
        cells.append([
            row["generator"], row["split"].removeprefix("test_"), row["prompts"], row["distractors"], f"{row['n']:,}",
            exact(row), exact(row, "adjective"), percent(row["sampled_mean"]) + deviation,
            exact(row, "balanced") + unbalanced, percent(row["blind_control"]), exact(by_oracle),
            exact(by_oracle, "adjective"), _fid(scored, fids),
        ])  # fmt: skip
    table = pd.DataFrame(cells, columns=HEAD)
    return table.loc[:, ~table.isin([NONE, "original"]).all()]


def divergence_table(measured: pd.DataFrame) -> pd.DataFrame:
    """Return the cells of the divergences of one composition, which do not depend on the generator."""
    cells = [
        [name, *(f"{cell[0]} (random {cell[1]})" if cell else NONE for cell in line)]
        for name, line in divergence_lines(measured, "prompts")
    ]
    return pd.DataFrame(cells, columns=["divergence from train", *(SPLIT_NAMES[split] for split in TESTS)])


def gap_lines(rows: Iterable[Row]) -> list[str]:
    """Return a line for each generator and split on how far it falls from seen. rows: of ``comparisons.csv``."""
    lines = []
    for row in rows:
        generator, _, split = row["a"].partition(" ")
        if row["kind"] == "fall" and row["difference"] is not None:
            kind = "the same captions of seen" if split == "test_swapped" else "seen"
            points = percent(row["difference"], row["low"], row["high"])
            measure = MEASURE_NAMES[row["measure"]]
            lines.append(f"{generator}: {measure} on {split.removeprefix('test_')} minus {kind}: {points}.")
    return lines


def _balance_remark(score: Scored) -> str | None:
    balance = score.about.get("balance")
    if not balance or not score.about["judged"]:
        return None
    if not balance["cut"]:
        return f"not balanced ({balance['rule']})."
    reduced = {pair: n for pair, n in balance["cut"].items() if n["kept"] < n["of"]}
    if not reduced:
        return f"balanced already: no pair is above the cut ({balance['rule']})."
    return ", ".join(f"{pair} {n['of']} to {n['kept']}" for pair, n in reduced.items()) + f"; {balance['rule']}."


def remarks(score: Scored) -> Iterator[str]:
    """Yield what concerns one score alone."""
    if balance := _balance_remark(score):
        yield balance
    for kind in ("missing", "unreadable"):
        if names := score.about[kind]:
            yield f"{len(names):,} images are {kind} and not scored: they are named in summary.json."
    pool = score.about["pool"]
    few = pool["entries_with_fewer_than_candidates"]
    # The row of all captions of test_seen covers its swapped captions.
    if few and (score.split, score.about["prompts"]) != ("test_seen", "swapped"):
        yield (
            f"{few:,} entries have fewer than {score.summary['candidates'] - 1} eligible captions (at least"
            f" {pool['eligible_least']:,})."
        )


def remark_lines(scores: Iterable[Scored]) -> list[str]:
    """Return a line for each remark, with all generators that it concerns."""
    generators: dict[str, list[str]] = {}
    for score in scores:
        where = score.split.removeprefix("test_")
        if score.about["distractors"] != "original":
            where += f", {score.about['distractors']} distractors"
        for text in remarks(score):
            generators.setdefault(f"{where}: {text}", []).append(score.generator)
    return [f"{', '.join(dict.fromkeys(names))}; {text}" for text, names in generators.items()]


def notes(scores: Sequence[Scored]) -> list[str]:
    """Return what a reader of one composition's table must know, a line each; the first is about the judge."""
    trained = [score for score in scores if score.trained and not score.part]
    about = trained[0].summary
    seen = JUDGE_HAS_SEEN[about["train_on"]]
    if about.get("judge_epochs") == 0:
        seen = "was taken as it was given (judge.epochs: 0)"
    oracle = "; oracle: the score by a judge that knows what was drawn" if any(not s.trained for s in scores) else ""
    several = len(trained[0].by_judge) > 1
    judges = f"The judge is {about['judge']} ({about['judge_hash']})"
    if several:
        judges = f"Scores are means over {len(trained[0].by_judge)} judges, {about['judge']} with different seeds"
    levels = [score.about["adjective_chance"] for score in trained if score.about["adjective_chance"] is not None]
    chances = " to ".join(dict.fromkeys(percent(level) for level in (min(levels), max(levels)))) if levels else NONE
    lines = [
        f"{judges}, {'each of which' if several else 'which'} {seen}. R-precision is in percent, exact, with"
        f" 95 % intervals over {'images, pairs and judges' if several else 'images and pairs'};"
        f" {about['candidates']} candidates; ties"
        f" {'are broken at random' if about['ties'] == 'random' else 'count as won'}.",
        "adjective: adjective accuracy, how often the judge ranks the prompt above its copies with every other ranked"
        f" adjective of the noun; chance is {chances} %.",
        f"sampled: mean and standard deviation over {CHUNKS[about.get('chunking', 'even')]} of sampled hits; blind: the"
        f" score if every image were the mean image{oracle}.",
    ]
    if about["images_without_class"]:
        lines.append(
            f"{about['images_without_class']} judged images have no class: each is its own, and distractors may be true"
            " of the image."
        )
    lines += remark_lines(trained)
    if truncated := about.get("truncated_captions"):
        lines.append(f"{truncated:,} captions are longer than the judge reads, and cut.")
    return lines


def _aligned(table: pd.DataFrame, left: str, right: str) -> list[str]:
    return [left if name in LEFT_ALIGNED else right for name in table.columns]


def markdown_table(table: pd.DataFrame) -> str:
    return table.to_markdown(index=False, colalign=_aligned(table, "left", "right"), disable_numparse=True)


def latex_text(text: str) -> str:
    return "".join(LATEX.get(letter, letter) for letter in text)


def main_scores(scores: Sequence[Scored], rows: Sequence[Row]) -> Main:
    """Return the rows of table.csv that are compared with others, by generator and split."""
    main: Main = {}
    for scored, row in zip(scores, rows, strict=True):
        if scored.main:
            main.setdefault(scored.generator, {})[scored.split] = row
    return main


def shortened(name: str, ends: int) -> str:
    """Return a name without its middle if that is shorter than the mark in its place and ``ends`` letters beside it."""
    return name if len(name) <= 2 * ends else f"{name[:ends]}…{name[1 - ends :]}"


def headlines(dataset: str, compositions: Mapping[str, tuple[Main, Sequence[Verdict]]]) -> str:
    """Return what the screen shows: a table with a row a generator, both scores by split, and the verdicts.

    compositions: ``main_scores`` and the verdicts of each.
    """
    names = list(dict.fromkeys(name for main, _ in compositions.values() for name in main))
    cells: dict[str, list[str]] = {"\ngenerator": [shortened(name, 7) for name in names[:MOST_GENERATORS]]}
    for composition, (main, _) in compositions.items():
        for measure, words in SHORT.items():
            cells[f"{composition}\n{words}"] = [
                " ".join(f"{percent(main.get(name, {}).get(split, {}).get(measure)):>4}" for split in TESTS)
                for name in names[:MOST_GENERATORS]
            ]
    aligned = ["left", *["right"] * (len(cells) - 1)]
    table = pd.DataFrame(cells).to_markdown(index=False, tablefmt="simple", colalign=aligned, disable_numparse=True)
    about = f"{dataset}, in percent, on seen, unseen and swapped captions"
    if len(names) > MOST_GENERATORS:
        about += f"; {len(names) - MOST_GENERATORS} more generators in table.md"
    lines = []
    for composition, (_, verdicts) in compositions.items():
        kinds = dict.fromkeys(verdict.word for verdict in verdicts)
        by_word = [f"{word}: {', '.join(v.generator for v in verdicts if v.word == word)}" for word in kinds]
        line = f"- {composition}: {'; '.join(by_word) or 'no verdict'}."
        lines.append(textwrap.fill(line, SCREEN, subsequent_indent="  ", break_on_hyphens=False))
    return HEADLINES.format("\n\n".join([textwrap.fill(f"{about}:", SCREEN), table, "\n".join(lines)]))


def latex_table(title: str, main: Main, about: str) -> str:
    """Return a table for booktabs with a row a generator: both scores on each split with their intervals.

    about: what its caption says of the judge.
    """
    caption = f"{title}. {MEASURED} {about}"

    def cell(row: Row | None, measure: str) -> str:
        value, _, ends = exact(row, measure).partition(" ")
        # Stacked on the value's line, which is the name's.
        stacked = rf"\begin{{tabular}}[t]{{@{{}}c@{{}}}}{value}\\{{\scriptsize {ends}}}\end{{tabular}}"
        return stacked if ends else latex_text(value)

    lines = [
        " & ".join([latex_text(name), *(cell(of.get(split), m) for m in MEASURE_NAMES for split in TESTS)])
        for name, of in main.items()
    ]
    splits = " & ".join(SPLIT_NAMES[split] for split in TESTS)
    heads = " & ".join(rf"\multicolumn{{3}}{{c}}{{{words}}}" for words in MEASURE_NAMES.values())
    label = "tab:" + re.sub("[^a-z0-9]+", "-", title.lower())
    return "\n".join([
        r"\begin{table}", r"\centering", r"\setlength{\tabcolsep}{4pt}",
        rf"\caption{{{latex_text(caption)}}}", rf"\label{{{label}}}", r"\par\smallskip",
        r"\begin{tabular}{lcccccc}", r"\toprule", rf" & {heads} \\", r"\cmidrule(lr){2-4}\cmidrule(lr){5-7}",
        rf"generator & {splits} & {splits} \\", r"\midrule", *(rf"{line} \\[2pt]" for line in lines), r"\bottomrule",
        r"\end{tabular}", r"\end{table}", "",
    ])  # fmt: skip


@dataclass(frozen=True)
class Readable:
    """One composition to read.

    Attributes:
        verdicts: a line for each generator, and warnings.
        scores: cells, as ``score_table`` returns them.
        divergences: cells, as ``divergence_table`` returns them; no rows if nothing was measured.
        gaps: how far generators fall from seen, a line each.
        notes: a line each; the first is about the judge.
    """

    title: str
    verdicts: Sequence[str]
    scores: pd.DataFrame
    divergences: pd.DataFrame
    gaps: Sequence[str]
    notes: Sequence[str]

    def markdown(self) -> str:
        tables = [table for table in (self.scores, self.divergences) if len(table)]
        lines = "\n".join(f"- {text}" for text in [*self.gaps, *self.notes])
        first = "\n".join(f"- {text}" for text in self.verdicts)
        return (
            "\n\n".join([f"## {self.title}", *([first] if first else []), *map(markdown_table, tables), lines]) + "\n"
        )
