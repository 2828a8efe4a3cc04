"""The prompts about compounds, and the texts in them.

The names of prompts are ``template``, ``reversed``, ``descriptions`` and ``examples_1`` to
``examples_7``.

Source: Kumar et al., "Do Vision-Language Models Understand Compound Nouns?" (NAACL 2024), sections
4 and 5; descriptions after Menon and Vondrick, "Visual Classification via Description from Large
Language Models" (ICLR 2023).
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from compclip.compun.load_compounds import name_key
from compclip.core.errors import require
from compclip.io import read_json

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
    require(
        isinstance(content, dict),
        path,
        "does not map compounds to texts",
        'expected {"garden hose": ["…"]}',
    )
    for name, lines in content.items():
        full = (
            isinstance(lines, list)
            and lines
            and all(isinstance(line, str) and line.strip() for line in lines)
        )
        require(full, path, f"{name!r}: expected a list of texts, none of them empty", "correct it")
    texts = {
        name_key(name): [" ".join(text.split()) for text in lines]
        for name, lines in content.items()
    }
    require(
        len(texts) == len(content),
        path,
        "names of compounds that differ only in case or spaces",
        "merge them",
    )
    return texts


def compound_prompts(
    compounds: pd.DataFrame,
    captions: Mapping[str, Sequence[str]],
    descriptions: Mapping[str, Sequence[str]],
) -> Prompts:
    """Return the prompts of each compound that has the texts for them; prompts without compounds
    are skipped.
    """
    result: Prompts = {"template": {}, "reversed": {}, "descriptions": {}}
    result |= {f"{EXAMPLE_PREFIX}{count}": {} for count in range(1, MAX_CAPTIONS + 1)}
    for row in compounds.itertuples():
        name, photo = row.compound, TEMPLATE.format(row.compound)
        result["template"][name] = [photo]
        if pd.notna(row.first) and pd.notna(row.second):
            result["reversed"][name] = [TEMPLATE.format(f"{row.second} {row.first}")]
        examples = [
            f"{photo}. An example of {name} in an image is {text}"
            for text in captions.get(name_key(name), [])
        ]
        for count in range(1, min(len(examples), MAX_CAPTIONS) + 1):
            result[f"{EXAMPLE_PREFIX}{count}"][name] = examples[:count]
        if described := descriptions.get(name_key(name)):
            clauses = [
                text if text.split()[0].lower() in CLAUSE_STARTS else f"has {text}"
                for text in described
            ]
            result["descriptions"][name] = [f"{photo}, which {clause}" for clause in clauses]
    return {prompt: texts for prompt, texts in result.items() if texts}


def captions_of(prompt: str) -> int | None:
    """Return the number of example captions in a prompt, None for other prompts."""
    return int(prompt.removeprefix(EXAMPLE_PREFIX)) if prompt.startswith(EXAMPLE_PREFIX) else None


def usual_prompts(names: Sequence[str]) -> list[str]:
    """Return ``names`` with only one number of example captions: the paper's, else the largest."""
    counts = [count for count in map(captions_of, names) if count is not None]
    usual = PUBLISHED_CAPTIONS if PUBLISHED_CAPTIONS in counts else max(counts, default=None)
    return [name for name in names if captions_of(name) in (None, usual)]
