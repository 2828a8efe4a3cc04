"""The names of prompts: ``template``, ``reversed``, ``descriptions``, ``examples_5``, with or without ``_ensemble``."""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from workflow_scripts.core.errors import UserError

BASES = ("template", "reversed", "descriptions", "examples")
PROMPT = re.compile(rf"({'|'.join(BASES)})(?:_(\d+))?(_ensemble)?")
PUBLISHED_CAPTIONS = 5  # of a compound, in the paper's table 1


class Prompt(NamedTuple):
    """The parts of a prompt's name; ``captions`` is the number of examples, None for prompts without."""

    base: str
    captions: int | None
    ensemble: bool


def read_prompt(name: str) -> Prompt:
    """Return the parts of a name such as ``examples_5_ensemble``; raise UserError for a name of another form."""
    parts = PROMPT.fullmatch(name)
    if parts is None or (parts[1] == "examples") != (parts[2] is not None):
        names = "template, reversed, descriptions or examples_N"
        raise UserError(f"prompt {name!r}: expected {names}, with or without _ensemble")
    return Prompt(parts[1], int(parts[2]) if parts[2] else None, parts[3] is not None)


def in_order(choices: pd.DataFrame) -> pd.DataFrame:
    """Sort prompts within each model by BASES and number of captions, ensembles last; models keep their order."""

    def place(name: str) -> tuple[bool, int, int]:
        base, captions, ensemble = read_prompt(name)
        return ensemble, BASES.index(base), captions or 0

    model = pd.factorize(choices["model"])[0]
    prompts = {name: at for at, name in enumerate(sorted(choices["prompt"].unique(), key=place))}
    return choices.iloc[np.lexsort((choices["prompt"].map(prompts), model))]


def usual_prompts(prompts: Sequence[str]) -> list[str]:
    """Return ``prompts`` with only one number of example captions: the paper's, or otherwise the largest."""
    counts = [count for _, count, _ in map(read_prompt, prompts) if count is not None]
    usual = PUBLISHED_CAPTIONS if PUBLISHED_CAPTIONS in counts else max(counts, default=None)
    return [name for name in prompts if read_prompt(name).captions in (None, usual)]
