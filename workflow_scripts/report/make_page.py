"""Write report.html: scores, gaps, judge, splits, figures, examples and what was left out, in one file.

Pictures are data URIs, the style stands in the page, nothing is fetched and no script runs. Every word of the
data is escaped.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd

from workflow_scripts.common import cli
from workflow_scripts.common.cli import log
from workflow_scripts.common.io import read_json, read_table, write_text
from workflow_scripts.common.seeds import rng
from workflow_scripts.common.tables import (
    CAPTIONS,
    IMAGES,
    MANIFEST,
    PAIRS,
    PROMPTS,
    RANKING,
    SCORES,
    SPLIT,
    SPLITS,
    SWAPPED,
    TESTS,
)
from workflow_scripts.report.examples import data_uri, read_made, swapped_examples, unseen_examples
from workflow_scripts.report.labels import SPLIT_NAMES, interval, main_rows, pair_words, percent

TEMPLATES = Path(__file__).parent / "templates"
# Names of things left out that are shown; the summaries hold more of them.
NAMES = 5
# Of three examples, this many are unseen captions, the rest swapped ones.
UNSEEN_OF_THREE = 1

FIGURES = {
    "scores": "Exact R-precision of each generator on each split.",
    "comparisons": "Paired differences between generators, and between splits.",
    "loss": "The judge's training.",
    "swapped_pairs": "How often each swapped pair is prompted, before and after balancing.",
    "adjectives": "Adjectives in each split.",
    "nouns": "Nouns in each split.",
}
# The four numbers of a generator: title, split, column.
SCORE_COLUMNS = (
    ("seen", "test_seen", "exact"),
    ("unseen", "test_unseen", "exact"),
    ("swapped", "test_swapped", "exact"),
    ("swapped, balanced", "test_swapped", "balanced"),
)


def score_lines(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """One line a generator: its score and interval in each of ``SCORE_COLUMNS``, as people read them.

    rows: those of the table that stand for a split, for one judge.
    """
    lines = []
    for generator in rows["generator"].drop_duplicates():
        own = rows[rows["generator"] == generator].set_index("split")
        cells = []
        for _, split, column in SCORE_COLUMNS:
            if split not in own.index or pd.isna(own.at[split, column]):
                cells.append(None)
                continue
            row = own.loc[split]
            # Without brackets: four of them must fit a phone.
            reach = f"{percent(row[f'{column}_low'])}–{percent(row[f'{column}_high'])}"
            cells.append({"score": percent(row[column]), "interval": reach})
        lines.append({"generator": generator, "cells": cells})
    return lines


def blind_range(rows: pd.DataFrame) -> str:
    """The blind control's least and greatest value, in per cent."""
    low, high = percent(rows["blind_control"].min()), percent(rows["blind_control"].max())
    return low if low == high else f"{low} to {high}"


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
    """Each difference with its interval and whether that holds 0."""
    return [
        {
            "split": SPLIT_NAMES.get(row.split, row.split),
            "a": SPLIT_NAMES.get(row.a, row.a),
            "b": SPLIT_NAMES.get(row.b, row.b),
            "difference": percent(row.difference),
            "interval": interval(row.low, row.high),
            "clear": row.low > 0 or row.high < 0,
            "n": row.n,
        }
        for row in comparisons.itertuples()
    ]


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
    prompts: pd.DataFrame,
    manifests: Mapping[str, pd.DataFrame],
    dataset: Mapping[str, Any],
    judge: Mapping[str, Any],
) -> list[dict[str, Any]]:
    """What of the data is not in the scores: lines of what, count, of, names; without those that count 0.

    dataset, judge: dataset.json and the judge's manifest.json; the others are the tables of these names.
    """
    lines: list[dict[str, Any]] = []

    def add(what: str, count: int, of: int | None = None, names: Sequence[str] = ()) -> None:
        if count:
            lines.append({"what": what, "count": count, "of": of, "names": list(names[:NAMES])})

    key = ["image_id", "caption_id"]
    for name, value in dataset.items():
        if isinstance(value, dict) and {"count", "names"} <= set(value):
            add(name.replace("_", " "), value["count"], None, value["names"])
    ranked = pairs[pairs["adjective"].isin(ranking["adjective"]) & pairs["noun"].isin(ranking["noun"])]
    add("captions without a ranked pair", len(captions) - len(ranked[key].drop_duplicates()), len(captions))
    disputed = int((ranked["relation"] == "disputed").sum())
    add("pairs on which parse and surface disagree: held out, not ranked or swapped", disputed, len(ranked))
    add("captions of seen without a swap", *_without(captions, splits, swapped))
    for split in ("test_seen", "test_unseen"):
        images = int((splits["split"] == split).sum())
        drawn = prompts.loc[prompts["split"] == split, "image_id"].nunique()
        add(f"images of {SPLIT_NAMES[split]} not judged", images - drawn, images)
    for generator, manifest in manifests.items():
        for status in ("missing", "unreadable"):
            lost = manifest[manifest["status"] == status]
            names = [f"{r.image_id}, caption {r.caption_id} ({SPLIT_NAMES[r.split]})" for r in lost.itertuples()]
            add(f"images of {generator} that are {status}", len(lost), len(manifest), names)
    add("captions longer than the judge reads, cut", judge.get("truncated_captions", 0), judge.get("captions"))
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


def composition_context(options: argparse.Namespace, composition: str) -> dict[str, Any]:
    """All that the page says of one composition."""
    place = options.results / options.dataset
    ours = place / composition
    captions = read_table(place / "captions.parquet", CAPTIONS)
    images = read_table(place / "images.parquet", IMAGES)
    pairs = read_table(place / "pairs.parquet", PAIRS)
    ranking = read_table(ours / "ranking.parquet", RANKING)
    splits = read_table(ours / "splits.parquet", SPLIT)
    swapped = read_table(ours / "swapped.parquet", SWAPPED)
    prompts = read_table(ours / "prompts.parquet", PROMPTS)
    judge = read_json(ours / "judge" / "manifest.json")
    audit = read_json(ours / "audit.json")
    manifests = {g: read_table(ours / "generated" / g / "manifest.parquet", MANIFEST) for g in options.generators}
    made = [
        read_made(
            name,
            manifest,
            {
                split: read_table(ours / "scores" / name / f"{split}.parquet", SCORES)
                for split in TESTS
                if (manifest["split"] == split).any()
            },
        )
        for name, manifest in manifests.items()
    ]

    def rows(file: str) -> pd.DataFrame:
        table = pd.read_csv(options.results / file)
        return table[(table["dataset"] == options.dataset) & (table["composition"] == composition)]

    table, comparisons = rows("table.csv"), rows("comparisons.csv")
    main = main_rows(table)
    trained, oracle = main[main["judge"] != "oracle"], main[main["judge"] == "oracle"]
    paths = {row.image_id: row.path for row in images.itertuples() if isinstance(row.path, str)}
    draw = rng(options.seed, "make_page", "examples", options.dataset, composition)
    unseen = options.examples * UNSEEN_OF_THREE // 3
    summaries = [place / "dataset.json", place / "pairs.json"]
    summaries += [ours / f"{name}.json" for name in ("splits", "swapped", "prompts")]
    for generator in options.generators:
        summaries += [ours / kind / generator / "summary.json" for kind in ("generated", "scores")]
    return {
        "name": composition,
        "lines": score_lines(trained),
        "oracle_lines": score_lines(oracle),
        "blind": blind_range(trained) if len(trained) else "–",
        "candidates": int(trained["candidates"].iloc[0]) if len(trained) else None,
        "table": full_table(table, ("dataset", "composition", "candidates", "class_rule", "judge_hash", "seed")),
        "comparisons": comparison_lines(comparisons),
        "judge": judge,
        "choice": read_json(ours / "adjective_choice.json"),
        "sizes": split_sizes(splits, captions, prompts),
        "heldout": held_out(read_json(ours / "heldout.json"), ranking),
        "audit": audit["counts"],
        "suspicions": [
            {"pair": pair_words(pair), "captions": found["captions"], "text": found["examples"][0]["text"]}
            for pair, found in audit["suspicions"].items()
        ],
        "figures": [
            {
                "caption": caption,
                "source": data_uri(
                    (options.figures / f"{options.dataset}_{composition}_{name}.svg").read_bytes(), "svg+xml"
                ),
            }
            for name, caption in FIGURES.items()
        ],
        "swapped": swapped_examples(swapped, prompts, options.examples - unseen, made, paths, options.results, draw),
        "unseen": unseen_examples(pairs, prompts, unseen, made, paths, options.results, draw),
        "left_out": left_out(
            captions, pairs, ranking, splits, swapped, prompts, manifests, read_json(place / "dataset.json"), judge
        ),
        "class_line": class_line(captions),
        "summaries": [(str(f.relative_to(options.results)), flat(read_json(f))) for f in summaries],
    }


def render(context: dict[str, Any]) -> str:
    """The page, every text escaped."""
    loader = jinja2.FileSystemLoader(TEMPLATES)
    environment = jinja2.Environment(
        loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template("report.html.j2").render(context)


def main(options: argparse.Namespace) -> None:
    compositions = [composition_context(options, name) for name in options.compositions]
    page = render(
        {
            "dataset": options.dataset,
            "compositions": compositions,
            "score_columns": [title for title, _, _ in SCORE_COLUMNS],
            "settings": json.dumps(json.loads(options.settings), indent=2, ensure_ascii=False),
            "seed": options.seed,
        }
    )
    write_text(page, options.out)
    shown = sum(len(c["swapped"]) + len(c["unseen"]) for c in compositions)
    log.info("%s: %d examples, %.1f MB", options.out, shown, len(page.encode()) / 1e6)


def arguments() -> argparse.ArgumentParser:
    result = cli.parser(__doc__)
    result.add_argument("--results", type=Path, required=True, help="the folder of the artifacts")
    result.add_argument("--dataset", required=True)
    result.add_argument("--compositions", nargs="+", required=True)
    result.add_argument("--generators", nargs="+", required=True)
    result.add_argument("--figures", type=Path, required=True, help="the folder of draw_figures")
    result.add_argument("--examples", type=int, default=12, help="captions shown for each composition")
    result.add_argument("--settings", default="{}", metavar="JSON", help="the config's sections that the page shows")
    result.add_argument("--seed", type=int, default=0)
    result.add_argument("--out", type=Path, required=True, help="report.html")
    return result


if __name__ == "__main__":
    cli.run(main, arguments())
