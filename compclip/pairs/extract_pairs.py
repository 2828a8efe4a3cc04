"""Find the adjective-noun pairs of all captions."""

import pandas as pd

from compclip.core import cli, limits
from compclip.core.cache import Cache
from compclip.core.errors import require
from compclip.core.log import log
from compclip.core.progress import Progress
from compclip.core.tables import CAPTIONS, PAIRS, RELATIONS
from compclip.io import empty_table, read_table, write_json, write_table
from compclip.pairs.engine import Extractor, Occurrence, decode
from compclip.pairs.steps import Extraction, ExtractPairs
from compclip.text.language import identity
from compclip.text.lexicon import load_lexicon
from compclip.text.parsing import fill, values

BATCH = 4096  # captions whose texts are looked up in the cache at once


def read_captions(step: Extraction) -> pd.DataFrame:
    """Return image_id, caption_id and text of all captions; raises UserError if one is too long."""
    captions = read_table(step.captions, CAPTIONS, ["image_id", "caption_id", "text"])
    for row in captions[captions["text"].str.len() > limits.CAPTION].head(1).itertuples():
        fault = limits.over("CAPTION", f"{len(row.text):,} characters")
        require(False, f"{step.captions}: {row.image_id}, caption {row.caption_id}", fault, "shorten or remove it")
    return captions


def extract(step: Extraction, captions: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of pairs.parquet for ``captions``, in their order."""
    nouns = load_lexicon(step.nouns) if step.nouns else None
    adjectives = [load_lexicon(path) for path in step.adjectives]
    extractor = Extractor(step.parsing.model, adjectives, nouns, load_lexicon(step.compounds))
    texts = captions["text"].tolist()
    batches = [texts[start : start + BATCH] for start in range(0, len(texts), BATCH)]
    log.info("%d captions; new ones are parsed (processes: %d, each about 500 a second)", len(texts), step.processes)
    with Cache(step.cache / "pairs" / "occurrences.sqlite") as cache:
        with Progress(len(texts), "captions") as progress:
            parsed = fill(extractor, cache, batches, step.processes, progress.add)
        log.info("%d distinct captions parsed; the others were cached", parsed)
        encoded = [value for batch in batches for value in values(extractor, cache, batch)]
    decoded = {value: decode(value) for value in set(encoded) if value}
    occurrences = [decoded[value] if value else [] for value in encoded]
    ids = captions[["image_id", "caption_id"]].loc[captions.index.repeat([*map(len, occurrences)])]
    rows = [occurrence for of_caption in occurrences for occurrence in of_caption]
    if not rows:
        return empty_table(PAIRS)
    return pd.concat([ids.reset_index(drop=True), pd.DataFrame(rows, columns=list(Occurrence._fields))], axis=1)


def main(step: ExtractPairs) -> None:
    captions = read_captions(step)
    if step.extracted:
        pairs = pd.concat([read_table(path, PAIRS) for path in step.extracted], ignore_index=True)
    else:
        pairs = extract(step, captions)
    write_table(pairs, step.pairs, PAIRS)
    relations = pairs["relation"].value_counts()
    with_pairs = len(pairs[["image_id", "caption_id"]].drop_duplicates())
    empty = sum(not text.strip() for text in captions["text"])
    summary = {
        "model": identity(step.parsing.model),
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
    write_json(summary, step.summary)


if __name__ == "__main__":
    cli.run(main)
