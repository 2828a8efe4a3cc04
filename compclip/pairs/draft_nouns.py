"""Draft a noun lexicon from captions: the nouns that are most often in pairs, with their forms."""

import re
from collections.abc import Mapping
from pathlib import Path

import pandas as pd
import yaml
from pydantic import Field

from compclip.core.artifacts.files import write_text
from compclip.core.artifacts.parquet import read_table
from compclip.core.errors import require
from compclip.core.log import log
from compclip.core.settings.cli import Command
from compclip.core.settings.section import Count
from compclip.core.tables import CAPTION_KEY, CAPTIONS, PAIRS
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
    rows = undisputed.merge(captions, on=CAPTION_KEY, validate="many_to_one")
    unwanted = WORDS.vague_words | WORDS.people
    # The last word of a compound decides.
    last_words = rows["noun"].str.split("[ -]").str[-1]
    rows = rows[~rows["noun"].isin(unwanted) & ~last_words.isin(unwanted)]
    forms = rows.assign(form=surfaces(rows, "noun"))
    counts = forms.groupby(["noun", "form"]).size()
    frequency = counts.groupby("noun").sum().sort_values(ascending=False, kind="stable")
    # A letter is no noun.
    drafted = [noun for noun in frequency.index if len(noun) > 1][:most]
    noun_of_form = {noun: noun for noun in drafted}
    # The most frequent noun of a form comes first; equal ones by name.
    by_count = counts[drafted].sort_index().sort_values(ascending=False, kind="stable")
    for noun, form in by_count.index:
        noun_of_form.setdefault(form, noun)
    for noun in drafted:
        forms_in_s = [form for form in _other_forms(noun, noun_of_form) if form.endswith("s")]
        # A form in -s is already a plural, such as `shorts`, unlike `bus`, `glass` and `iris`.
        if not forms_in_s and not re.search("[^aisu]s$", noun):
            noun_of_form.setdefault(plural(noun), noun)
    return {noun: sorted(_other_forms(noun, noun_of_form)) for noun in drafted}


def _other_forms(noun: str, noun_of_form: Mapping[str, str]) -> list[str]:
    return [form for form, word in noun_of_form.items() if word == noun and form != noun]


def main(command: DraftNouns) -> None:
    is_new = not command.output.exists()
    require(is_new, command.output, "output file already exists", "choose another path")
    captions = read_table(command.captions, CAPTIONS, columns=[*CAPTION_KEY, "text"])
    pairs = read_table(command.pairs, PAIRS)
    lexicon = draft(captions, pairs, command.most)
    remedy = "set pairs.nouns to null and run pairs again"
    require(lexicon, command.pairs, "no pairs, so no nouns to draft", remedy)
    body = yaml.safe_dump(
        lexicon, sort_keys=False, allow_unicode=True, default_flow_style=None, width=110
    )
    write_text(DRAFT_HEADER + body, command.output)
    log.info("%s: %d nouns to edit", command.output, len(lexicon))
