"""Draft a noun lexicon from captions: the nouns that are most often in pairs, with their forms."""

import re
from pathlib import Path

import pandas as pd
import yaml
from pydantic import Field

from compclip.core.cli import Command
from compclip.core.errors import require
from compclip.core.log import log
from compclip.core.section import Count
from compclip.core.tables import CAPTIONS, PAIRS
from compclip.io import read_table, write_text
from compclip.pairs.counts import surfaces
from compclip.text.grammar import WORDS
from compclip.text.lexicon import plural

DRAFT_HEADER = (
    "# A draft: take out what you do not want to hold out, put synonyms under one word.\n"
)


class DraftNouns(Command):
    """Draft a noun lexicon from captions: the nouns that are most often in pairs, with their forms.

    Run stage pairs with ``pairs.nouns: null`` first. Edit the result: remove nouns that are not
    parts of a thing. A form that two nouns share is listed under the noun that has it more often.
    """

    captions: Path = Field(description="captions.parquet")
    pairs: Path = Field(description="pairs.parquet")
    most: Count = Field(60, ge=1, description="nouns to draft")
    output: Path = Field(description="lexicons/nouns/<name>.yaml; must not exist yet")


def draft(captions: pd.DataFrame, pairs: pd.DataFrame, most: int) -> dict[str, list[str]]:
    """Return the ``most`` frequent nouns of undisputed pairs and their other surface forms; each
    form occurs once.
    """
    undisputed = pairs[pairs["relation"] != "disputed"]
    rows = undisputed.merge(captions, on=["image_id", "caption_id"], validate="many_to_one")
    unwanted = WORDS.vague_words | WORDS.people
    rows = rows[
        ~rows["noun"].isin(unwanted) & ~rows["noun"].str.split("[ -]").str[-1].isin(unwanted)
    ]
    counts = rows.assign(form=surfaces(rows, "noun")).groupby(["noun", "form"]).size()
    frequency = counts.groupby("noun").sum().sort_values(ascending=False, kind="stable")
    drafted = [noun for noun in frequency.index if len(noun) > 1][:most]
    owner = {noun: noun for noun in drafted}
    for noun, form in (
        counts[drafted].sort_index().sort_values(ascending=False, kind="stable").index
    ):
        owner.setdefault(form, noun)
    for noun in drafted:
        # A form in -s is already a plural, such as `shorts`, unlike `bus`, `glass` and `iris`.
        has_plural = any(
            form != noun and form.endswith("s") for form, word in owner.items() if word == noun
        )
        if not has_plural and not re.search("[^aisu]s$", noun):
            owner.setdefault(plural(noun), noun)
    return {
        noun: sorted(form for form, word in owner.items() if word == noun != form)
        for noun in drafted
    }


def main(command: DraftNouns) -> None:
    require(
        not command.output.exists(),
        command.output,
        "output file already exists",
        "choose another path",
    )
    captions = read_table(command.captions, CAPTIONS, columns=["image_id", "caption_id", "text"])
    lexicon = draft(captions, read_table(command.pairs, PAIRS), command.most)
    require(
        lexicon,
        command.pairs,
        "no pairs, so no nouns to draft",
        "set pairs.nouns to null and run pairs again",
    )
    body = yaml.safe_dump(
        lexicon, sort_keys=False, allow_unicode=True, default_flow_style=None, width=110
    )
    write_text(DRAFT_HEADER + body, command.output)
    log.info("%s: %d nouns to edit", command.output, len(lexicon))
