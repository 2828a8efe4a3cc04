"""Find the adjective-noun pairs of captions."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from compclip.core.log import log
from compclip.core.tables import PAIRS, RELATIONS, as_captions
from compclip.io import empty_table
from compclip.pairs.engine import Extractor, Occurrence, decode_occurrences
from compclip.text.language import identity
from compclip.text.lexicon import SHARED, Lexicon, find_lexicon
from compclip.text.parsing import parse_texts


def extract_pairs(
    captions: pd.DataFrame | Sequence[str],
    adjectives: Sequence[Lexicon | str] = SHARED,
    nouns: Lexicon | str | None = None,
    compounds: Lexicon | None = None,
    *,
    model: str = "en_core_web_sm",
    processes: int = 1,
    cache: str | Path = ":memory:",
) -> pd.DataFrame:
    """Find the adjective-noun pairs of captions; each distinct text is parsed once.

    Args:
        captions: texts, or a table with image_id and text (``tables.as_captions``).
        adjectives: lexicons of the adjectives that count, or their names in ``lexicons/adjectives``.
        nouns: lexicon of the nouns that count, or its name in ``lexicons/nouns``; None: any noun.
        compounds: lexicon of compounds that count as one noun; None: ``lexicons/compounds/common.yaml``.
        model: spaCy pipeline.
        processes: processes that parse at once; the result is the same.
        cache: SQLite file of parses, from which a killed call resumes.

    Returns:
        A row for each occurrence, in the order of the captions: image_id, caption_id, adjective, noun (canonical
        words), the character offsets of both, relation.

    Raises:
        UserError: there is no such lexicon, or the pipeline is not installed (``pip install compclip[text]``).
    """
    captions = as_captions(captions)
    listed = [find_lexicon(lexicon, "adjectives") for lexicon in adjectives]
    extractor = Extractor(model, listed, find_lexicon(nouns, "nouns") if nouns else None, compounds)
    log.info("%d captions; new ones are parsed (processes: %d, each about 500 a second)", len(captions), processes)
    encoded = list(parse_texts(extractor, captions["text"].tolist(), processes, cache, "captions"))
    decoded = {value: decode_occurrences(value) for value in set(encoded) if value}
    occurrences = [decoded[value] if value else [] for value in encoded]
    ids = captions[["image_id", "caption_id"]].loc[captions.index.repeat([*map(len, occurrences)])]
    rows = [occurrence for of_caption in occurrences for occurrence in of_caption]
    if not rows:
        return empty_table(PAIRS)
    return pd.concat([ids.reset_index(drop=True), pd.DataFrame(rows, columns=list(Occurrence._fields))], axis=1)


def summarize_pairs(captions: pd.DataFrame, pairs: pd.DataFrame, model: str) -> dict[str, Any]:
    """Return and log counts of captions and pairs; warn if most captions have no pair."""
    relations = pairs["relation"].value_counts()
    with_pairs = len(pairs[["image_id", "caption_id"]].drop_duplicates())
    empty = sum(not text.strip() for text in captions["text"])
    summary = {
        "model": identity(model),
        "captions": len(captions),
        "distinct": captions["text"].nunique(),
        "with_pairs": with_pairs,
        "without_pairs": len(captions) - with_pairs - empty,
        "empty": empty,
        "pairs": len(pairs),
        "relations": {name: int(relations.get(name, 0)) for name in RELATIONS},
    }
    counts = "%(captions)d captions, %(with_pairs)d with pairs, %(without_pairs)d without, %(empty)d empty"
    log.info(f"{counts}; %(pairs)d pairs", summary)
    if 2 * with_pairs < len(captions):
        summary["warning"] = "most captions have no pair: are they in the language of pairs.model?"
        log.warning("warning: %s", summary["warning"])
    return summary
