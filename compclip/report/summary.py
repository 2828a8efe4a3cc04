"""Scores for readers: tables with notes, for the screen, Markdown, LaTeX and HTML."""

import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import pandas as pd

from compclip.core.artifacts.heldout import heldout_note
from compclip.core.tables import HELD_OUT, HELD_OUT_SPLITS, TESTS
from compclip.divergence.results import divergence_lines, divergence_note
from compclip.plot.labels import ALPHA, SPLIT_NAMES, interval, p_value, pair_words, percent
from compclip.plot.page import render
from compclip.plot.table_view import NONE, Line, TableCell, View
from compclip.report import verdicts
from compclip.report.composed import ANCHOR_NAMES, Anchors
from compclip.report.measures import COMPARED, MEASURES
from compclip.report.rows import (
    Place,
    Row,
    main_rows,
    matched_rows,
    pivot,
    select_kind,
    select_measure,
)
from compclip.report.values import ERROR_SOURCES
from compclip.report.verdicts import SEEN_SKILL, composed_of
from compclip.score.bias import BiasCheck

DIFFERENCES = "comparisons.csv"
COMPOSES = HELD_OUT, "composes"
# Headings; a truth is counted in drawn scenes.
SEEN, SEEN_TRUTH = "draws seen pairs", "seen pairs, truth"
COMPOSED, COMPOSED_TRUTH = "composes", "composes, truth"
# Those that the screen has room for, with their headings there.
ON_SCREEN = {
    SEEN: "draws seen",
    SEEN_TRUTH: "(truth)",
    COMPOSED: "composes",
    COMPOSED_TRUTH: "(truth)",
}
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
NEW_PAIRS = "In brackets 95 % intervals for new pairs."
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
SCREEN_MEANING = (
    "draws seen: pairs in train, matched to the held-out ones by frequency",
    "composes: held-out pairs, relative to seen ones in the generator's own style",
    "[ ]: 95 % interval over images, for the same pairs and judges",
)
TRUTH_MEANING = "(truth): of the column before it, counted in the drawn scenes"
MISSING_MEANING = "–: no estimate; the verdict says why"
# What the images at both ends of the scale show.
SCALE_ENDS = {
    "reference": "composes 100: draws what is asked",
    "usual pair": "composes 0: draws the noun's usual adjective",
}
ONLY_ANCHORS = (
    "no generator beside reference and usual pair: name your model's images in "
    "generate.generators (docs/generators.md)."
)
# Marks the screen's text in table.md.
HEADLINES = "<!-- headlines -->\n```text\n{}\n```\n<!-- /headlines -->\n"
LATEX = str.maketrans(
    {character: f"\\{character}" for character in "_%&#{}$"}
    | {"\\": r"\textbackslash{}", "±": r"$\pm$", "–": "--", "<": "$<$", "−": "$-$"}
    | {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
)


def _cell(
    rows: Mapping[Place, Row], key: Place, pairs: Literal["same", "new"] = "new"
) -> TableCell | None:
    """Return the value at a place with its interval for the same or for new pairs, or its
    deviation.
    """
    split, name = key
    row = rows.get(key)
    if row is None or pd.isna(row["value"]):
        return None
    measure = MEASURES[name]
    value = measure.text(row["value"])
    # Only sampled scores have a deviation, and no interval.
    deviation = rows.get((split, f"{name}_sd"))
    if deviation:
        spread = measure.text(deviation["value"])
        return TableCell(value, f"± {spread}")
    low = row[f"{pairs}_pairs_low"]
    high = row[f"{pairs}_pairs_high"]
    # The interval of one comparison among many may exclude 0 by chance.
    differs = row.get("family") == "primary" and row["p_holm"] < ALPHA
    return TableCell(value, interval(low, high), bool(differs))


def _by_split(title: str, rows: pd.DataFrame, columns: Mapping[str, Place], note: str = "") -> View:
    """Return a view with a line per generator. ``columns``: places in ``rows``, by heading."""
    lines = []
    by_generator = pivot(rows)
    for generator, values in by_generator.items():
        cells = [_cell(values, key) for key in columns.values()]
        lines.append(Line(generator, cells))
    headings = list(columns)
    return View(title, "generator", headings, lines, note)


def balances(trained: pd.DataFrame) -> bool:
    """Return whether balancing changes a score; if not, a column of balanced scores would repeat
    the plain ones.
    """
    swapped = trained[trained["split"] == "test_swapped"].set_index("generator")
    plain = select_measure(swapped, "r_precision")["value"]
    balanced = select_measure(swapped, "r_precision_balanced")["value"]
    # A generator without images of swapped captions has no balanced score.
    differs = plain.loc[balanced.index] != balanced
    return bool(differs.any())


def score_views(
    scores: pd.DataFrame,
    comparisons: pd.DataFrame | None = None,
    fids: Mapping[str, Any] | None = None,
    training_data: Mapping[str, str] | None = None,
) -> dict[str, list[View]]:
    """Return the views of one composition by kind.

    Args:
        scores, comparisons: rows of these files; None: no view of differences.
        fids: as of ``Results``.
        training_data: as of ``verdicts``; models that were trained on other data are marked.
    """
    trained = main_rows(scores)
    views = {"composed": [composed_view(scores)], "scores": [], "oracle": []}
    for name in COMPARED:
        by_trained = _score_view(scores, trained, name)
        by_oracle = _oracle_view(scores, trained, name)
        # Only drawn scenes have an oracle.
        views["scores"] += [by_trained] if by_trained.lines else []
        views["oracle"] += [by_oracle] if by_oracle.lines else []
    views["other"] = _other_views(scores, trained)
    views["fid"] = [_fid_view(scores, fids)] if fids else []
    views["between"] = [] if comparisons is None else [_between(comparisons)]
    marks = {
        name: verdicts.TRAINING_MARKS.get(trained_on, "")
        for name, trained_on in (training_data or {}).items()
    }
    return {kind: _marked(of_kind, marks) for kind, of_kind in views.items()}


def _marked(views: Sequence[View], marks: Mapping[str, str]) -> list[View]:
    """Return views with marks beside the names of generators."""
    result = []
    for view in views:
        lines = [line._replace(mark=marks.get(line.name, "")) for line in view.lines]
        result.append(replace(view, lines=lines))
    return result


def scores_for_screen(scores: pd.DataFrame, generator: str) -> str:
    """Return a generator's scores by split, with intervals for new pairs, as text.

    Args:
        scores: rows of ``scores.parquet`` of one composition.
    """
    rows = pivot(main_rows(scores))[generator]
    lines = []
    for split in TESTS:
        cells = [_cell(rows, (split, measure)) for measure in COMPARED]
        lines.append(Line(SPLIT_NAMES[split], cells))
    columns = [f"{measure.title}, % [new pairs]" for measure in COMPARED.values()]
    return View("scores", "split", columns, lines).screen


def _columns_of_splits(measure: str) -> dict[str, Place]:
    """Return a measure's place in each split, by heading."""
    return {SPLIT_NAMES[split]: (split, measure) for split in TESTS}


def _balanced_column(trained: pd.DataFrame, measure: str) -> dict[str, Place]:
    """Return the column of balanced R-precision, if it says something."""
    if measure != "r_precision" or not balances(trained):
        return {}
    return {"swapped, balanced": ("test_swapped", "r_precision_balanced")}


def _score_view(scores: pd.DataFrame, trained: pd.DataFrame, name: str) -> View:
    """Return the view of a score by the trained judges."""
    measure = COMPARED[name]
    matched = matched_rows(scores)
    columns = _columns_of_splits(name)
    if len(matched):
        columns["seen, matched"] = ("matched", name)
    # Balanced scores are of the same images, with other weights.
    columns |= _balanced_column(trained, name)
    # Both may differ between splits and generators, so each is a range.
    chances = select_measure(trained, f"{name}_chance")["value"]
    blind_scores = select_measure(trained, measure.chance_measure)["value"]
    chance = span(chances, percent)
    blind = span(blind_scores, percent)
    note = NOTES[name].format(chance=chance, blind=blind)
    note = f"{measure.definition} {note} {NEW_PAIRS}{ceiling_note(scores, name)}"
    return _by_split(measure.title, pd.concat([trained, matched]), columns, note)


def _oracle_view(scores: pd.DataFrame, trained: pd.DataFrame, name: str) -> View:
    """Return the view of a score by the oracle."""
    columns = _columns_of_splits(name) | _balanced_column(trained, name)
    title = f"{COMPARED[name].title} by the oracle"
    return _by_split(title, main_rows(scores, oracle=True), columns)


def _other_views(scores: pd.DataFrame, trained: pd.DataFrame) -> list[View]:
    """Return the views of scores by other protocols and other similarities."""
    columns = {f"{SPLIT_NAMES[split]}, sampled": (split, "r_precision_sampled") for split in TESTS}
    columns["swapped among swapped captions"] = ("other", "r_precision")
    # A split of its own, because the same measure of swapped has original distractors.
    among_swapped = main_rows(scores, distractors="swapped").assign(split="other")
    rows = pd.concat([trained, among_swapped])
    views = [_by_split("R-precision by other protocols", rows, columns)]
    # The published protocol, which has prompts without a pair, has no adjusted score.
    if (trained["prompts"] == "pairs").any():
        adjusted = MEASURES["adjective_accuracy_adjusted"]
        columns = _columns_of_splits(adjusted.name)
        views.append(_by_split(adjusted.title, trained, columns, adjusted.definition))
    return views


def ceiling_note(scores: pd.DataFrame, name: str) -> str:
    """Return a note on the ceiling that disagreeing captions of an image set, "" if they do not
    disagree.
    """
    ceilings = select_measure(scores, f"{name}_ceiling")["value"]
    if not (ceilings < 1).any():
        return ""
    return (
        " Variants that another caption of the image states are excluded; with them, a random "
        "choice among the stated"
        f" adjectives would reach {span(ceilings, percent)} % (human ceiling)."
    )


def composed_view(scores: pd.DataFrame) -> View:
    """Return the view of what generators draw of seen and of held-out pairs, and compose, over all
    and by split.

    Args:
        scores: rows of ``scores.parquet`` of one composition.
    """
    trained = main_rows(scores)
    drawn = pivot(main_rows(scores, oracle=True))
    has_truth = any(COMPOSES in rows for rows in drawn.values())
    with_value = set(trained.loc[trained["value"].notna(), "split"])
    columns = list[str]()
    # Generators that serve no held-out prompts are in no line.
    lines = []
    for generator, rows in pivot(trained).items():
        composed = composed_of(rows)
        if composed is None:
            continue
        truths = drawn.get(generator, {})
        cells = {SEEN: _whole_percent(rows.get(SEEN_SKILL))}
        if has_truth:
            cells[SEEN_TRUTH] = _truth(truths.get(SEEN_SKILL), rows.get(SEEN_SKILL))
        cells["draws held-out pairs"] = _whole_percent(rows.get((HELD_OUT, "draws_held_out_pairs")))
        cells[COMPOSED] = _whole_percent(composed)
        if has_truth:
            cells[COMPOSED_TRUTH] = _truth(truths.get(COMPOSES), composed)
        for split in HELD_OUT_SPLITS:
            if split in with_value:
                cells[f"composes, {SPLIT_NAMES[split]}"] = _whole_percent(composed_of(rows, split))
        # In a column of its own, because verdicts are about the same pairs.
        new_pairs = interval(composed["new_pairs_low"], composed["new_pairs_high"], 0)
        cells["composes, new pairs"] = TableCell("", new_pairs) if new_pairs else None
        columns = list(cells)
        lines.append(Line(generator, list(cells.values())))
    simultaneous = ""
    if (trained["measure"] == "composes_together").any():
        simultaneous = (
            " Those of composes are simultaneous over the generators that are not controls."
        )
    note = (
        f"Draws seen pairs: {MEASURES['draws_seen_pairs'].definition} Draws held-out pairs:"
        f" {MEASURES['draws_held_out_pairs'].definition} Composes: "
        f"{MEASURES['composes'].definition} In brackets 95 %"
        f" intervals for the same pairs and judges; the last column: for new pairs.{simultaneous} "
        "Reference and usual pair"
        " have no interval: their values are fixed by definition."
    )
    if has_truth:
        note += " Truth: counted in the drawn scenes of the same prompts."
    return View("What is composed", "generator", columns, lines, note)


def _truth(drawn: Row | None, estimate: Row | None) -> TableCell | None:
    """Return the drawn value beside an estimate; without one, there is nothing to compare."""
    if estimate is None or pd.isna(estimate["value"]):
        return None
    return _whole_percent(drawn)


def _whole_percent(row: Row | None) -> TableCell | None:
    """Return a value in whole percent with its interval for the same pairs."""
    if row is None or pd.isna(row["value"]):
        return None
    value = percent(row["value"], 0)
    ends = interval(row["same_pairs_low"], row["same_pairs_high"], 0)
    return TableCell(value, ends)


def _fid_view(scores: pd.DataFrame, fids: Mapping[str, Any]) -> View:
    """Return the view of each generator's distances by split, and of the numbers of images."""
    columns = _columns_of_splits("fid")
    columns["swapped, balanced"] = ("test_swapped", "fid_balanced")
    sizes = [
        f"{SPLIT_NAMES[split]}: {distances[split]['about']}"
        for split in TESTS
        for distances in fids.values()
        if split in distances
    ]
    # Generators with equally many images share a note.
    notes = "; ".join(dict.fromkeys(sizes))
    note = (
        f"FID is the Fréchet distance from the real images of the split. {notes}. Lower is better."
    )
    rows = scores[scores["measure"].isin(("fid", "fid_balanced"))]
    return _by_split("Fréchet distance", rows, columns, note)


def _between(comparisons: pd.DataFrame) -> View:
    """Return the view of differences between generators."""
    rows = select_kind(comparisons, "generators", "both_have_images")
    # ``_cell`` shows the value of any row.
    rows = rows.assign(value=rows["difference"])
    lines = [_difference_line(row) for row in rows.to_dict("records")]
    columns = ["score", "split", "points", "p (Holm)", "n"]
    return View("differences", "difference", columns, lines, csv=DIFFERENCES)


def _difference_line(row: Row) -> Line:
    """Return the line of a row of ``comparisons.csv`` with its difference as ``value``."""
    name = f"{row['a']} − {row['b']}"
    if row["kind"] == "both_have_images":
        name += ", images that both have"
    # An exploratory difference has no adjusted p-value; its family is named instead.
    is_primary = row["family"] == "primary"
    key = (row["split"], row["measure"])
    cells = [
        TableCell(MEASURES[row["measure"]].title),
        TableCell(SPLIT_NAMES[row["split"]]),
        _cell({key: row}, key),
        TableCell(p_value(row["p_holm"]) if is_primary else row["family"]),
        TableCell(f"{row['n']:,}"),
    ]
    return Line(name, cells)


def _divergence_view(divergence: pd.DataFrame) -> View:
    """Return the view of how far the prompts of each split diverge from train."""
    lines = []
    for line in divergence_lines(divergence, "prompts"):
        cells: list[TableCell | None] = []
        for cell in line.cells:
            # Here, the interval is that of random divisions of the same sizes.
            text = f"{cell.value} (random {cell.interval})" if cell else ""
            cells.append(TableCell(text) if cell else None)
        lines.append(Line(line.name, cells))
    splits = [SPLIT_NAMES[split] for split in TESTS]
    note = divergence_note(divergence)
    return View("divergence from train", "part", splits, lines, note, csv="")


def span(values: pd.Series, text: Callable[[Any], str]) -> str:
    """Return the range of values as text, a dash if there are none."""
    numbers = values.dropna()
    if numbers.empty:
        return NONE
    ends = (text(numbers.min()), text(numbers.max()))
    # Ends that round to the same text are one.
    return " to ".join(dict.fromkeys(ends))


def error_note(trained: pd.DataFrame) -> str:
    """Return a note on the largest source of the scores' error and its remedy, "" without
    scores.
    """
    # The source with the largest variance is the one worth reducing.
    rows = select_measure(trained, "r_precision")
    # Standard errors of independent sources add up as variances.
    variances = {source: float((rows[f"se_{source}"] ** 2).sum()) for source in ERROR_SOURCES}
    total = sum(variances.values())
    if not total:
        return ""
    largest = max(variances, key=variances.__getitem__)
    percentage = 100 * variances[largest] / total
    note = (
        f"Over these scores, {percentage:.0f} % of the variance of R-precision is from "
        f"{REMEDIES[largest]}."
    )
    if trained["judges"].max() > 1:
        return note
    return f"{note} The error from judges is unknown; list judge.seeds."


def _balance_remark(balance: Mapping[str, Any]) -> str:
    """Return which pairs balancing reduces, or why none."""
    cuts = []
    for pair, n in balance["cut"].items():
        # A dominant pair may be below the cap.
        if n["kept"] < n["of"]:
            cuts.append(f"{pair_words(pair)} from {n['of']:,} to {n['kept']:,}")
    if cuts:
        effect = f"balancing reduces {', '.join(cuts)}"
    elif balance["cut"]:
        effect = "balanced already: no pair is above the cut"
    else:
        effect = "not balanced"
    return f"{effect} ({balance['rule']})."


def _remarks(score: Mapping[str, Any], candidates: int) -> Iterator[str]:
    """Yield notes on one score. ``score``: an entry of ``scores`` in
    ``scores/J/G/summary.json``.
    """
    if score.get("balance") and score["judged"]:
        yield _balance_remark(score["balance"])
    for kind in ("missing", "broken"):
        names = score[kind]
        if names:
            yield (
                f"{len(names):,} images are {kind} and count as wrong: they are named in "
                "summary.json."
            )
    pool = score["pool"]
    few_entries = pool["entries_with_fewer_than_candidates"]
    # The score of all captions of test_seen covers its swapped captions.
    if few_entries and (score["split"], score["prompts"]) != ("test_seen", "swapped"):
        yield (
            f"{few_entries:,} entries have fewer than {candidates - 1} eligible captions (at least "
            f"{pool['eligible_least']:,})."
        )


def missing_lines(summaries: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a line for each generator that lacks more than 1 % of a split's images."""
    lines = []
    for summary in summaries:
        for score in summary["scores"]:
            # Scores with other distractors are of the same images.
            if score["distractors"] != "original":
                continue
            lacking = len(score["missing"]) + len(score["broken"])
            judged = score["judged"]
            if lacking > MOST_LACKING * judged:
                images = f"{lacking:,} of {judged:,} images of {SPLIT_NAMES[score['split']]}"
                lines.append(f"{summary['generator']} lacks {images}: they count as wrong.")
    return lines


def _judge_note(trained: pd.DataFrame, summary: Mapping[str, Any]) -> str:
    """Return a note on the judges and on what the scores are; ``summary``: a ``summary.json``."""
    judges = int(trained["judges"].max())
    # A judge may prefer captions that it has learned.
    training = JUDGE_HAS_SEEN[summary["train_on"]]
    if summary.get("judge_epochs") == 0:
        training = "was used without training (judge.epochs: 0)"
    if judges > 1:
        sources = "images, pairs and judges"
        judge = (
            f"Scores are means over {judges} judges, {summary['judge']} with different seeds, "
            f"each of which {training}."
        )
    else:
        sources = "images and pairs, for one judge"
        judge = f"The judge is {summary['judge']} ({summary['judge_hash']}), which {training}."
    ties = "are broken at random" if summary["ties"] == "random" else "count as won, as published"
    n = span(select_measure(trained, "r_precision")["n"], "{:,}".format)
    return (
        f"{judge} Scores are in percent, with 95 % intervals over {sources}; n = {n} images a "
        f"score; {summary['candidates']} candidates; ties {ties}."
    )


def _notes_on_generators(summaries: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield notes on scores, each with all generators that it is about."""
    generators: dict[str, list[str]] = {}
    for summary in summaries:
        for score in summary["scores"]:
            name = SPLIT_NAMES[score["split"]]
            if score["distractors"] != "original":
                name += f", {score['distractors']} distractors"
            for remark in _remarks(score, summary["candidates"]):
                # Generators with the same remark share a note.
                names = generators.setdefault(f"{name}: {remark}", [])
                names.append(summary["generator"])
    for text, names in generators.items():
        yield f"{', '.join(dict.fromkeys(names))}; {text}"


def notes(trained: pd.DataFrame, summaries: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return notes for readers of one composition's scores; the first is about the judge.

    Args:
        trained: the main rows of ``scores.parquet``, by trained judges.
        summaries: ``scores/J/G/summary.json`` of each generator by the first judge.
    """
    # What is the same for all generators.
    summary = summaries[0]
    lines = [_judge_note(trained, summary)]
    if summary.get("chunking") == "published":
        lines.append("The sampled scores use equal chunks, as published, without the remainder.")
    without_class = summary["images_without_class"]
    if without_class:
        lines.append(
            f"{without_class:,} judged images have no class: each is its own, and distractors may "
            "be true of it."
        )
    truncated = summary.get("truncated_captions")
    if truncated:
        lines.append(f"{truncated:,} captions are longer than the judge reads, and truncated.")
    return [*lines, *_notes_on_generators(summaries)]


@dataclass(frozen=True)
class Results:
    """The results of one composition.

    Attributes:
        scores, comparisons: rows of ``scores.parquet`` and ``comparisons.csv``.
        anchors: reference and usual pair of each split.
        fids: Fréchet distances by split of the generators that have them (``splits`` of
            ``fid/G.json``).
        summaries: ``scores/J/G/summary.json`` of each generator by the first judge.
        divergence: ``tables.DIVERGENCE``.
        heldout: ``heldout.json``.
        unchecked: generators whose folder does not state the texts of its images.
        training_data: as of ``verdicts``.
    """

    title: str
    scores: pd.DataFrame
    comparisons: pd.DataFrame
    anchors: Anchors
    fids: Mapping[str, Any]
    summaries: Sequence[Mapping[str, Any]]
    divergence: pd.DataFrame
    bias_check: BiasCheck
    heldout: Mapping[str, Any]
    unchecked: Sequence[str] = ()
    training_data: Mapping[str, str] | None = None


@dataclass(frozen=True)
class Summary:
    """The results of one composition for readers."""

    title: str
    verdicts: Sequence[verdicts.Verdict]
    lines: Sequence[str]  # verdicts as text, or why there are none
    few_pairs: Sequence[str]  # a warning if held-out splits have few pairs
    views: Mapping[str, Sequence[View]]  # by kind
    notes: Sequence[str]  # notes for readers; the first is about the judge
    error_note: str  # the largest source of error
    # Generators that lack images or whose texts are unknown.
    cautions: Sequence[str] = field(default_factory=list)


def summarize(results: Results) -> Summary:
    """Return the results of one composition for readers."""
    scores = results.scores
    trained = main_rows(scores)
    cautions = missing_lines(results.summaries)
    for name in results.unchecked:
        cautions.append(f"{name}: texts not checked, since its folder has no manifest.jsonl.")
    passes_bias_check = results.bias_check.passes
    by_generator = verdicts.verdicts(
        scores, results.anchors, passes_bias_check, results.training_data
    )
    lines = [verdict.line for verdict in by_generator] or [verdicts.none_line(results.anchors)]
    views = score_views(scores, results.comparisons, results.fids, results.training_data)
    divergence = _divergence_view(results.divergence)
    views["divergence"] = [divergence] if divergence.lines else []
    # The bias check is always named, since verdicts depend on it.
    composition_notes = [*notes(trained, results.summaries), results.bias_check.note]
    optional_notes = (results.bias_check.unrecognized_note, heldout_note(results.heldout))
    composition_notes += filter(None, optional_notes)
    return Summary(
        title=results.title,
        verdicts=by_generator,
        lines=cautions + lines,
        cautions=cautions,
        few_pairs=list(verdicts.few_pairs(scores)),
        views=views,
        notes=composition_notes,
        error_note=error_note(trained),
    )


def headlines(dataset: str, compositions: Mapping[str, Summary]) -> str:
    """Return the text for the screen: the percentages that each generator composes, and the
    words.
    """
    texts = []
    for composition, summary in compositions.items():
        title = f"{dataset}, {composition}: estimated from the judges' choices, in percent"
        lines = [title, *map(bullet, summary.cautions)]
        lines += _screen_table(summary)
        lines.append(bullet(_screen_verdicts(summary)))
        texts.append("\n".join(lines))
    return HEADLINES.format("\n\n".join(texts))


def _screen_table(summary: Summary) -> list[str]:
    """Return the scale, the meaning of each column and the table of the generators that are not
    its ends, for the screen.
    """
    anchors = _anchors_by_name(summary)
    view = summary.views["composed"][0]
    at_end = {name for names in anchors.values() for name in names}
    shown = [line for line in view.lines if line.name not in at_end]
    if not shown:
        return []
    places = [place for place, name in enumerate(view.columns) if name in ON_SCREEN]
    headings = [ON_SCREEN[view.columns[place]] for place in places]
    screen_lines = []
    for line in shown[:MOST_GENERATORS]:
        # Marks would not fit into a line.
        screen_lines.append(Line(short(line.name), [line.cells[place] for place in places]))
    lines = [*SCREEN_MEANING]
    if SEEN_TRUTH in view.columns:
        lines.append(TRUTH_MEANING)
    if any(None in line.cells for line in screen_lines):
        lines.append(MISSING_MEANING)
    for name, meaning in SCALE_ENDS.items():
        if anchors[name]:
            lines.append(f"{meaning} ({', '.join(map(short, anchors[name]))})")
    lines += ["", View("screen", view.head, headings, screen_lines).screen, ""]
    omitted = len(shown) - MOST_GENERATORS
    if omitted > 0:
        lines.append(f"{omitted} more generators are in table.md.")
    return lines


def _anchors_by_name(summary: Summary) -> dict[str, list[str]]:
    """Return the generators whose value is fixed by definition, by what they are."""
    anchors: dict[str, list[str]] = {name: [] for name in ANCHOR_NAMES}
    for verdict in summary.verdicts:
        if verdict.verdict in anchors:
            anchors[verdict.verdict].append(verdict.generator)
    return anchors


def _screen_verdicts(summary: Summary) -> str:
    """Return the verdict on each generator, or why there is none."""
    if not summary.verdicts:
        return summary.lines[-1]
    generators: dict[str, list[str]] = {}
    for verdict in summary.verdicts:
        # Anchors are named above the table.
        if verdict.verdict not in ANCHOR_NAMES:
            generators.setdefault(verdict.verdict, []).append(verdict.generator)
    if not generators:
        return ONLY_ANCHORS
    texts = [f"{', '.join(names)}: {verdict}" for verdict, names in generators.items()]
    return f"verdicts: {'; '.join(texts)}."


def bullet(text: str) -> str:
    """Return a text as a list item on the screen."""
    return textwrap.fill(f"- {text}", SCREEN, subsequent_indent="  ", break_on_hyphens=False)


def short(name: str) -> str:
    """Return a generator's name, shortened for the screen."""
    return name if len(name) <= 14 else f"{name[:7]}…{name[-6:]}"


def table_markdown(dataset: str, compositions: Mapping[str, Summary]) -> str:
    """Return ``table.md``: the screen's text, then verdicts, tables and notes of each
    composition.
    """
    tables = render("table.md.j2", {"compositions": compositions.values()})
    return headlines(dataset, compositions) + tables


def table_latex(compositions: Iterable[Summary]) -> str:
    """Return ``table.tex``: a booktabs table for each composition, with both scores and their
    intervals.
    """
    labels = {}
    for summary in compositions:
        # Labels of letters, digits and hyphens need no escapes.
        words = re.sub("[^a-z0-9]+", "-", summary.title.lower())
        labels[summary.title] = f"tab:{words}"
    context = {
        "compositions": compositions,
        "labels": labels,
        "tex": lambda text: text.translate(LATEX),
    }
    return render("table.tex.j2", context)
