"""Run one generator over the prompts; count and name missing and broken images."""

from collections import Counter
from typing import Any

import pandas as pd

from compclip.core.errors import require
from compclip.core.identity.fingerprint import check_unchanged
from compclip.core.log import log
from compclip.core.tables import STATUSES
from compclip.generate.config import Generator
from compclip.generate.generator import PROMPT_KEYS, Context, Generated, load_kind

MISSING_NAMED = 20


def summarize_images(manifest: pd.DataFrame) -> dict[str, Any]:
    """Return counts of images by split and status, and the first missing or broken ones."""
    splits = {}
    for split, statuses in manifest.groupby("split", sort=False)["status"]:
        counts = Counter(statuses)
        splits[split] = {status: counts[status] for status in STATUSES}
    summary: dict[str, Any] = {"prompts": len(manifest), "splits": splits}
    for status in ("missing", "broken"):
        rows = manifest[manifest["status"] == status]
        names = []
        for row in rows.head(MISSING_NAMED).itertuples():
            names.append(f"{row.split} {row.image_id} {row.caption_id} {row.draw}")
        summary[status] = {"count": len(rows), "names": names}
        if names:
            log.warning(
                "%d of %d images are %s, first: %s", len(rows), len(manifest), status, names[0]
            )
    return summary


def generate_images(
    generator: Generator, prompts: pd.DataFrame, context: Context, contents: str = ""
) -> Generated:
    """Run one generator over the prompts.

    Args:
        generator: name, kind and settings.
        prompts: columns of ``tables.PROMPTS``; splits that the kind does not serve are skipped.
        context: tables that the kind reads, and the folder of the images.
        contents: fingerprint of the user's files that the kind reads; they must not change
            meanwhile.

    Returns:
        The manifest, in the order of the prompts; the scenes, if the kind knows them; the summary.
    """
    kind = load_kind(generator.kind)
    settings = generator.settings(context.composition)
    prompts = prompts[prompts["split"].isin(kind.SPLITS)].reset_index(drop=True)
    label = f"generator {generator.name}"
    served = ", ".join(kind.SPLITS)
    # Not an error: a small data set may have no prompt of a split.
    if prompts.empty:
        log.warning("warning: %s: no prompt of the splits that it serves (%s)", label, served)
    log.info("%s: %d prompts of %s", label, len(prompts), served)
    generated = kind.generate(settings, prompts, context)
    # Else the images would not be those that the fingerprint names.
    if contents and kind.fingerprint:
        check_unchanged(contents, kind.fingerprint(settings, context.cache), label)
    # A kind may return its rows in any order.
    manifest = prompts[PROMPT_KEYS].merge(
        generated.manifest, on=PROMPT_KEYS, how="left", validate="one_to_one"
    )
    images = int((manifest["status"] == "ok").sum())
    fault = f"no image for any of {len(prompts)} prompts"
    require(images or prompts.empty, label, fault, "check its source of images")
    log.info("%s: %d images", label, images)
    summary = {"kind": generator.kind, **summarize_images(manifest), **generated.summary}
    return Generated(manifest, generated.scenes, summary)
