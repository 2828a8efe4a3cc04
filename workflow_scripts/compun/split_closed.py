"""Propose the two nouns of compounds written as one word: gold and fish of ``goldfish``.

The reversed prompt needs them. Reads a list of compounds and writes it as a CSV table with ``first`` and ``second``:
those of its columns, those of compounds that are written apart, and for closed ones a cut into two words of a list of
nouns. ``check`` says which are proposals, with the other cuts, and where there was none. Mend those rows and empty
their ``check``: what is not empty is counted as unchecked. The nouns are those that the spaCy pipeline's lemmatizer
knows (WordNet's, for English), or the lines of a file.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from workflow_scripts.compun.compounds import COLUMNS, key, read_list, read_words
from workflow_scripts.core import cli
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import write_text
from workflow_scripts.text.language import load_language

LEAST = 2  # letters of a constituent
ALWAYS = ("compound", "first", "second", "check")


def cuts(word: str, nouns: frozenset[str]) -> list[tuple[str, str]]:
    """All ways to cut ``word`` into two nouns, the likeliest first.

    A noun in the plural, in -s, is one too, and less likely than the singular: of ``eggshell``, egg shell goes before
    eggs hell. Of cuts that are alike, the one whose shorter noun is longer goes first.
    """

    def plural(part: str) -> bool:
        return part.endswith("s") and part[:-1] in nouns

    def known(part: str) -> bool:
        return part in nouns or plural(part)

    word = key(word)
    found = [(word[:place], word[place:]) for place in range(LEAST, len(word) - LEAST + 1)]
    found = [pair for pair in found if all(map(known, pair))]
    return sorted(found, key=lambda pair: (sum(map(plural, pair)), -min(map(len, pair)), pair))


def propose(compounds: pd.DataFrame, nouns: Callable[[], frozenset[str]]) -> pd.DataFrame:
    """``compounds`` (columns of ``read_list``) with first and second wherever a cut was found, and ``check``.

    ``nouns`` is called if there is a compound to cut.
    """
    rows = compounds.to_dict("records")
    closed = [row for row in rows if row["first"] is None]
    words = nouns() if closed else frozenset()
    for row in closed:
        found = cuts(row["compound"], words)
        if not found:
            row["check"] = "no cut into two nouns found"
            continue
        row["first"], row["second"] = found[0]
        row["n1"], row["n2"] = row["n1"] or row["first"], row["n2"] or row["second"]
        others = ", ".join(" ".join(pair) for pair in found[1:])
        row["check"] = f"proposed; or {others}" if others else "proposed"
    return pd.DataFrame(rows, columns=["compound", *COLUMNS], dtype=object)


def spacy_nouns(model: str) -> frozenset[str]:
    """The nouns, in lower case, whose lemma the pipeline's lemmatizer looks up; UserError where it has no such list."""
    nlp = load_language(model)
    if "lemmatizer" in nlp.component_names:
        lookups = nlp.get_pipe("lemmatizer").lookups
        if lookups.has_table("lemma_index") and "noun" in (index := lookups.get_table("lemma_index")):
            return frozenset(index["noun"])
    raise UserError(f"--model: {model} has no list of nouns: name a file of nouns by --words, a word a line")


def file_nouns(file: Path) -> frozenset[str]:
    """A word a line, in lower case; UserError where there is none."""
    found = frozenset(key(word) for _, word in read_words(file))
    if not found:
        raise UserError(f"{file}: no words: give a noun a line")
    return found


def table_text(compounds: pd.DataFrame) -> str:
    """As CSV: the columns that hold something, constituents and check always; n1, n2 where they say something."""
    for name, part in (("n1", "first"), ("n2", "second")):
        compounds = compounds.assign(**{name: compounds[name].where(compounds[name] != compounds[part], None)})
    keep = [name for name in compounds if name in ALWAYS or compounds[name].notna().any()]
    return compounds[keep].to_csv(index=False, lineterminator="\n")


def main(options: argparse.Namespace) -> None:
    if options.output.exists():
        raise UserError(f"{options.output}: is there already: name another file")
    compounds = propose(
        read_list(options.file), lambda: file_nouns(options.words) if options.words else spacy_nouns(options.model)
    )
    write_text(table_text(compounds), options.output)
    proposed = compounds["check"].fillna("").str.startswith("proposed")
    cli.log.info(
        "%s: %d compounds; %d constituents proposed, %d without a cut: look at the column check, then empty it",
        options.output, len(compounds), proposed.sum(), compounds["first"].isna().sum(),
    )  # fmt: skip


if __name__ == "__main__":
    parser = cli.parser(__doc__)
    parser.add_argument("--file", type=Path, required=True, help="the list: text or table")
    parser.add_argument("--words", type=Path, help="nouns, a word a line; default: those of --model")
    parser.add_argument("--model", default="en_core_web_sm", help="spaCy pipeline")
    parser.add_argument("--output", type=Path, required=True, help="CSV to check and to name as the list")
    cli.run(main, parser)
