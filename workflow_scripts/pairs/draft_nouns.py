"""Draft a noun lexicon from captions: the nouns that are most often in pairs, with their forms."""

from __future__ import annotations

from collections import Counter, defaultdict

import pandas as pd
import yaml
from pydantic import Field

from workflow_scripts.core import cli
from workflow_scripts.core.cli import log
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import read_table, write_text
from workflow_scripts.core.step import Input, Output, Step
from workflow_scripts.core.tables import CAPTIONS, PAIRS

HEAD = "# A draft: take out what you do not want to hold out, put synonyms under one word.\n"


class DraftNouns(Step):
    """Draft a noun lexicon from captions: the nouns that are most often in pairs, with their forms.

    Run stage pairs with ``pairs.nouns: null`` first. Edit the result: remove what is no part of a thing and group
    synonyms. A form that two nouns share goes to the noun that has it more often.
    """

    captions: Input = Field(description="captions.parquet")
    pairs: Input = Field(description="pairs.parquet")
    most: int = Field(60, ge=1, description="nouns to draft")
    output: Output = Field(description="lexicons/nouns/<name>.yaml; must not exist yet")


def draft(captions: pd.DataFrame, pairs: pd.DataFrame, most: int) -> dict[str, list[str]]:
    """Return the ``most`` frequent nouns of undisputed pairs to their other surface forms, each form once."""
    undisputed = pairs[pairs["relation"] != "disputed"]
    rows = undisputed.merge(captions, on=["image_id", "caption_id"], validate="many_to_one")
    counts = Counter(
        (noun, text[start:end].lower())
        for noun, text, start, end in rows[["noun", "text", "noun_start", "noun_end"]].itertuples(index=False)
    )
    frequency: Counter[str] = Counter()
    for (noun, _), n in counts.items():
        frequency[noun] += n
    drafted = sorted(frequency, key=lambda noun: (-frequency[noun], noun))[:most]
    owner = {noun: noun for noun in drafted}
    for (noun, form), _ in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        if noun in owner:
            owner.setdefault(form, noun)
    forms: dict[str, list[str]] = defaultdict(list)
    for form, noun in sorted(owner.items()):
        if form != noun:
            forms[noun].append(form)
    return {noun: forms[noun] for noun in drafted}


def main(step: DraftNouns) -> None:
    if step.output.exists():
        raise UserError(f"{step.output}: output file already exists; choose another path")
    captions = read_table(step.captions, CAPTIONS, columns=["image_id", "caption_id", "text"])
    lexicon = draft(captions, read_table(step.pairs, PAIRS), step.most)
    if not lexicon:
        raise UserError(f"{step.pairs}: no pairs, so no nouns to draft; set pairs.nouns to null and run pairs again")
    body = yaml.safe_dump(lexicon, sort_keys=False, allow_unicode=True, default_flow_style=None, width=110)
    write_text(HEAD + body, step.output)
    log.info("%s: %d nouns to edit", step.output, len(lexicon))


if __name__ == "__main__":
    cli.run(main)
