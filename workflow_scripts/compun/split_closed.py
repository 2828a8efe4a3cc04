"""Propose the two nouns of compounds written as one word: gold and fish of ``goldfish``."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import Field

from workflow_scripts.compun.compounds import COLUMNS, key, read_list, read_words
from workflow_scripts.core import cli
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import write_text
from workflow_scripts.core.step import Input, Output, Step
from workflow_scripts.text.language import load_language

MIN_LETTERS = 2  # of a constituent
ALWAYS = ("compound", "first", "second", "check")


class SplitClosed(Step):
    """Propose the two nouns of compounds written as one word: gold and fish of goldfish.

    The reversed prompt needs them. Writes the list as a CSV table with first and second: those of its columns, those
    of compounds written apart, and for closed compounds a split into two nouns. Column check marks proposals, lists
    other splits, and says where none was found. Correct these rows and empty their check; rows with a check are counted
    as unchecked. The nouns are those that the spaCy pipeline's lemmatizer knows (WordNet's, for English), or the lines
    of a file.
    """

    file: Input = Field(description="list of compounds, a text file or a table")
    words: Input | None = Field(None, description="nouns, one a line; by default those of --model")
    model: str = Field("en_core_web_sm", description="spaCy pipeline")
    output: Output = Field(description="CSV to check and to use as the list")


def cuts(word: str, nouns: frozenset[str]) -> list[tuple[str, str]]:
    """Return all splits of ``word`` into two nouns, the most plausible first.

    A plural in -s counts as a noun, and is less plausible than a singular: for ``eggshell``, egg shell precedes
    eggs hell. Of equally plausible splits, the one whose shorter noun is longer comes first.
    """

    def plural(noun: str) -> bool:
        return noun.endswith("s") and noun[:-1] in nouns

    word = key(word)
    splits = [(word[:place], word[place:]) for place in range(MIN_LETTERS, len(word) - MIN_LETTERS + 1)]
    splits = [pair for pair in splits if all(noun in nouns or plural(noun) for noun in pair)]
    return sorted(splits, key=lambda pair: (sum(map(plural, pair)), -min(map(len, pair)), pair))


def propose(compounds: pd.DataFrame, nouns: Callable[[], frozenset[str]]) -> pd.DataFrame:
    """Fill in first, second and check of ``compounds``; ``nouns`` is called only if there is a compound to split."""
    rows = compounds.to_dict("records")
    closed = [row for row in rows if row["first"] is None]
    words = nouns() if closed else frozenset()
    for row in closed:
        splits = cuts(row["compound"], words)
        if not splits:
            row["check"] = "no cut into two nouns found"
            continue
        row["first"], row["second"] = splits[0]
        row["n1"], row["n2"] = row["n1"] or row["first"], row["n2"] or row["second"]
        others = ", ".join(" ".join(pair) for pair in splits[1:])
        row["check"] = f"proposed; or {others}" if others else "proposed"
    return pd.DataFrame(rows, columns=["compound", *COLUMNS], dtype=object)


def spacy_nouns(model: str) -> frozenset[str]:
    """Return the nouns, in lower case, whose lemma the pipeline's lemmatizer looks up."""
    nlp = load_language(model)
    if "lemmatizer" in nlp.component_names:
        lemmatizer: Any = nlp.get_pipe("lemmatizer")
        lookups = lemmatizer.lookups
        if lookups.has_table("lemma_index") and "noun" in (index := lookups.get_table("lemma_index")):
            return frozenset(index["noun"])
    raise UserError(f"--model: {model} has no list of nouns; give a file of nouns by --words, one a line")


def file_nouns(file: Path) -> frozenset[str]:
    nouns = frozenset(key(word) for _, word in read_words(file))
    if not nouns:
        raise UserError(f"{file}: no words; give one noun a line")
    return nouns


def table_text(compounds: pd.DataFrame) -> str:
    """Return CSV with the columns that hold something; n1 and n2 only where they differ from the constituents."""
    for name, part in (("n1", "first"), ("n2", "second")):
        compounds = compounds.assign(**{name: compounds[name].where(compounds[name] != compounds[part], None)})
    keep = [name for name in compounds if name in ALWAYS or compounds[name].notna().any()]
    return compounds[keep].to_csv(index=False, lineterminator="\n")


def main(step: SplitClosed) -> None:
    if step.output.exists():
        raise UserError(f"{step.output}: output file already exists; choose another path")
    compounds = propose(read_list(step.file), lambda: file_nouns(step.words) if step.words else spacy_nouns(step.model))
    write_text(table_text(compounds), step.output)
    proposed = compounds["check"].fillna("").str.startswith("proposed")
    cli.log.info(
        "%s: %d compounds; %d splits proposed, %d not found: check and empty the column check",
        step.output, len(compounds), proposed.sum(), compounds["first"].isna().sum(),
    )  # fmt: skip


if __name__ == "__main__":
    cli.run(main)
