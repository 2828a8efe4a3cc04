"""Draft a noun lexicon from captions of one's own: the nouns that most often stand in pairs, with their forms.

Run the pairs stage with ``pairs.nouns: null`` first. What comes out is for people to edit: take out what is no part
of a thing, put synonyms together. Forms that two nouns claim go to the one that has them more often.
"""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from pathlib import Path

import pandas as pd
import yaml

from workflow_scripts.core import cli
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import read_table, write_text
from workflow_scripts.core.tables import CAPTIONS, PAIRS

HEAD = "# A draft: take out what you do not want to hold out, put synonyms under one word.\n"


def draft(captions: pd.DataFrame, pairs: pd.DataFrame, most: int) -> dict[str, list[str]]:
    """The ``most`` frequent nouns of undisputed pairs: word to its other surface forms, each form in one place.

    captions: image_id, caption_id, text; pairs: columns of ``tables.PAIRS``.
    """
    found = pairs[pairs["relation"] != "disputed"].merge(
        captions, on=["image_id", "caption_id"], validate="many_to_one"
    )
    seen = Counter(
        (noun, text[start:end].lower())
        for noun, text, start, end in found[["noun", "text", "noun_start", "noun_end"]].itertuples(index=False)
    )
    frequency: Counter[str] = Counter()
    for (noun, _), n in seen.items():
        frequency[noun] += n
    chosen = sorted(frequency, key=lambda noun: (-frequency[noun], noun))[:most]
    owner = {noun: noun for noun in chosen}
    for (noun, form), _ in sorted(seen.items(), key=lambda item: (-item[1], item[0])):
        if noun in owner:
            owner.setdefault(form, noun)
    forms: dict[str, list[str]] = defaultdict(list)
    for form, noun in sorted(owner.items()):
        if form != noun:
            forms[noun].append(form)
    return {noun: forms[noun] for noun in chosen}


def main(options: argparse.Namespace) -> None:
    if options.output.exists():
        raise UserError(f"{options.output}: is there already: name another file")
    captions = read_table(options.captions, CAPTIONS, columns=["image_id", "caption_id", "text"])
    lexicon = draft(captions, read_table(options.pairs, PAIRS), options.most)
    if not lexicon:
        raise UserError(f"{options.pairs}: no pair, so no noun to draft")
    body = yaml.safe_dump(lexicon, sort_keys=False, allow_unicode=True, default_flow_style=None, width=110)
    write_text(HEAD + body, options.output)
    cli.log.info("%s: %d nouns to edit", options.output, len(lexicon))


if __name__ == "__main__":
    parser = cli.parser(__doc__)
    parser.add_argument("--captions", type=Path, required=True, help="captions.parquet")
    parser.add_argument("--pairs", type=Path, required=True, help="pairs.parquet")
    parser.add_argument("--most", type=int, default=60, help="nouns to draft")
    parser.add_argument("--output", type=Path, required=True, help="lexicons/nouns/<name>.yaml")
    cli.run(main, parser)
