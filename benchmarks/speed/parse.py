"""Pairs: the extraction, cold, against ``nlp.pipe`` in as many processes, followed by the same
rules.

The baseline loads only the components that the rules need. Both read the same captions, start their
own processes and write a table; the benchmark refuses to compare tables that differ. ``bound`` is
the speed at which every core does nothing but the model's matrix products, once for each distinct
window of the captions.
"""

import os
import sys
import tempfile
import timeit
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import yaml

from benchmarks.speed import compared, timed
from compclip.core.artifacts.parquet import read_table, write_table
from compclip.core.errors import UserError
from compclip.core.identity.code import ROOT
from compclip.core.seeds import rng
from compclip.core.tables import CAPTIONS, PAIRS
from compclip.dataset.sources.cub import CUB_LAYOUT
from compclip.pairs.extract_pairs import extract_pairs
from compclip.text import windows
from compclip.text.language import installed_name, load_language
from compclip.text.lexicon import COMMON_COMPOUNDS, load_lexicon

PARSED_BY = "en_core_web_sm"
CAPTIONS_READ = 24_000
LEXICON_FOLDER = ROOT / "lexicons"


def load_captions() -> pd.DataFrame:
    """Captions of the real birds where preset birds50 finds them, else of the default run."""
    preset = yaml.safe_load((ROOT / "presets" / "birds50.yaml").read_text(encoding="utf-8"))
    archive = ROOT / preset["dataset"]["cub"]["root"] / "cub_captions.zip"
    made = ROOT / "results" / "sketch" / "captions.parquet"
    if archive.is_file():
        return CUB_LAYOUT.read_captions(archive)[0]
    if made.is_file():
        return read_table(made, CAPTIONS)
    raise UserError(f"{made}: no captions to parse: make run first")


def plain_extraction(captions: Path, nouns: Path, processes: int, pairs: Path) -> None:
    """Extract the pairs as a user of spaCy would, who has the rules."""
    import spacy

    from compclip.core.reading.normal import Normalized
    from compclip.pairs.engine import Occurrence, occurrences
    from compclip.pairs.words import Vocabulary, spans

    nlp = spacy.load(installed_name(PARSED_BY), disable=["attribute_ruler", "lemmatizer", "ner"])
    adjectives = [
        load_lexicon(path) for path in sorted((LEXICON_FOLDER / "adjectives").glob("*.yaml"))
    ]
    vocabulary = Vocabulary(nlp, adjectives, load_lexicon(nouns), load_lexicon(COMMON_COMPOUNDS))
    table = read_table(captions, CAPTIONS)
    rows = []
    docs = nlp.pipe(table["text"].tolist(), n_process=processes)
    for image, caption, doc in zip(table["image_id"], table["caption_id"], docs, strict=True):
        words = vocabulary.words(doc)
        rows += [
            (image, caption, *occurrence)
            for occurrence in occurrences(doc, words, spans(words), Normalized(doc.text))
        ]
    write_table(
        pd.DataFrame(rows, columns=["image_id", "caption_id", *Occurrence._fields]), pairs, PAIRS
    )


def library(captions: Path, nouns: Path, processes: int, pairs: Path) -> None:
    """Extract the pairs as the step does, without a cache."""
    adjectives = [
        load_lexicon(path) for path in sorted((LEXICON_FOLDER / "adjectives").glob("*.yaml"))
    ]
    settings: dict[str, Any] = {
        "model": PARSED_BY,
        "processes": processes,
        "cache": pairs.with_suffix(".sqlite"),
    }
    found = extract_pairs(
        read_table(captions, CAPTIONS), adjectives, load_lexicon(nouns), **settings
    )
    write_table(found, pairs, PAIRS)


def bound(texts: list[str]) -> float:
    """Captions a second of this process if it only multiplied matrices, once for each distinct
    window.
    """
    nlp = load_language(PARSED_BY)
    pipe: Any = nlp.get_pipe("tok2vec")
    with patch.object(windows, "MOST_WINDOWS", sys.maxsize):
        docs = list(pipe.pipe(map(nlp.make_doc, texts)))
    weights = [node.get_param("W").size for node in pipe.model.walk() if node.name == "maxout"]
    layers = pipe.model._func.layers
    products = sum(len(layer.positions) * size for layer, size in zip(layers, weights, strict=True))
    parser: Any = nlp.get_pipe("parser")
    below, features, upper = (
        node.get_param("W").size for node in parser.model.walk() if node.has_param("W")
    )
    # The parser takes about two steps for each token.
    products += sum(map(len, docs)) * (below + features + 2 * upper)
    inputs, matrix = np.ones((4096, 288), np.float32), np.ones((288, 288), np.float32)
    seconds = min(timeit.repeat(lambda: pipe.model.ops.gemm(inputs, matrix), number=1, repeat=20))
    return len(texts) / (products * seconds / (inputs.size * len(matrix)))


def measure(
    n: int = CAPTIONS_READ, captions: pd.DataFrame | None = None, nouns: str = "birds"
) -> dict[str, Any]:
    """Captions a second of the step and of the baseline, on ``n`` distinct captions."""
    captions = (load_captions() if captions is None else captions).drop_duplicates("text")
    chosen = sorted(rng(0, "bench", "parse").permutation(len(captions))[:n])
    captions = captions.iloc[chosen].reset_index(drop=True)
    processes, lexicon = len(os.sched_getaffinity(0)), LEXICON_FOLDER / "nouns" / f"{nouns}.yaml"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_table(captions, folder / "captions.parquet", CAPTIONS)
        given = folder / "captions.parquet", lexicon, processes
        baseline, ours = (
            timed("-m", "benchmarks.speed.parse", name, *given, folder / f"{name}.parquet")
            for name in ("plain", "library")
        )
        found, expected = (
            read_table(folder / f"{name}.parquet", PAIRS) for name in ("library", "plain")
        )
    if not found.equals(expected):
        raise UserError(
            f"parse: {len(found)} pairs differ from the baseline's {len(expected)}; compare both "
            "tables"
        )
    n = len(captions)
    return compared(
        n / ours["wall"],
        n / baseline["wall"],
        "captions/s",
        n,
        processes=processes,
        cpu_s=round(ours["cpu"], 1),
        bound=round(processes * bound(captions["text"].tolist()) / (n / baseline["wall"]), 2),
        baseline_cpu_s=round(baseline["cpu"], 1),
    )


if __name__ == "__main__":
    side = {"plain": plain_extraction, "library": library}[sys.argv[1]]
    side(Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]), Path(sys.argv[5]))
