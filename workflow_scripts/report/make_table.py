"""The table of scores and the comparisons, from what the stage ``score`` wrote; prints the readable table.

A row of ``table.csv`` is one score: a generator's images of one split, by one judge. ``prompts``: ``pairs`` (captions
with a pair) or ``all``, as the config says, and ``swapped`` for captions that were swapped: all of test_swapped, and
of test_seen, beside the rest, those that test_swapped swaps. ``sampled_mean`` and ``sampled_std`` are not balanced.
``balanced`` weighs the entries of test_swapped; where there are too few pairs to cut any it equals ``exact``, and
the readable tables say so. ``atom_divergence``, ``compound_divergence`` (of pairs) and ``subgraph_divergence`` are
those of train and the split's prompts; they do not depend on generator and judge, and the readable tables say them
once.

A row of ``comparisons.csv`` is a minus b by the trained judge, with original distractors. Generators of one split
are compared on the entries that both have (n of them); ``G test_swapped`` against ``G test_seen`` on the same
captions; ``G test_unseen`` against ``G test_seen``, which are of different images, unpaired (n: entries of a).

``metrics.json`` holds the exact scores that are compared, in percent, for ``dvc metrics``.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from workflow_scripts.core import cli
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import read_json, read_table, write_json, write_text
from workflow_scripts.core.seeds import rng
from workflow_scripts.core.tables import SCORES, TESTS
from workflow_scripts.divergence import results as divergences
from workflow_scripts.divergence.results import beside_score, divergence_lines, divergence_note, read_divergences
from workflow_scripts.plot.labels import SPLIT_NAMES
from workflow_scripts.report.fid import Fids, distance, fid_note, read_fids
from workflow_scripts.stats import interval
from workflow_scripts.stats.interval import Estimate
from workflow_scripts.stats.r_precision import sampled

COLUMNS = [
    "dataset", "composition", "generator", "split", "prompts", "n", "images", "exact", "exact_low", "exact_high",
    "sampled_mean", "sampled_std", "balanced", "balanced_low", "balanced_high", "blind_control", "judge", "judge_hash",
    "candidates", "class_rule", "distractors", "seed", *divergences.COLUMNS,
]  # fmt: skip
COMPARISONS = ["dataset", "composition", "a", "b", "split", "difference", "low", "high", "n"]
KEYS = ["image_id", "caption_id", "draw"]
DIGITS = 6
# In the notes, by ``score.chunking``.
CHUNKS = {"even": "chunks", "published": "equal chunks (as published, without the remainder)"}
# What score_oracle calls its judge.
ORACLE = "oracle"


@dataclass(frozen=True)
class Scored:
    """One score: what its summary says of it, its generator's whole summary, and its entries."""

    about: dict[str, Any]
    summary: dict[str, Any]
    entries: pd.DataFrame

    @property
    def trained(self) -> bool:
        return self.summary["judge"] != ORACLE

    @property
    def main(self) -> bool:
        """Whether it is compared with others: the trained judge, all prompts, original distractors."""
        whole = self.about["split"] == "test_swapped" or self.about["prompts"] != "swapped"
        return self.trained and whole and self.about["distractors"] == "original"

    @property
    def place(self) -> tuple[str, str, str]:
        """What two judges' scores of the same entries share, generators aside."""
        return self.about["split"], self.about["prompts"], self.about["distractors"]


def load_scores(folder: Path, swapped: pd.DataFrame) -> list[Scored]:
    """The scores in a folder that the stage ``score`` wrote. swapped: image_id, caption_id of swapped captions.

    Raises UserError where a table does not hold the entries that its summary counts.
    """
    summary = read_json(folder / "summary.json")
    result = []
    for about in summary["scores"]:
        file = folder / f"{about['set']}.parquet"
        entries = read_table(file, SCORES)
        if about["split"] == "test_seen" and about["prompts"] == "swapped":
            names = pd.MultiIndex.from_frame(swapped)
            entries = entries[pd.MultiIndex.from_frame(entries[["image_id", "caption_id"]]).isin(names)]
        if len(entries) != about["judged"]:
            raise UserError(f"{file}: {len(entries)} entries, but summary.json counts {about['judged']}: score anew")
        result.append(Scored(about, summary, entries.reset_index(drop=True)))
    return result


def estimate(scored: Scored, weights: np.ndarray, resamples: int) -> Estimate | None:
    """The exact score and its interval; None without entries. Equal images are resampled alike in all rows."""
    if scored.entries.empty:
        return None
    about = scored.summary
    stream = rng(about["seed"], "interval", about["dataset"], about["composition"])
    entries = scored.entries
    return interval.share(
        entries["image_id"].to_numpy(), entries["expected_top1"].to_numpy(), weights, resamples, stream
    )


def table_row(scored: Scored, measured: pd.DataFrame, chunks: int, resamples: int) -> dict[str, Any]:
    """A row of ``table.csv``, by COLUMNS. measured: as ``read_divergences`` gives it."""
    about, summary, entries = scored.about, scored.summary, scored.entries
    exact = estimate(scored, np.ones(len(entries)), resamples)
    balanced = None
    if about["split"] == "test_swapped":
        balanced = estimate(scored, entries["weight"].to_numpy(), resamples)
    means = sampled(entries["hit"], chunks, summary["seed"], summary.get("chunking", "even"))
    return {
        **{name: summary[name] for name in ("dataset", "composition", "generator")},
        **{name: about[name] for name in ("split", "prompts")},
        "n": len(entries),
        "images": entries["image_id"].nunique(),
        **_three("exact", exact),
        "sampled_mean": means[0] if means else None,
        "sampled_std": means[1] if means else None,
        **_three("balanced", balanced),
        "blind_control": about.get("blind_control"),
        **{name: summary[name] for name in ("judge", "judge_hash", "candidates", "class_rule")},
        "distractors": about["distractors"],
        "seed": summary["seed"],
        **beside_score(measured, about["split"], about["prompts"]),
    }


def _three(name: str, found: Estimate | None) -> dict[str, float | None]:
    return {
        name: found.value if found else None,
        f"{name}_low": found.low if found else None,
        f"{name}_high": found.high if found else None,
    }


def comparison(a: Scored, names: tuple[str, str], found: Estimate | None, n: int) -> dict[str, Any]:
    """A row of ``comparisons.csv``: a minus another, of n entries."""
    return {
        **{name: a.summary[name] for name in ("dataset", "composition")},
        "a": names[0],
        "b": names[1],
        "split": a.about["split"],
        **dict(zip(("difference", "low", "high"), _three("", found).values(), strict=True)),
        "n": n,
    }


def difference_stream(a: Scored, b: Scored) -> np.random.Generator:
    """The randomness of a difference: the same for all generators, so that images are resampled alike."""
    about = a.summary
    return rng(about["seed"], "difference", about["dataset"], about["composition"], *a.place, *b.place)


def unpaired(a: Scored, b: Scored, resamples: int) -> tuple[Estimate | None, int]:
    """a minus b, and how many entries a has."""
    if a.entries.empty or b.entries.empty:
        return None, len(a.entries)
    parts = [s.entries[c].to_numpy() for s in (a, b) for c in ("image_id", "expected_top1")]
    return interval.unpaired_difference(*parts, resamples, difference_stream(a, b)), len(a.entries)


def paired(scores: Sequence[Scored], resamples: int) -> Iterator[tuple[int, int, Estimate | None, int]]:
    """i, j, scores[i] minus scores[j] and how many entries both have, for all i < j.

    Most generators have an image for every prompt: those with the same entries are resampled together.
    """
    alike: dict[bytes, list[int]] = {}
    for number, score in enumerate(scores):
        entries = pd.util.hash_pandas_object(score.entries[KEYS], index=False).to_numpy().tobytes()
        alike.setdefault(entries, []).append(number)
    found: dict[tuple[int, int], Estimate] = {}
    for numbers in alike.values():
        images = scores[numbers[0]].entries["image_id"].to_numpy()
        if len(images) and len(numbers) > 1:
            values = np.stack([scores[number].entries["expected_top1"] for number in numbers], axis=1)
            stream = difference_stream(scores[numbers[0]], scores[numbers[1]])
            of_these = interval.paired_differences(images, values, resamples, stream)
            found |= {(numbers[i], numbers[j]): estimate for (i, j), estimate in of_these.items()}
    for i, j in combinations(range(len(scores)), 2):
        if (i, j) in found:
            yield i, j, found[i, j], len(scores[i].entries)
            continue
        both = scores[i].entries.merge(scores[j].entries, on=KEYS)
        values = both[["expected_top1_x", "expected_top1_y"]].to_numpy()
        stream = difference_stream(scores[i], scores[j])
        some = interval.paired_differences(both["image_id"].to_numpy(), values, resamples, stream) if len(both) else {}
        yield i, j, some.get((0, 1)), len(both)


def comparisons(scores: Sequence[Scored], resamples: int) -> list[dict[str, Any]]:
    """All comparisons of one composition: generators by split, then each generator's splits against seen."""
    chosen = {(s.summary["generator"], s.about["split"]): s for s in scores if s.main}
    generators = list(dict.fromkeys(generator for generator, _ in chosen))
    rows = []
    for split in TESTS:
        serving = [name for name in generators if (name, split) in chosen]
        for i, j, found, n in paired([chosen[name, split] for name in serving], resamples):
            rows.append(comparison(chosen[serving[i], split], (serving[i], serving[j]), found, n))
    for generator in generators:
        seen = chosen.get((generator, "test_seen"))
        for split in ("test_swapped", "test_unseen"):
            score = chosen.get((generator, split))
            if seen and score:
                if split == "test_swapped":
                    [(_, _, found, n)] = paired([score, seen], resamples)
                else:
                    found, n = unpaired(score, seen, resamples)
                rows.append(comparison(score, (f"{generator} {split}", f"{generator} test_seen"), found, n))
    return rows


def metrics(scores: Iterable[Scored], rows: Iterable[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """The exact scores that are compared, in percent with two decimals, by generator and split. rows: of ``scores``."""
    found: dict[str, dict[str, float]] = {}
    for score, row in zip(scores, rows, strict=True):
        if score.main and row["exact"] is not None:
            split = row["split"].removeprefix("test_")
            found.setdefault(row["generator"], {})[split] = round(100 * row["exact"], 2)
    return found


def as_csv(rows: Sequence[dict[str, Any]], columns: list[str]) -> str:
    """Floats with six decimals, null as nothing."""
    table = pd.DataFrame(rows, columns=columns)
    for name in columns:
        if not table[name].map(lambda value: isinstance(value, float) or value is None).all():
            continue
        # -0.0000001 is 0.
        table[name] = table[name].astype(float).round(DIGITS) + 0.0
    return table.to_csv(index=False, float_format=f"%.{DIGITS}f", lineterminator="\n")


def percent(value: float | None, low: float | None = None, high: float | None = None) -> str:
    """``61.2 [58.9, 63.4]``, or without the interval where there is none; a dash without a value."""
    if value is None:
        return "–"
    ends = "" if low is None or high is None else f" [{100 * low:.1f}, {100 * high:.1f}]"
    return f"{100 * value:.1f}{ends}"


HEAD = [
    "generator", "split", "prompts", "distractors", "n", "R-precision", "sampled", "balanced", "blind", "oracle", "FID",
]  # fmt: skip
WORDS = ("generator", "split", "prompts", "distractors")


def readable_rows(rows: Sequence[tuple[Scored, dict[str, Any]]], fids: Fids) -> list[list[str]]:
    """The cells under HEAD of one composition; the oracle's score and the FID stand beside the trained judge's."""
    oracle = {(row["generator"], *s.place): row for s, row in rows if not s.trained}
    result = []
    for scored, row in rows:
        if not scored.trained:
            continue
        cut = scored.about.get("balance")
        balanced = percent(row["balanced"], row["balanced_low"], row["balanced_high"])
        if cut and not cut["cut"] and row["n"]:
            balanced += " (no cut)"
        other = oracle.get((row["generator"], *scored.place))
        fid = distance(fids, row["generator"], row["split"]) if scored.main else ""
        if fid and (even := distance(fids, row["generator"], row["split"], balanced=True)):
            fid += f" (balanced {even})"
        deviation = "" if row["sampled_std"] is None else f" ± {100 * row['sampled_std']:.1f}"
        result.append(
            [
                row["generator"],
                row["split"].removeprefix("test_"),
                row["prompts"],
                row["distractors"],
                f"{row['n']:,}",
                percent(row["exact"], row["exact_low"], row["exact_high"]),
                percent(row["sampled_mean"]) + deviation,
                balanced,
                percent(row["blind_control"]),
                percent(other["exact"], other["exact_low"], other["exact_high"]) if other else "–",
                fid or "–",
            ]
        )
    return result


def notes(scores: Sequence[Scored]) -> list[str]:
    """What a reader of one composition's table must know, a line each."""
    trained = [s for s in scores if s.trained]
    about = trained[0].summary
    seen = {
        "train": "has seen train alone",
        "half": "has seen train and the half of the test images that is not judged",
        "all": "has seen all images, the judged ones too",
    }[about["train_on"]]
    if about.get("judge_epochs") == 0:
        seen = "was taken as it was given (judge.epochs: 0)"
    lines = [
        f"The judge is {about['judge']} ({about['judge_hash']}), which {seen}. R-precision is in percent, exact, with"
        f" 95 % bootstrap intervals over images; {about['candidates']} candidates; ties"
        f" {'are broken at random' if about['ties'] == 'random' else 'count as won'}.",
        f"sampled: mean and standard deviation over {CHUNKS[about.get('chunking', 'even')]} of sampled hits; blind: the"
        " score if every image were the mean image.",
    ]
    if len(trained) < len(scores):
        lines[1] = f"{lines[1][:-1]}; oracle: the score by a judge that knows what was drawn."
    if about["images_without_class"]:
        lines.append(
            f"{about['images_without_class']} judged images have no class: each is its own, and distractors may be true"
            " of the image."
        )
    # Generators of which the same is to be said share a line.
    said: dict[str, list[str]] = {}
    for score in trained:
        where = score.about["split"].removeprefix("test_")
        if score.about["distractors"] != "original":
            where += f", {score.about['distractors']} distractors"
        for text in remarks(score):
            said.setdefault(f"{where}: {text}", []).append(score.summary["generator"])
    for text, generators in said.items():
        lines.append(f"{', '.join(dict.fromkeys(generators))}; {text}")
    if cut := about.get("truncated_captions"):
        lines.append(f"{cut:,} captions are longer than the judge reads, and cut.")
    return lines


def remarks(score: Scored) -> list[str]:
    """What is to be said of one score alone."""
    about = score.about
    result = []
    cut = about.get("balance")
    if cut and about["judged"]:
        if not cut["cut"]:
            result.append(f"not balanced ({cut['rule']}).")
        elif less := {pair: n for pair, n in cut["cut"].items() if n["kept"] < n["of"]}:
            parts = ", ".join(f"{pair} {n['of']} to {n['kept']}" for pair, n in less.items())
            result.append(f"{parts}; {cut['rule']}.")
        else:
            result.append(f"balanced already: no pair is above the cut ({cut['rule']}).")
    for kind in ("missing", "unreadable"):
        if names := about[kind]:
            result.append(f"{len(names):,} images are {kind} and not scored: they are named in summary.json.")
    few = about["pool"]["entries_with_fewer_than_candidates"]
    # Of test_seen's swapped captions the same was said with all of its captions.
    if few and (about["split"], about["prompts"]) != ("test_seen", "swapped"):
        result.append(
            f"{few:,} entries have fewer than {score.summary['candidates'] - 1} eligible captions (at least"
            f" {about['pool']['eligible_least']:,})."
        )
    return result


# Divergence does not depend on the generator: it has a table of its own.
APART = ["divergence from train", *(SPLIT_NAMES[split] for split in TESTS)]


def divergence_cells(measured: pd.DataFrame) -> list[list[str]]:
    """The cells under APART of one composition."""
    return [
        [name, *(f"{cell[0]} (random {cell[1]})" if cell else "–" for cell in cells)]
        for name, cells in divergence_lines(measured, "prompts")
    ]


def columns_to_show(rows: Sequence[Sequence[str]]) -> list[int]:
    """Numbers of the columns of HEAD that say something in some row."""
    return [c for c in range(len(HEAD)) if any(row[c] not in ("–", "original") for row in rows)]


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]], words: Sequence[bool]) -> str:
    """words: of each column, whether it reads from the left."""
    width = [max(len(row[c]) for row in [head, *rows]) for c in range(len(head))]

    def line(row: Sequence[str]) -> str:
        parts = [v.ljust(w) if left else v.rjust(w) for v, w, left in zip(row, width, words, strict=True)]
        return "| " + " | ".join(parts) + " |"

    rule = "|" + "|".join("-" * (w + 1) + ("-" if left else ":") for w, left in zip(width, words, strict=True)) + "|"
    return "\n".join([line(head), rule, *map(line, rows)])


def as_markdown(
    title: str,
    rows: Sequence[Sequence[str]],
    lines: Sequence[str],
    against: Sequence[str],
    apart: Sequence[Sequence[str]],
) -> str:
    """apart: as ``divergence_cells`` gives them."""
    shown = columns_to_show(rows)
    head = [HEAD[c] for c in shown]
    parts = [f"## {title}", markdown_table(head, [[row[c] for c in shown] for row in rows], [h in WORDS for h in head])]
    if apart:
        parts.append(markdown_table(APART, apart, [True, *[False] * (len(APART) - 1)]))
    parts.append("\n".join(f"- {text}" for text in [*against, *lines]))
    return "\n\n".join(parts) + "\n"


def latex_text(text: str) -> str:
    escape = {"_": r"\_", "%": r"\%", "&": r"\&", "#": r"\#", "±": r"$\pm$", "–": "--", "<": "$<$"}
    return "".join(escape.get(letter, letter) for letter in text)


def latex_table(caption: str, align: str, head: Sequence[str], body: Sequence[str]) -> str:
    """A table for ``\\usepackage{booktabs}``. body: its lines."""
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{latex_text(caption)}}}",
            rf"\begin{{tabular}}{{{align}}}",
            r"\toprule",
            latex_row(head),
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def latex_row(cells: Iterable[str]) -> str:
    return " & ".join(map(latex_text, cells)) + r" \\"


def as_latex(
    title: str, rows: Sequence[Sequence[str]], lines: Sequence[str], apart: Sequence[Sequence[str]], about_apart: str
) -> str:
    """The scores, with a rule between generators, and below them the divergences."""
    shown = columns_to_show(rows)
    body: list[str] = []
    for number, row in enumerate(rows):
        if number and row[0] != rows[number - 1][0]:
            body.append(r"\midrule")
        body.append(latex_row(row[c] for c in shown))
    head = [HEAD[c] for c in shown]
    tables = [latex_table(f"{title}. {lines[0]}", "".join("l" if h in WORDS else "r" for h in head), head, body)]
    if apart:
        align = "l" + "r" * (len(APART) - 1)
        tables.append(latex_table(f"{title}. {about_apart}", align, APART, list(map(latex_row, apart))))
    return "\n".join(tables)


def against_seen(rows: Iterable[dict[str, Any]]) -> list[str]:
    """Lines on how far each generator falls from seen."""
    result = []
    for row in rows:
        generator, _, split = row["a"].partition(" ")
        if split and row["difference"] is not None:
            kind = "the same captions of seen" if split == "test_swapped" else "seen"
            points = percent(row["difference"], row["low"], row["high"])
            result.append(f"{generator}: {split.removeprefix('test_')} minus {kind}: {points}.")
    return result


def main(options: argparse.Namespace) -> None:
    table: list[dict[str, Any]] = []
    differences: list[dict[str, Any]] = []
    markdown: list[str] = []
    latex: list[str] = []
    figures: dict[str, dict[str, dict[str, float]]] = {}
    for composition in options.compositions:
        folder = options.results / options.dataset / composition
        swapped = pd.read_parquet(folder / "swapped.parquet", columns=["image_id", "caption_id"])
        scores: list[Scored] = []
        for generator in options.generators:
            found = load_scores(folder / "scores" / generator, swapped)
            if generator in options.oracle:
                found += load_scores(folder / "scores_oracle" / generator, swapped)
            # By split; the sort is stable, so that the trained judge stays before the oracle.
            scores += sorted(found, key=lambda s: (TESTS.index(s.about["split"]), s.place[1] == "swapped", s.place[2]))
        measured = read_divergences(folder)
        rows = [table_row(score, measured, options.chunks, options.bootstrap) for score in scores]
        differences_here = comparisons(scores, options.bootstrap)
        table += rows
        figures[composition] = metrics(scores, rows)
        differences += differences_here
        title = f"{options.dataset}, {composition}"
        fids = read_fids(folder, options.fid)
        cells, lines = readable_rows(list(zip(scores, rows, strict=True)), fids), notes(scores)
        apart, about_apart = divergence_cells(measured), divergence_note(measured)
        lines += filter(None, [about_apart, fid_note(fids)])
        markdown.append(as_markdown(title, cells, lines, against_seen(differences_here), apart))
        latex.append(as_latex(title, cells, lines, apart, about_apart))
    readable = "\n".join(markdown)
    write_text(as_csv(table, COLUMNS), options.output / "table.csv")
    write_text(as_csv(differences, COMPARISONS), options.output / "comparisons.csv")
    write_json({options.dataset: figures}, options.output / "metrics.json")
    write_text("\n".join(latex), options.output / "table.tex")
    write_text(readable, options.output / "table.md")
    print(readable, end="")


def arguments() -> argparse.ArgumentParser:
    parser = cli.parser(__doc__)
    parser.add_argument("--results", type=Path, required=True, help="folder of the artifacts")
    parser.add_argument("--dataset", required=True)
    parser.add_argument("--compositions", nargs="+", required=True)
    parser.add_argument("--generators", nargs="+", required=True, help="in the order of the rows")
    parser.add_argument("--oracle", nargs="*", default=[], help="generators that the oracle has scored too")
    parser.add_argument("--fid", nargs="*", default=[], help="generators with a Fréchet distance")
    parser.add_argument("--chunks", type=int, default=10, help="of the sampled score")
    parser.add_argument("--bootstrap", type=cli.resamples, default=2000, help="resamples of an interval")
    parser.add_argument(
        "--output", type=Path, required=True, help="folder of table.csv, .md, .tex, comparisons.csv, metrics.json"
    )
    return parser


if __name__ == "__main__":
    cli.run(main, arguments())
