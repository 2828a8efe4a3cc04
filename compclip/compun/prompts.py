"""The prompts about compounds, and the texts in them.

The names of prompts are ``template``, ``reversed``, ``descriptions`` and ``examples_1`` to
``examples_7``.

Source: Kumar et al., "Do Vision-Language Models Understand Compound Nouns?" (NAACL 2024), sections
4 and 5; descriptions after Menon and Vondrick, "Visual Classification via Description from Large
Language Models" (ICLR 2023).
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from compclip.compun.load_compounds import name_key
from compclip.core.artifacts.files import read_json
from compclip.core.errors import require

# The texts of each prompt and compound; the similarities of a compound's texts are averaged.
Prompts = dict[str, dict[str, list[str]]]
TEMPLATE = "a photo of a {}"
EXAMPLE_PREFIX = "examples_"
# Descriptions that begin with these words are clauses: ``often lies in grass``.
CLAUSE_STARTS = ("is", "are", "has", "have", "can", "may", "often", "typically", "usually")
MAX_CAPTIONS = 7  # example captions of a compound in the paper's table 2
PUBLISHED_CAPTIONS = 5  # in its table 1


def read_texts(path: Path) -> dict[str, list[str]]:
    """Return the texts of each compound, by ``name_key`` of its name; the file is JSON, ``{"garden
    hose": ["…"]}``.
    """
    content = read_json(path)
    expected = 'expected {"garden hose": ["…"]}'
    require(isinstance(content, dict), path, "does not map compounds to texts", expected)
    texts = {}
    for name, lines in content.items():
        fault = f"{name!r}: expected a list of texts, none of them empty"
        require(_are_texts(lines), path, fault, "correct it")
        texts[name_key(name)] = [" ".join(line.split()) for line in lines]
    fault = "names of compounds that differ only in case or spaces"
    require(len(texts) == len(content), path, fault, "merge them")
    return texts


def _are_texts(lines: Any) -> bool:
    if not isinstance(lines, list) or not lines:
        return False
    return all(isinstance(line, str) and line.strip() for line in lines)


def compound_prompts(
    compounds: pd.DataFrame,
    captions: Mapping[str, Sequence[str]],
    descriptions: Mapping[str, Sequence[str]],
) -> Prompts:
    """Return the prompts of each compound that has the texts for them; prompts without compounds
    are skipped.
    """
    prompts: Prompts = {"template": {}, "reversed": {}, "descriptions": {}}
    for count in range(1, MAX_CAPTIONS + 1):
        prompts[f"{EXAMPLE_PREFIX}{count}"] = {}
    for row in compounds.itertuples():
        name = row.compound
        photo = TEMPLATE.format(name)
        prompts["template"][name] = [photo]
        # A compound written as one word may lack its nouns.
        if pd.notna(row.first) and pd.notna(row.second):
            prompts["reversed"][name] = [TEMPLATE.format(f"{row.second} {row.first}")]
        example_prefix = f"{photo}. An example of {name} in an image is"
        examples = [f"{example_prefix} {text}" for text in captions.get(name_key(name), [])]
        for count in range(1, min(len(examples), MAX_CAPTIONS) + 1):
            prompts[f"{EXAMPLE_PREFIX}{count}"][name] = examples[:count]
        clauses = [_clause(text) for text in descriptions.get(name_key(name), [])]
        if clauses:
            prompts["descriptions"][name] = [f"{photo}, which {clause}" for clause in clauses]
    return {prompt: texts for prompt, texts in prompts.items() if texts}


def _clause(description: str) -> str:
    """Return what follows `which` in a prompt: ``orange scales`` becomes ``has orange scales``."""
    first_word = description.split()[0].lower()
    return description if first_word in CLAUSE_STARTS else f"has {description}"


def distinct_texts(prompts: Prompts) -> list[str]:
    """Return the texts of all prompts, each once, in the order in which they first occur."""
    texts: dict[str, None] = {}
    for texts_by_compound in prompts.values():
        for compound_texts in texts_by_compound.values():
            texts |= dict.fromkeys(compound_texts)
    return list(texts)


def captions_of(prompt: str) -> int | None:
    """Return the number of example captions in a prompt, None for other prompts."""
    if not prompt.startswith(EXAMPLE_PREFIX):
        return None
    return int(prompt.removeprefix(EXAMPLE_PREFIX))


def usual_prompts(names: Sequence[str]) -> list[str]:
    """Return ``names`` with only one number of example captions: the paper's, else the largest."""
    counts = [count for count in map(captions_of, names) if count is not None]
    usual = max(counts, default=None)
    if PUBLISHED_CAPTIONS in counts:
        usual = PUBLISHED_CAPTIONS
    return [name for name in names if captions_of(name) in (None, usual)]
