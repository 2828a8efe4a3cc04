"""Find the adjective-noun pairs of captions."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import pandas as pd
from pydantic import BeforeValidator

from compclip.core.artifacts.parquet import empty_table
from compclip.core.log import log
from compclip.core.settings.arguments import Captions, Positive, read_list
from compclip.core.settings.calls import checked
from compclip.core.tables import CAPTION_KEY, PAIRS
from compclip.pairs.engine import Extractor, Occurrence, decode_occurrences
from compclip.pairs.noun_forms import NounForms, caption_words
from compclip.text.lexicon import SHARED, Lexicon, find_lexicon
from compclip.text.parsing import parse_texts


@checked
def extract_pairs(
    captions: Captions,
    adjectives: Annotated[Sequence[Lexicon | str], BeforeValidator(read_list)] = SHARED,
    nouns: Lexicon | str | None = None,
    compounds: Lexicon | None = None,
    *,
    model: str = "en_core_web_sm",
    processes: Positive = 1,
    cache: str | Path = ":memory:",
) -> pd.DataFrame:
    """Find the adjective-noun pairs of captions; each distinct text is parsed once.

    A word of a lexicon is read as the lexicon says, whatever its tag, and named by its canonical
    word. Adjectives and nouns that no lexicon lists are read by their tags and have rows, too:
    ``rank_pairs`` counts all adjectives, then ranks those that are listed.

    Args:
        captions: texts, or a table with image_id and text (``inputs.as_captions``).
        adjectives: lexicons, or their names in ``lexicons/adjectives``.
        nouns: a lexicon, or its name in ``lexicons/nouns``; None: all nouns are read by their tags.
        compounds: lexicon of compounds that count as one noun; None:
            ``lexicons/compounds/common.yaml``.
        model: spaCy pipeline.
        processes: processes that parse at once; the result is the same.
        cache: SQLite file of parses, from which a killed call resumes.

    Returns:
        A row for each occurrence, in the order of the captions: image_id, caption_id, adjective,
            noun (canonical words), the character offsets of both, relation.

    Raises:
        UserError: an argument is refused (docs/library.md), there is no such lexicon, or
            the pipeline is not installed (``pip install compclip[text]``).
    """
    listed = [find_lexicon(lexicon, "adjectives") for lexicon in adjectives]
    listed_nouns = find_lexicon(nouns, "nouns") if nouns else None
    extractor = Extractor(model, listed, listed_nouns, compounds)
    pairs = parse_captions(captions, extractor, processes, cache)
    # Without a noun lexicon, the words of all captions decide which forms are of one noun.
    words = None if nouns else caption_words(captions["text"])
    return NounForms(extractor.vocabulary, words).unite(captions, pairs)


def parse_captions(
    captions: pd.DataFrame, extractor: Extractor, processes: int = 1, cache: str | Path = ":memory:"
) -> pd.DataFrame:
    """Find the pairs of captions; nouns are lemmas, which only ``NounForms`` makes the same for all
    forms of a noun.
    """
    log.info(
        "%d captions; new ones are parsed (processes: %d, each about 500 a second)",
        len(captions),
        processes,
    )
    texts = captions["text"].tolist()
    encoded = list(parse_texts(extractor, texts, processes, cache, "captions"))
    # Many captions have the same text, or the same few pairs.
    decoded = {value: decode_occurrences(value) for value in set(encoded) if value}
    rows: list[Occurrence] = []
    numbers = []  # of occurrences, by caption
    for value in encoded:
        occurrences = decoded[value] if value else []
        rows += occurrences
        numbers.append(len(occurrences))
    if not rows:
        return empty_table(PAIRS)
    ids = captions[CAPTION_KEY].loc[captions.index.repeat(numbers)].reset_index(drop=True)
    table = pd.DataFrame(rows, columns=list(Occurrence._fields))
    return pd.concat([ids, table], axis=1)
