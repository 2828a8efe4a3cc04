"""Run one generator over the prompts: an image for each."""

import os
from pathlib import Path
from typing import Any

import pandas as pd

from compclip.core import cli, plugins, tables
from compclip.core.errors import require
from compclip.core.fingerprint import check_unchanged
from compclip.core.log import log
from compclip.generate.config import KINDS
from compclip.generate.generator import KEYS, Context, serves
from compclip.generate.steps import GenerateImages
from compclip.io import atomic_folder, read_table, write_frame, write_json, write_table

NAMES_LISTED = 20


def summarise(manifest: pd.DataFrame) -> dict[str, Any]:
    """Count images by split and status, and name the first that are missing or unreadable."""
    result: dict[str, Any] = {"prompts": len(manifest), "splits": {}}
    for split, rows in manifest.groupby("split", sort=False):
        counts = rows["status"].value_counts()
        result["splits"][split] = {name: int(counts.get(name, 0)) for name in ("ok", "missing", "unreadable")}
    for status in ("missing", "unreadable"):
        rows = manifest[manifest["status"] == status]
        names = [f"{r.split} {r.image_id} {r.caption_id} {r.draw}" for r in rows.head(NAMES_LISTED).itertuples()]
        result[status] = {"count": len(rows), "names": names}
    return result


def main(step: GenerateImages) -> None:
    kind = plugins.load(KINDS, step.kind)
    settings = plugins.settings(kind, step.settings)
    prompts = read_table(step.prompts, tables.PROMPTS)
    prompts = prompts[prompts["split"].isin(serves(kind))].reset_index(drop=True)
    where, served = f"generator {step.generator}", ", ".join(serves(kind))
    require(len(prompts), where, f"{step.prompts} has no prompt of the splits that it serves ({served})", "remove it")
    log.info("%s: %d prompts of %s", where, len(prompts), served)
    with atomic_folder(step.folder) as folder:
        context = Context(
            tables={path.stem: path for path in step.tables},
            folder=folder,
            place=Path(os.path.relpath(step.folder, step.results)).as_posix(),
            composition=step.composition,
            seed=step.seed,
            cache=step.cache,
            threads=step.threads,
        )
        generated = kind.generate(settings, prompts, context)
        if step.contents is not None:
            check_unchanged(step.contents, kind.fingerprint(settings, step.cache), where)
        manifest = prompts[KEYS].merge(generated.manifest, on=KEYS, how="left", validate="one_to_one")
        made = int((manifest["status"] == "ok").sum())
        require(made, where, f"no image for any of {len(prompts)} prompts", "check its source of images")
    summary = {"kind": step.kind, **summarise(manifest), **generated.summary}
    for status in ("missing", "unreadable"):
        if summary[status]["count"]:
            log.warning("%d of %d images are %s, see %s", summary[status]["count"], len(manifest), status, step.summary)
    write_table(manifest, step.manifest, tables.MANIFEST)
    if generated.scenes is not None and step.scenes is not None:
        write_frame(generated.scenes, step.scenes)
    write_json(summary, step.summary)
    log.info("%s: %d images", where, made)


if __name__ == "__main__":
    cli.run(main)
