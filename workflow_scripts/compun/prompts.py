"""The prompts about compounds."""

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
)  # fmt: skip


def compound_prompts(
    compounds: pd.DataFrame,
    captions: Mapping[str, Sequence[str]],
    descriptions: Mapping[str, Sequence[str]],
    most: int,
    templates: Sequence[str] | None,
) -> tuple[Prompts, Lacking]:
    """Return every prompt of every compound, and for each prompt the compounds that lack texts for it.

    Prompts are template, reversed (if first and second are known), examples_1 to examples_``most`` and descriptions;
    with ``templates``, each is asked once with ``TEMPLATE`` and once, as ``_ensemble``, with these. Prompts for which
    no compound has texts are skipped.
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
            enough = {name: texts[:count] for name, texts in examples.items() if len(texts) >= count}
            asked[f"examples_{count}"] = enough
        described = [name for name in names if name in descriptions]
        asked["descriptions"] = {name: by_descriptions(name, descriptions[name], own) for name in described}
        result |= {prompt + ending: texts for prompt, texts in asked.items() if texts}
    return result, {prompt: [name for name in names if name not in texts] for prompt, texts in result.items()}
