"""The prompts that a model is asked about compounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from workflow_scripts.clip.prompts import (
    ENSEMBLE,
    TEMPLATE,
    Lacking,
    Prompts,
    by_captions,
    by_descriptions,
    make_prompts,
)


def compound_prompts(
    compounds: pd.DataFrame,
    captions: Mapping[str, Sequence[str]],
    descriptions: Mapping[str, Sequence[str]],
    most: int,
    templates: Sequence[str] | None,
) -> tuple[Prompts, Lacking]:
    """Every prompt of every compound: template, reversed, examples_1 to examples_``most``, descriptions.

    compounds: columns compound, first and second (null where unknown: no reversed prompt). templates: of the
    ensembles, None for none; each prompt then is there twice, once with ``TEMPLATE`` alone and once, with ``_ensemble``
    behind its name, with these. A prompt that no compound has what it takes for is left out.
    """
    names = compounds["compound"].tolist()
    parts = zip(names, compounds["first"], compounds["second"], strict=True)
    reverse = {name: f"{second} {first}" for name, first, second in parts if pd.notna(first) and pd.notna(second)}
    result: Prompts = {}
    for ending, own in [("", [TEMPLATE])] + ([(ENSEMBLE, list(templates))] if templates else []):
        asked: Prompts = {
            "template": {name: make_prompts([name], own) for name in names},
            "reversed": {name: make_prompts([other], own) for name, other in reverse.items()},
        }
        examples = {name: by_captions(name, captions[name][:most], own) for name in names if name in captions}
        for count in range(1, most + 1):
            enough = {name: found[:count] for name, found in examples.items() if len(found) >= count}
            asked[f"examples_{count}"] = enough
        asked["descriptions"] = {
            name: by_descriptions(name, descriptions[name], own) for name in names if name in descriptions
        }
        result |= {prompt + ending: found for prompt, found in asked.items() if found}
    return result, {prompt: [name for name in names if name not in found] for prompt, found in result.items()}
