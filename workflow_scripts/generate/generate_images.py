"""Run one generator over the prompts: an image for each.

Writes manifest.parquet, images/, summary.json and, where the generator knows what it drew, scenes.parquet to
RESULTS/DATASET/COMPOSITION/generated/GENERATOR. Images that are missing or unreadable are counted and named.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pandas as pd

from workflow_scripts.core import cli, plugins, tables
from workflow_scripts.core.cli import log
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import atomic_folder, read_table, write_frame, write_json, write_table
from workflow_scripts.core.section import read_settings
from workflow_scripts.generate.config import KINDS
from workflow_scripts.generate.generator import KEYS, Context

NAMED = 20


def summarise(manifest: pd.DataFrame) -> dict[str, Any]:
    """Counts by split and status, and the first names of what there is no image of."""
    counts = {
        split: {status: int((part["status"] == status).sum()) for status in ("ok", "missing", "unreadable")}
        for split, part in manifest.groupby("split", sort=False)
    }
    result: dict[str, Any] = {"prompts": len(manifest), "splits": counts}
    for status in ("missing", "unreadable"):
        rows = manifest[manifest["status"] == status]
        names = [f"{r.split} {r.image_id} {r.caption_id} {r.draw}" for r in rows.head(NAMED).itertuples()]
        result[status] = {"count": len(rows), "names": names}
    return result


def main(options: argparse.Namespace) -> None:
    kind = plugins.load(KINDS, options.kind)
    settings = read_settings(kind.Settings, options.settings)
    prompts = read_table(options.prompts, tables.PROMPTS)
    prompts = prompts[prompts["split"].isin(kind.SPLITS)].reset_index(drop=True)
    if prompts.empty:
        raise UserError(f"{options.prompts}: no prompts of {', '.join(kind.SPLITS)} for generator {options.generator}")
    place = f"{options.dataset}/{options.composition}/generated/{options.generator}"
    target = options.results / place
    log.info("generator %s: %d prompts of %s", options.generator, len(prompts), ", ".join(prompts["split"].unique()))
    with atomic_folder(target / "images") as folder:
        context = Context(
            results=options.results,
            tables={path.stem: path for path in options.tables},
            folder=folder,
            place=f"{place}/images",
            composition=options.composition,
            seed=options.seed,
            cache=options.cache,
            threads=options.threads,
        )
        generated = kind.generate(settings, prompts, context)
        manifest = prompts[KEYS].merge(generated.manifest, on=KEYS, how="left", validate="one_to_one")
        if not (manifest["status"] == "ok").any():
            raise UserError(f"generator {options.generator}: no image for any of {len(prompts)} prompts")
    summary = {"kind": options.kind, **summarise(manifest), **generated.summary}
    for status in ("missing", "unreadable"):
        if summary[status]["count"]:
            first = "; ".join(summary[status]["names"][:3])
            log.warning("%d of %d images are %s (%s)", summary[status]["count"], len(manifest), status, first)
    write_table(manifest, target / "manifest.parquet", tables.MANIFEST)
    if generated.scenes is not None:
        write_frame(generated.scenes, target / "scenes.parquet")
    write_json(summary, target / "summary.json")
    log.info("generator %s: %d images", options.generator, int((manifest["status"] == "ok").sum()))


if __name__ == "__main__":
    parser = cli.parser(__doc__)
    parser.add_argument("--generator", required=True, metavar="NAME", help="the folder in generated/")
    parser.add_argument("--kind", required=True, help="a file in workflow_scripts/generate/generators")
    parser.add_argument("--settings", default="{}", metavar="JSON", help="the kind's settings")
    parser.add_argument("--prompts", type=Path, required=True, metavar="FILE", help="prompts.parquet")
    parser.add_argument("--tables", type=Path, nargs="*", default=[], metavar="FILE", help="what the kind reads")
    parser.add_argument("--results", type=Path, default=Path("results"), metavar="FOLDER")
    parser.add_argument("--dataset", required=True, metavar="NAME")
    parser.add_argument("--composition", required=True, metavar="NAME")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cache", type=Path, default=Path(".cache"), help="folder that keeps made images between runs")
    parser.add_argument("--threads", type=int, default=2, help="of a model; another number, other last bits")
    cli.run(main, parser)
