"""Scores for readers: tables with notes, for the screen, Markdown, LaTeX and HTML."""

import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import pandas as pd

from compclip.core.heldout import heldout_note
from compclip.core.tables import HELD_OUT, TESTS
from compclip.divergence.results import divergence_lines, divergence_note
from compclip.plot.labels import ALPHA, SPLIT_NAMES, interval, p_value, pair_words, percent
from compclip.plot.page import render
from compclip.plot.table_view import NONE, Line, TableCell, View
from compclip.report import verdicts
from compclip.report.comparisons import HELDOUT_SPLITS
from compclip.report.composed import Anchors
from compclip.report.measures import COMPARED, MEASURES
from compclip.report.rows import Place, Row, main_rows, matched_rows, of_kind, of_measure, pivot
from compclip.report.values import ERROR_SOURCES
from compclip.report.verdicts import SEEN_SKILL, composed_of
from compclip.score.health import Health

DIFFERENCES = "comparisons.csv"
# By ``judge.train_on``.
JUDGE_HAS_SEEN = {
    "train": "has seen only train",
    "half": "has seen train and the half of the test images that is not judged",
    "all": "has seen all images, including the judged ones",
}
# Notes after a score's definition; ``{chance}`` and ``{blind}`` are replaced by percentages.
NOTES = {
    "r_precision": "Chance is {chance} %; with every image replaced by the mean image (the blind "
    "control) the judge"
    " reaches {blind} %.",
    "adjective_accuracy": "It tests the pair itself; R-precision also depends on everything else "
    "in an image."
    " Chance is {chance} %.",
}
# How to reduce the error from each source.
REMEDIES = {
    "pairs": "held-out pairs: hold out more (split.heldout.fraction)",
    "images": "images: make more",
    "judges": "judges: train more (judge.seeds)",
    "residual": "single captions: ask for more (split.per_image)",
}
# Generators that lack more than this fraction of a split's images are named first.
MOST_LACKING = 0.01
# The screen's text has at most 80 columns, its table at most 12 lines.
SCREEN, MOST_GENERATORS = 80, 9
# Marks the screen's text in table.md.
HEADLINES = "<!-- headlines -->\n```text\n{}\n```\n<!-- /headlines -->\n"
LATEX = str.maketrans(
    {character: f"\\{character}" for character in "_%&#{}$"}
    | {"\\": r"\textbackslash{}", "±": r"$\pm$", "–": "--", "<": "$<$", "−": "$-$"}
    | {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
)


def _cell(
    of: Mapping[Place, Row], place: Place, pairs: Literal["same", "new"] = "new"
) -> TableCell | None:
    """Return the value at a place with its interval for the same or for new pairs, or its
    deviation.
    """
    row, measure = of.get(place), MEASURES[place[1]]
    if row is None or pd.isna(row["value"]):
        return None
    if deviation := of.get((place[0], f"{measure.name}_sd")):
        return TableCell(measure.text(row["value"]), f"± {measure.text(deviation['value'])}")
    ends = interval(row[f"{pairs}_pairs_low"], row[f"{pairs}_pairs_high"])
    differs = row.get("family") == "primary" and row["p_holm"] < ALPHA
    return TableCell(measure.text(row["value"]), ends, bool(differs))


def _by_split(title: str, rows: pd.DataFrame, columns: Mapping[str, Place], **more: str) -> View:
    """Return a view with a line per generator. ``columns``: places in ``rows``, by heading."""
    table = pivot(rows).items()
    lines = [Line(name, [_cell(of, place) for place in columns.values()]) for name, of in table]
    return View(title, "generator", list(columns), lines, **more)


def balances(trained: pd.DataFrame) -> bool:
    """Return whether balancing changes a score; if not, a column of balanced scores would repeat
    the plain ones.
    """
    swapped = trained[trained["split"] == "test_swapped"].set_index("generator")
    plain, balanced = (
        of_measure(swapped, f"r_precision{end}")["value"] for end in ("", "_balanced")
    )
    return bool((plain.loc[balanced.index] != balanced).any())


def score_views(
    scores: pd.DataFrame, comparisons: pd.DataFrame, fids: Mapping[str, Any]
) -> dict[str, list[View]]:
    """Return the views of one composition by kind. ``scores``, ``comparisons``: rows of these
    files.
    """
    trained, oracle, matched = (
        main_rows(scores),
        main_rows(scores, oracle=True),
        matched_rows(scores),
    )
    comparisons = comparisons.assign(value=comparisons["difference"])
    views = {"composed": [composed_view(trained)]}
    for name, measure in COMPARED.items():
        title, heads = measure.title, {SPLIT_NAMES[split]: split for split in TESTS}
        chance, blind = (
            span(of_measure(trained, of)["value"], percent)
            for of in (f"{name}_chance", measure.blind)
        )
        note = (
            f"{measure.definition} "
            f"{NOTES[name].format(chance=chance, blind=blind)}{ceiling_note(scores, name)}"
        )
        columns = {head: (split, name) for head, split in heads.items()}
        beside = {"seen, matched": ("matched", name)} if len(matched) else {}
        balanced = name == "r_precision" and balances(trained)
        more = {"swapped, balanced": ("test_swapped", f"{name}_balanced")} if balanced else {}
        for kind, view in {
            "scores": _by_split(
                title, pd.concat([trained, matched]), columns | beside | more, note=note
            ),
            "oracle": _by_split(f"{title} by the oracle", oracle, columns | more),
        }.items():
            views.setdefault(kind, []).extend([view] if view.lines else [])
    other = pd.concat([trained, main_rows(scores, distractors="swapped").assign(split="other")])
    columns = {f"{SPLIT_NAMES[split]}, sampled": (split, "r_precision_sampled") for split in TESTS}
    columns["swapped among swapped captions"] = ("other", "r_precision")
    views["other"] = [_by_split("R-precision by other protocols", other, columns)]
    # the published protocol, which has prompts without a pair, has no adjusted score
    if (trained["prompts"] == "pairs").any():
        adjusted = MEASURES["adjective_accuracy_adjusted"]
        columns = {head: (split, adjusted.name) for head, split in heads.items()}
        views["other"].append(_by_split(adjusted.title, trained, columns, note=adjusted.definition))
    return views | {
        "fid": [_fid_view(scores, fids)] if fids else [],
        "between": [_between(comparisons)],
    }


def ceiling_note(scores: pd.DataFrame, name: str) -> str:
    """Return a note on the ceiling that disagreeing captions of an image set, "" if they do not
    disagree.
    """
    ceilings = of_measure(scores, f"{name}_ceiling")["value"]
    if not (ceilings < 1).any():
        return ""
    return (
        " Copies that another caption of the image states are excluded; with them, a random "
        "choice among the stated"
        f" adjectives would reach {span(ceilings, percent)} % (human ceiling)."
    )


def composed_view(trained: pd.DataFrame) -> View:
    """Return the view of what generators draw of seen and of held-out pairs, and compose, over all
    and by split.
    """
    measured = [
        split
        for split in HELDOUT_SPLITS
        if ((trained["split"] == split) & trained["value"].notna()).any()
    ]
    heads = ["draws seen pairs", "draws held-out pairs", "composes"]
    columns = [
        *heads,
        *(f"composes, {SPLIT_NAMES[split]}" for split in measured),
        "composes, new pairs",
    ]
    lines = []
    for generator, rows in pivot(trained).items():
        whole = composed_of(rows)
        if whole is None:
            continue
        shown = [rows.get(SEEN_SKILL), rows.get((HELD_OUT, "draws_held_out_pairs")), whole]
        shown += [composed_of(rows, split) for split in measured]
        cells = [_whole_percent(row) for row in shown]
        new_pairs = interval(whole["new_pairs_low"], whole["new_pairs_high"], 0)
        lines.append(Line(generator, [*cells, TableCell(new_pairs) if new_pairs else None]))
    together = (trained["measure"] == "composes_together").any()
    over = (
        " Those of composes are simultaneous over the generators that are not controls."
        if together
        else ""
    )
    note = (
        f"Draws seen pairs: {MEASURES['draws_seen_pairs'].definition} Draws held-out pairs:"
        f" {MEASURES['draws_held_out_pairs'].definition} Composes: "
        f"{MEASURES['composes'].definition} In brackets 95 %"
        f" intervals for the same pairs and judges; the last column: for new pairs.{over} "
        "Reference and usual pair"
        " have no interval: their values are fixed by definition."
    )
    return View("What is composed", "generator", columns, lines, note)


def _whole_percent(row: Row | None) -> TableCell | None:
    """Return a value in whole percent with its interval for the same pairs."""
    if row is None or pd.isna(row["value"]):
        return None
    return TableCell(
        percent(row["value"], 0), interval(row["same_pairs_low"], row["same_pairs_high"], 0)
    )


def _fid_view(scores: pd.DataFrame, fids: Mapping[str, Any]) -> View:
    """Return the view of each generator's distances by split, and of the numbers of images."""
    columns = {SPLIT_NAMES[split]: (split, "fid") for split in TESTS}
    columns["swapped, balanced"] = ("test_swapped", "fid_balanced")
    about = [
        f"{SPLIT_NAMES[split]}: {of[split]['about']}"
        for split in TESTS
        for of in fids.values()
        if split in of
    ]
    notes = "; ".join(dict.fromkeys(about))
    note = (
        f"FID is the Fréchet distance from the real images of the split. {notes}. Lower is better."
    )
    rows = scores[scores["measure"].isin(("fid", "fid_balanced"))]
    return _by_split("Fréchet distance", rows, columns, note=note)


def _between(comparisons: pd.DataFrame) -> View:
    """Return the view of differences between generators."""
    lines = [
        Line(
            f"{row['a']} − {row['b']}{', images that both have' * (row['kind'] == 'both_made')}",
            [
                TableCell(MEASURES[row["measure"]].title),
                TableCell(SPLIT_NAMES[row["split"]]),
                _cell({(row["split"], row["measure"]): row}, (row["split"], row["measure"])),
                TableCell(p_value(row["p_holm"]) if row["family"] == "primary" else row["family"]),
                TableCell(f"{row['n']:,}"),
            ],
        )
        for row in of_kind(comparisons, "generators", "both_made").to_dict("records")
    ]
    return View(
        "differences",
        "difference",
        ["score", "split", "points", "p (Holm)", "n"],
        lines,
        "",
        DIFFERENCES,
    )


def span(values: pd.Series, text: Callable[[Any], str]) -> str:
    """Return the range of values as text, a dash if there are none."""
    known = values.dropna()
    return " to ".join(dict.fromkeys(map(text, (known.min(), known.max())))) if len(known) else NONE


def error_note(trained: pd.DataFrame) -> str:
    """Return a note on the largest source of the scores' error and its remedy, "" without
    scores.
    """
    rows = of_measure(trained, "r_precision")
    variances = {source: float((rows[f"se_{source}"] ** 2).sum()) for source in ERROR_SOURCES}
    if not (total := sum(variances.values())):
        return ""
    largest = max(variances, key=variances.__getitem__)
    percentage = 100 * variances[largest] / total
    line = (
        f"Over these scores, {percentage:.0f} % of the variance of R-precision is from "
        f"{REMEDIES[largest]}."
    )
    return (
        line
        if trained["judges"].max() > 1
        else f"{line} The error from judges is unknown; list judge.seeds."
    )


def _remarks(score: Mapping[str, Any], candidates: int) -> Iterator[str]:
    """Yield notes on one score. ``score``: an entry of ``scores`` in
    ``scores/J/G/summary.json``.
    """
    balance = score.get("balance")
    if balance and score["judged"]:
        cut = {pair: n for pair, n in balance["cut"].items() if n["kept"] < n["of"]}
        what = ", ".join(
            f"{pair_words(pair)} from {n['of']:,} to {n['kept']:,}" for pair, n in cut.items()
        )
        unchanged = (
            "balanced already: no pair is above the cut" if balance["cut"] else "not balanced"
        )
        yield (
            f"balancing reduces {what} ({balance['rule']})."
            if what
            else f"{unchanged} ({balance['rule']})."
        )
    for kind in ("missing", "unreadable"):
        if names := score[kind]:
            yield (
                f"{len(names):,} images are {kind} and count as wrong: they are named in "
                "summary.json."
            )
    few, least = (
        score["pool"][name] for name in ("entries_with_fewer_than_candidates", "eligible_least")
    )
    # the score of all captions of test_seen covers its swapped captions
    if few and (score["split"], score["prompts"]) != ("test_seen", "swapped"):
        yield (
            f"{few:,} entries have fewer than {candidates - 1} eligible captions (at least "
            f"{least:,})."
        )


def missing_lines(summaries: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a line for each generator that lacks more than 1 % of a split's images."""
    lines = []
    for summary in summaries:
        for score in summary["scores"]:
            lacking = len(score["missing"]) + len(score["unreadable"])
            if lacking > MOST_LACKING * score["judged"] and score["distractors"] == "original":
                of_split = (
                    f"{lacking:,} of {score['judged']:,} images of {SPLIT_NAMES[score['split']]}"
                )
                lines.append(f"{summary['generator']} lacks {of_split}: they count as wrong.")
    return lines


def notes(trained: pd.DataFrame, summaries: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return notes for readers of one composition's scores; the first is about the judge.

    Args:
        trained: the main rows of ``scores.parquet``, by trained judges.
        summaries: ``scores/J/G/summary.json`` of each generator by the first judge.
    """
    about, judges = summaries[0], int(trained["judges"].max())
    seen = JUDGE_HAS_SEEN[about["train_on"]]
    if about.get("judge_epochs") == 0:
        seen = "was used without training (judge.epochs: 0)"
    judge = f"The judge is {about['judge']} ({about['judge_hash']}), which {seen}."
    if judges > 1:
        judge = (
            f"Scores are means over {judges} judges, {about['judge']} with different seeds, "
            f"each of which {seen}."
        )
    over = "images, pairs and judges" if judges > 1 else "images and pairs, for one judge"
    ties = "are broken at random" if about["ties"] == "random" else "count as won, as published"
    n = span(of_measure(trained, "r_precision")["n"], "{:,}".format)
    lines = [
        f"{judge} Scores are in percent, with 95 % intervals over {over}; n = {n} images a score;"
        f" {about['candidates']} candidates; ties {ties}."
    ]
    if about.get("chunking") == "published":
        lines.append("The sampled scores use equal chunks, as published, without the remainder.")
    if without := about["images_without_class"]:
        lines.append(
            f"{without:,} judged images have no class: each is its own, and distractors may be "
            "true of it."
        )
    if truncated := about.get("truncated_captions"):
        lines.append(f"{truncated:,} captions are longer than the judge reads, and truncated.")
    generators: dict[str, dict[str, None]] = {}
    for summary in summaries:
        for score in summary["scores"]:
            other = (
                f", {score['distractors']} distractors"
                if score["distractors"] != "original"
                else ""
            )
            for remark in _remarks(score, summary["candidates"]):
                text = f"{SPLIT_NAMES[score['split']]}{other}: {remark}"
                generators.setdefault(text, {})[summary["generator"]] = None
    return [*lines, *(f"{', '.join(names)}; {text}" for text, names in generators.items())]


@dataclass(frozen=True)
class Readable:
    """The results of one composition for readers."""

    title: str
    verdicts: Sequence[verdicts.Verdict]
    lines: Sequence[str]  # verdicts as text, or why there are none
    few_pairs: Sequence[str]  # a warning if held-out splits have few pairs
    views: Mapping[str, Sequence[View]]  # by kind
    notes: Sequence[str]  # notes for readers; the first is about the judge
    error_note: str  # the largest source of error
    cautions: Sequence[str] = field(
        default_factory=list
    )  # generators that lack images or whose texts are unknown


def to_read(
    title: str,
    scores: pd.DataFrame,
    comparisons: pd.DataFrame,
    anchors: Anchors,
    *,
    fids: Mapping[str, Any],
    summaries: Sequence[Mapping[str, Any]],
    divergence: pd.DataFrame,
    health: Health,
    heldout: Mapping[str, Any],
    unchecked: Sequence[str] = (),
    training_data: Mapping[str, str] | None = None,
) -> Readable:
    """Return the results of one composition for readers.

    Args:
        scores: rows of ``scores.parquet``; ``comparisons``, of that CSV file.
        anchors: reference and usual pair of each split.
        fids: Fréchet distances by split of the generators that have them (``splits`` of
            ``fid/G.json``).
        summaries: ``scores/J/G/summary.json`` of each generator by the first judge.
        divergence: ``tables.DIVERGENCE``; heldout: ``heldout.json``.
        unchecked: generators whose folder does not state the texts of its images.
        training_data: as of ``verdicts``.
    """
    trained = main_rows(scores)
    divergences = [
        Line(
            name,
            [
                TableCell(f"{cell.value} (random {cell.interval})") if cell else None
                for cell in cells
            ],
        )
        for name, cells in divergence_lines(divergence, "prompts")
    ]
    heads = [SPLIT_NAMES[split] for split in TESTS]
    view = View(
        "divergence from train", "part", heads, divergences, divergence_note(divergence), ""
    )
    cautions = missing_lines(summaries)
    cautions += [
        f"{name}: texts not checked, since its folder has no manifest.jsonl." for name in unchecked
    ]
    given = verdicts.verdicts(scores, anchors, health.is_fit, training_data)
    return Readable(
        title=title,
        verdicts=given,
        lines=cautions + ([verdict.line for verdict in given] or [verdicts.none_line(anchors)]),
        cautions=cautions,
        few_pairs=list(verdicts.few_pairs(scores)),
        views=score_views(scores, comparisons, fids)
        | {"divergence": [view] if divergences else []},
        notes=[
            *notes(trained, summaries),
            health.line,
            *filter(None, [health.unrecognized_line, heldout_note(heldout)]),
        ],
        error_note=error_note(trained),
    )


def headlines(dataset: str, compositions: Mapping[str, Readable]) -> str:
    """Return the text for the screen: the percentages that each generator composes, and the
    words.
    """
    parts = []
    for composition, of in compositions.items():
        view = of.views["composed"][0]
        lines = [f"{dataset}, {composition}: percent of the images that show the pair [same pairs]"]
        lines += map(bullet, of.cautions)
        if view.lines:
            shown = view.lines[:MOST_GENERATORS]
            rows = [
                [short(line.name), *(str(cell) if cell else NONE for cell in line.cells[:3])]
                for line in shown
            ]
            heads = ["generator", "seen pairs", "held-out pairs", "composes"]
            table = pd.DataFrame(rows, columns=heads)
            lines += [
                "",
                table.to_markdown(index=False, tablefmt="simple", disable_numparse=True),
                "",
            ]
            if more := view.lines[MOST_GENERATORS:]:
                lines.append(f"{len(more)} more generators are in table.md.")
        kinds = dict.fromkeys(verdict.verdict for verdict in of.verdicts)
        by_verdict = [
            f"{kind}: {', '.join(v.generator for v in of.verdicts if v.verdict == kind)}"
            for kind in kinds
        ]
        lines.append(bullet("; ".join(by_verdict) + "." if by_verdict else of.lines[-1]))
        parts.append("\n".join(lines))
    return HEADLINES.format("\n\n".join(parts))


def bullet(text: str) -> str:
    """Return a text as a list item on the screen."""
    return textwrap.fill(f"- {text}", SCREEN, subsequent_indent="  ", break_on_hyphens=False)


def short(name: str) -> str:
    """Return a generator's name, shortened for the screen."""
    return name if len(name) <= 14 else f"{name[:7]}…{name[-6:]}"


def table_markdown(dataset: str, compositions: Mapping[str, Readable]) -> str:
    """Return ``table.md``: the screen's text, then verdicts, tables and notes of each
    composition.
    """
    return headlines(dataset, compositions) + render(
        "table.md.j2", {"compositions": compositions.values()}
    )


def latex(compositions: Iterable[Readable]) -> str:
    """Return ``table.tex``: a booktabs table for each composition, with both scores and their
    intervals.
    """
    labels = {of.title: "tab:" + re.sub("[^a-z0-9]+", "-", of.title.lower()) for of in compositions}
    return render(
        "table.tex.j2",
        {"compositions": compositions, "labels": labels, "tex": lambda t: t.translate(LATEX)},
    )
