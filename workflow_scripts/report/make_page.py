"""Write report.html: scores, gaps, judge, splits, figures, examples and what was left out, in one file.

Pictures are data URIs, the style stands in the page, nothing is fetched and no script runs. Every word of the
data is escaped.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from workflow_scripts.core import cli
from workflow_scripts.core.io import read_json, read_table
from workflow_scripts.core.layout import Layout
from workflow_scripts.core.tables import (
    CAPTIONS,
    DEFINITIONS,
    MANIFEST,
    PAIRS,
    PROMPTS,
    RANKING,
    SPLIT,
    SPLITS,
    SWAPPED,
    TESTS,
)
from workflow_scripts.divergence.results import COLUMNS, SYMBOLS, divergence_lines, measured, read_divergences
from workflow_scripts.plot.examples import PER_PAGE, read_examples
from workflow_scripts.plot.labels import (
    SPLIT_NAMES,
    WORD_KINDS,
    against_seen,
    between_generators,
    interval,
    main_rows,
    pair_words,
    percent,
    swatch,
)
from workflow_scripts.plot.page import show_figures, write_page
from workflow_scripts.report.fid import Fids, distance, fid_note, read_fids
from workflow_scripts.report.make_table import ORACLE

# Names of things left out that are shown; the summaries hold more of them.
NAMES = 5
FIGURES = ("scores", "gaps", "comparisons", "loss", "swapped_pairs", *WORD_KINDS.values())
DISTRIBUTIONS = tuple(f"{split}_{words}" for split in SPLIT_NAMES for words in WORD_KINDS.values())
# The four numbers of a generator: title, split, column.
SCORE_COLUMNS = (
    ("seen", "test_seen", "exact"),
    ("unseen", "test_unseen", "exact"),
    ("swapped", "test_swapped", "exact"),
    ("swapped, balanced", "test_swapped", "balanced"),
)


def number(row: Mapping[str, Any], column: str, low: str, high: str, *, bold: bool = False) -> dict[str, Any]:
    """A value with its interval as people read them."""
    return {"value": percent(row[column]), "interval": interval(row[low], row[high]), "bold": bold}


def difference(row: Mapping[str, Any]) -> dict[str, Any]:
    """As ``number``, bold where the interval leaves out 0."""
    return number(row, "difference", "low", "high", bold=bool(row["low"] > 0 or row["high"] < 0))


def score_lines(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """One line a generator: its score in each of ``SCORE_COLUMNS``, None where it has none.

    rows: those of the table that stand for a split, for one judge.
    """
    lines = []
    for generator in rows["generator"].drop_duplicates():
        own = rows[rows["generator"] == generator].set_index("split")
        cells = [
            number(own.loc[split], column, f"{column}_low", f"{column}_high")
            if split in own.index and pd.notna(own.at[split, column])
            else None
            for _, split, column in SCORE_COLUMNS
        ]
        lines.append({"name": generator, "cells": cells})
    return lines


def fid_lines(fids: Fids) -> list[dict[str, Any]]:
    """One line a generator: its Fréchet distance in each of ``SCORE_COLUMNS``, None where it has none."""
    lines = []
    for generator in fids:
        found = [distance(fids, generator, split, balanced=kind == "balanced") for _, split, kind in SCORE_COLUMNS]
        cells = [{"value": value, "interval": "", "bold": False} if value else None for value in found]
        lines.append({"name": generator, "cells": cells})
    return lines


def reach(values: Sequence[float | None]) -> str:
    """The least and the greatest of ``values``, in per cent; a dash where there is none."""
    known = [value for value in values if value is not None and pd.notna(value)]
    if not known:
        return "–"
    low, high = percent(min(known)), percent(max(known))
    return low if low == high else f"{low} to {high}"


def true_range(summaries: Sequence[Mapping[str, Any]]) -> str:
    """How many distractors are true of the image, by the oracle. summaries: scores_oracle/G/summary.json."""
    return reach([score["true_distractors"] for summary in summaries for score in summary["scores"]])


def balance_line(summaries: Sequence[Mapping[str, Any]]) -> str:
    """How the swapped scores were balanced, by the first generator that has any. summaries: scores/G/summary.json."""
    for score in (score for summary in summaries for score in summary["scores"]):
        if "balance" not in score:
            continue
        rule, cut = score["balance"]["rule"], score["balance"]["cut"]
        if not cut:
            return f"Swapped is not balanced ({rule})."
        said = [f"{pair_words(p)} from {c['of']:,} to {c['kept']:,}" for p, c in cut.items() if c["kept"] < c["of"]]
        return f"Balancing cuts {rule} ({', '.join(said) or 'none has more'})."
    return ""


def protocol_line(summary: Mapping[str, Any]) -> str:
    """Where the protocol is the published one instead of the definitions'. summary: scores/G/summary.json."""
    lines = []
    if summary["ties"] == "own_first":
        lines.append("Ties count as won: the exact score is the mean of (1 − g)ᴺ⁻¹.")
    if summary["chunking"] == "published":
        lines.append("The sampled score is of equal chunks, without the remainder.")
    return " ".join(["As published:", *lines]) if lines else ""


def divergence_table(divergences: pd.DataFrame, texts: str) -> list[dict[str, Any]]:
    """One line a kind of part: its divergence in each test split, None where it was not measured."""
    return [
        {
            "name": name,
            "cells": [cell and {"value": cell[0], "interval": cell[1], "bold": False} for cell in cells],
        }
        for name, cells in divergence_lines(divergences, texts)
    ]


def part_figures(divergences: pd.DataFrame) -> dict[str, list[list[str]]]:
    """By definition, the figures of atoms and of compounds of each split that was measured."""
    drawn: dict[str, list[list[str]]] = {}
    for definition, split in product(DEFINITIONS, TESTS):
        if measured(divergences, definition, split, "captions"):
            drawn.setdefault(definition, []).append([f"{split}_{definition}_{kind}" for kind in SYMBOLS])
    return drawn


def full_table(table: pd.DataFrame, constant: Sequence[str]) -> dict[str, Any]:
    """Every row and column that varies, shares in per cent; the columns that do not, as one line."""
    same = {c: table[c].iloc[0] for c in constant if len(table) and table[c].nunique(dropna=False) == 1}
    columns = [c for c in table.columns if c not in same]
    shares = ("exact", "sampled", "balanced", "blind", "difference", "low", "high")

    def shown(column: str, value: Any) -> str:
        if pd.isna(value):
            return "–"
        if column.startswith(shares):
            return percent(value)
        if column in ("split", "a", "b"):
            return SPLIT_NAMES.get(value, str(value))
        return f"{value:,}" if isinstance(value, int) else str(value)

    return {
        "columns": [c.replace("_", " ") for c in columns],
        "rows": [[shown(c, v) for c, v in zip(columns, row, strict=True)] for row in table[columns].itertuples(False)],
        "same": {c.replace("_", " "): shown(c, v) for c, v in same.items()},
    }


def comparison_lines(comparisons: pd.DataFrame) -> list[dict[str, Any]]:
    """Each difference between generators."""
    rows = between_generators(comparisons).to_dict("records")
    return [
        {"split": SPLIT_NAMES[r["split"]], "names": f"{r['a']} − {r['b']}", "n": r["n"], **difference(r)} for r in rows
    ]


def gap_lines(comparisons: pd.DataFrame) -> list[dict[str, Any]]:
    """One line a generator: unseen minus seen, swapped minus seen; None where it does not serve both."""
    gaps = against_seen(comparisons)
    lines = []
    for generator in gaps["generator"].drop_duplicates():
        own = gaps[gaps["generator"] == generator].set_index("split")
        cells = [difference(own.loc[s]) if s in own.index else None for s in ("test_unseen", "test_swapped")]
        lines.append({"name": generator, "cells": cells})
    return lines


def split_sizes(splits: pd.DataFrame, captions: pd.DataFrame, prompts: pd.DataFrame) -> list[dict[str, Any]]:
    """Images and captions of each split, and the prompts and images that are judged."""
    of_caption = captions["image_id"].map(splits.set_index("image_id")["split"])
    lines = []
    for split in (*SPLITS, "test_swapped"):
        drawn = prompts[prompts["split"] == split]
        real = split != "test_swapped"
        images = int((splits["split"] == split).sum())
        lines.append(
            {
                "split": SPLIT_NAMES[split],
                "images": images if real else None,
                "share": percent(images / max(len(splits), 1), 0) if real else None,
                "captions": int((of_caption == split).sum()) if real else None,
                "prompts": None if split == "train" else len(drawn),
                "judged": None if split == "train" else drawn["image_id"].nunique(),
            }
        )
    return lines


def held_out(heldout: Mapping[str, Any], ranking: pd.DataFrame) -> list[dict[str, Any]]:
    """The held-out pairs in words, with their occurrences in all captions, most frequent first."""
    counts = {f"{r.adjective}_{r.noun}": int(r.n) for r in ranking.rename(columns={"count": "n"}).itertuples()}
    found = [{"pair": pair_words(p), "count": counts.get(p, 0)} for p in heldout["pairs"]]
    return sorted(found, key=lambda pair: (-pair["count"], pair["pair"]))


def left_out(
    captions: pd.DataFrame,
    pairs: pd.DataFrame,
    ranking: pd.DataFrame,
    splits: pd.DataFrame,
    swapped: pd.DataFrame,
    manifests: Mapping[str, pd.DataFrame],
    summaries: Mapping[str, Any],
) -> list[dict[str, Any]]:
    """What of the data is not in the scores: lines of what, count, of, names, more; without those that count 0.

    more: whether there are names beyond those.

    summaries: the contents of the JSON files dataset, prompts, judge (its manifest), scores (a list, one a generator).
    """
    lines: list[dict[str, Any]] = []

    def add(what: str, count: int, of: int | None = None, names: Sequence[str] = (), named: int | None = None) -> None:
        if count:
            shown = list(names[:NAMES])
            more = bool(shown) and len(shown) < (count if named is None else named)
            lines.append({"what": what, "count": count, "of": of, "names": shown, "more": more})

    key = ["image_id", "caption_id"]
    for name, value in summaries["dataset"].items():
        if isinstance(value, dict) and {"count", "names"} <= set(value):
            add(name.replace("_", " "), value["count"], None, value["names"])
    images = captions["image_id"].nunique()
    add("images in no split", images - len(splits), images)
    ranked = pairs[pairs["adjective"].isin(ranking["adjective"]) & pairs["noun"].isin(ranking["noun"])]
    add("captions without a ranked pair", len(captions) - len(ranked[key].drop_duplicates()), len(captions))
    disputed = int((ranked["relation"] == "disputed").sum())
    add("pairs on which parse and surface disagree: held out, not ranked or swapped", disputed, len(ranked))
    add("captions of seen without a swap", *_without(captions, splits, swapped))
    for split, counts in summaries["prompts"]["splits"].items():
        if split != "test_swapped":
            name, of = SPLIT_NAMES[split], counts["images_in_split"]
            add(f"images of {name} without a file or that the judge learns from", counts["images_not_judged"], of)
            add(f"images of {name} without a prompt", counts["images_without_prompt"], of)
    for generator, manifest in manifests.items():
        for status in ("missing", "unreadable"):
            lost = manifest[manifest["status"] == status]
            names = [f"{r.image_id}, caption {r.caption_id} ({SPLIT_NAMES[r.split]})" for r in lost.itertuples()]
            add(f"images of {generator} that are {status}", len(lost), len(manifest), names)
    # Generators of which the same is to be said share a line.
    alike: dict[tuple[str, int, int], list[str]] = {}
    for summary in summaries["scores"]:
        for score in summary["scores"]:
            few = score["pool"]["entries_with_fewer_than_candidates"]
            where = SPLIT_NAMES[score["split"]]
            if score["distractors"] != "original":
                where += f" ({score['distractors']} distractors)"
            alike.setdefault((where, few, score["judged"]), []).append(summary["generator"])
    for (where, few, of), generators in alike.items():
        names = list(dict.fromkeys(generators))
        whose = names[0] if len(names) == 1 else f"each of {len(names)} generators"
        add(
            f"images of {whose}, {where}, with too few eligible distractors",
            *(few, of),
            names=names if len(names) > 1 else (),
            named=len(names),
        )
    judge = summaries["judge"]
    add("captions longer than the judge reads, cut", judge["truncated_captions"], judge["captions"])
    return lines


def _without(captions: pd.DataFrame, splits: pd.DataFrame, swapped: pd.DataFrame) -> tuple[int, int]:
    """How many captions of test_seen are not swapped, of how many."""
    seen = splits.loc[splits["split"] == "test_seen", "image_id"]
    of = int(captions["image_id"].isin(seen).sum())
    return of - len(swapped), of


def class_line(captions: pd.DataFrame) -> str:
    """What to know where images have no class; nothing where all have one."""
    without = captions.loc[captions["class_id"].isna(), "image_id"].nunique()
    images = captions["image_id"].nunique()
    if not without:
        return ""
    who = "The images have no class" if without == images else f"{without:,} of {images:,} images have no class"
    return f"{who}: each such image is its own class, and distractors may be true of it."


def flat(value: Any, name: str = "") -> list[tuple[str, str]]:
    """A JSON value as (name, words) lines; long lists are counted and their first members named."""
    if isinstance(value, dict):
        if set(value) == {"count", "names"}:
            return [(name, f"{value['count']:,}{_first(value['names'], ': ')}")]
        inner = [line for key, part in value.items() for line in flat(part, f"{name} › {key}" if name else str(key))]
        return inner or [(name, "none")]
    if isinstance(value, list):
        simple = [part for part in value if not isinstance(part, dict | list)]
        if len(simple) == len(value) <= 3:
            return [(name, ", ".join(map(str, value)) or "none")]
        said = [str(p) if not isinstance(p, dict) else " ".join(f"{k} {v}" for k, v in p.items()) for p in value]
        return [(name, f"{len(value):,}{_first(said, ': ')}")]
    return [(name, "none" if value is None else f"{value:,}" if type(value) is int else str(value))]


def _first(names: Sequence[str], before: str) -> str:
    if not names:
        return ""
    return before + "; ".join(map(str, names[:NAMES])) + (" …" if len(names) > NAMES else "")


def shown_figures(options: argparse.Namespace, composition: str, names: Sequence[str]) -> list[dict[str, str]]:
    """Figures of a composition by their names, as ``page.show_figures`` gives them."""
    prefix = f"{options.dataset}_{composition}_"
    shown = show_figures(options.results / "figures" / f"{prefix}{name}.svg" for name in names)
    return [{**figure, "name": name} for name, figure in zip(names, shown, strict=True)]


def composition_context(options: argparse.Namespace, composition: str) -> dict[str, Any]:
    """All that the page says of one composition."""
    place = options.results / options.dataset
    ours = place / composition
    captions = read_table(place / "captions.parquet", CAPTIONS)
    pairs = read_table(place / "pairs.parquet", PAIRS)
    ranking = read_table(ours / "ranking.parquet", RANKING)
    splits = read_table(ours / "splits.parquet", SPLIT)
    swapped = read_table(ours / "swapped.parquet", SWAPPED)
    prompts = read_table(ours / "prompts.parquet", PROMPTS)
    judge = read_json(ours / "judge" / "manifest.json")
    audit = read_json(ours / "audit.json")
    manifests = {g: read_table(ours / "generated" / g / "manifest.parquet", MANIFEST) for g in options.generators}
    fids = read_fids(ours, options.fid)
    scores = [read_json(ours / "scores" / g / "summary.json") for g in options.generators]
    divergences = read_divergences(ours)
    by_divergence = options.method == "divergence"

    def rows(file: str) -> pd.DataFrame:
        table = pd.read_csv(options.results / file)
        return table[(table["dataset"] == options.dataset) & (table["composition"] == composition)]

    table, comparisons = rows("table.csv"), rows("comparisons.csv")
    main = main_rows(table)
    trained, oracle = main[main["judge"] != ORACLE], main[main["judge"] == ORACLE]
    swapped_shown, unseen_shown = read_examples(
        options.results, options.dataset, composition, options.generators, options.examples, options.seed
    )
    summaries = [place / "dataset.json", place / "pairs.json"]
    summaries += [ours / f"{name}.json" for name in ("splits", "swapped", "prompts")]
    summaries += [ours / "division.json"] if by_divergence else []
    for generator in options.generators:
        summaries += [ours / kind / generator / "summary.json" for kind in ("generated", "scores")]
    return {
        "name": composition,
        "lines": score_lines(trained),
        "oracle_lines": score_lines(oracle),
        "fid_lines": fid_lines(fids),
        "fid_note": fid_note(fids),
        "blind": reach(trained["blind_control"].tolist()),
        "balance": balance_line(scores),
        "true_distractors": true_range(
            [read_json(ours / "scores_oracle" / g / "summary.json") for g in options.oracle]
        ),
        "candidates": int(trained["candidates"].iloc[0]) if len(trained) else None,
        "table": full_table(
            table.drop(columns=list(COLUMNS)),
            ("dataset", "composition", "candidates", "class_rule", "judge_hash", "seed"),
        ),
        "gaps": gap_lines(comparisons),
        "divergence": divergence_table(divergences, "prompts"),
        "divergence_of_captions": divergence_table(divergences, "captions"),
        "divergence_warnings": read_json(ours / "divergence.json")["warnings"],
        "shuffles": divergences["shuffles"].max(),
        "apart": shown_figures(options, composition, ["drops", *(["division"] if by_divergence else [])]),
        "parts": {
            definition: [shown_figures(options, composition, names) for names in splits]
            for definition, splits in part_figures(divergences).items()
        },
        "comparisons": comparison_lines(comparisons),
        "judge": judge,
        "choice": read_json(ours / "adjective_choice.json"),
        "sizes": split_sizes(splits, captions, prompts),
        "heldout": held_out(read_json(ours / "heldout.json"), ranking),
        "audit": audit["counts"],
        "suspicions": [
            {
                "pair": pair_words(pair),
                "captions": found["captions"],
                "unexplained": found["unexplained"],
                "text": found["examples"][0]["text"] if found["examples"] else "",
            }
            for pair, found in audit["suspicions"].items()
        ],
        "figures": shown_figures(options, composition, FIGURES),
        "distributions": shown_figures(options, composition, DISTRIBUTIONS),
        # A swatch shows a color as it is, whatever the page's own colors.
        "swatches": any(map(swatch, ranking["adjective"])),
        "swapped": [swapped_shown[n : n + PER_PAGE] for n in range(0, len(swapped_shown), PER_PAGE)],
        "unseen": unseen_shown,
        "left_out": left_out(
            captions,
            pairs,
            ranking,
            splits,
            swapped,
            manifests,
            {
                "dataset": read_json(place / "dataset.json"),
                "prompts": read_json(ours / "prompts.json"),
                "judge": judge,
                "scores": scores,
            },
        ),
        "class_line": class_line(captions),
        "protocol": protocol_line(scores[0]),
        "summaries": [(str(f.relative_to(options.results)), flat(read_json(f))) for f in summaries],
    }


def main(options: argparse.Namespace) -> None:
    compositions = [composition_context(options, name) for name in options.compositions]
    layout = Layout(options.results, options.dataset)
    found = [import_module(f"workflow_scripts.{stage}.section").section(layout) for stage in options.sections]
    write_page(
        options.results / "report.html",
        "report.html.j2",
        {
            "dataset": options.dataset,
            "sections": [section for section in found if section],
            "compositions": compositions,
            "score_columns": [title for title, _, _ in SCORE_COLUMNS],
            "test_columns": [SPLIT_NAMES[split] for split in TESTS],
            "seed": options.seed,
        },
        json.loads(options.settings),
    )


def arguments() -> argparse.ArgumentParser:
    result = cli.parser(__doc__)
    result.add_argument("--results", type=Path, required=True, help="the folder of the artifacts")
    result.add_argument("--dataset", required=True)
    result.add_argument("--compositions", nargs="+", required=True)
    result.add_argument("--generators", nargs="+", required=True)
    result.add_argument("--oracle", nargs="*", default=[], help="generators that the oracle has scored too")
    result.add_argument("--fid", nargs="*", default=[], help="generators with a Fréchet distance")
    result.add_argument("--method", choices=("pairs", "divergence"), default="pairs", help="split.method")
    result.add_argument("--sections", nargs="*", default=[], help="stages that show a section of their own")
    result.add_argument("--examples", type=int, default=24, help="swapped captions to show (default: %(default)s)")
    result.add_argument("--settings", default="{}", metavar="JSON", help="the config's sections that the page shows")
    result.add_argument("--seed", type=int, default=0)
    return result


if __name__ == "__main__":
    cli.run(main, arguments())
