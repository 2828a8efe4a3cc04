"""Pairs: the step that extracts them, cold and with its start, against a loop of ``nlp(text)``.

The loop runs the pipeline as it is loaded, on fewer captions, half before and half after the step, so that a
machine that grows warm or busy slows both. ``components`` is a loop of the components that the step runs.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import yaml

from workflow_scripts.core.code import ROOT
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import read_table, write_table
from workflow_scripts.core.seeds import rng
from workflow_scripts.core.tables import CAPTIONS
from workflow_scripts.dataset.sources.cub import read_captions
from workflow_scripts.text.language import installed_name, load_language

if TYPE_CHECKING:
    from spacy.language import Language

MODEL = "en_core_web_sm"
CAPTIONS_OURS, CAPTIONS_LOOP = 24_000, 4_000
LEXICONS = ROOT / "lexicons"


def load_captions() -> pd.DataFrame:
    """Captions of the real birds where preset birds50 finds them, else of the default run."""
    preset = yaml.safe_load((ROOT / "presets" / "birds50" / "config.yaml").read_text(encoding="utf-8"))
    archive = ROOT / preset["dataset"]["cub"]["root"] / "cub_captions.zip"
    made = ROOT / "results" / "sketch" / "captions.parquet"
    if archive.is_file():
        return read_captions(archive)[0]
    if made.is_file():
        return read_table(made, CAPTIONS)
    raise UserError(f"{made}: no captions to parse: make run first")


def seconds(nlp: Language, texts: Sequence[str]) -> float:
    """How long a loop over the texts takes."""
    begun = time.perf_counter()
    for text in texts:
        nlp(text)
    return time.perf_counter() - begun


def measure(n: int = CAPTIONS_OURS, loop: int = CAPTIONS_LOOP) -> dict[str, Any]:
    """Captions a second of the step on ``n`` distinct captions and of the loop on ``loop`` of them."""
    captions = load_captions().drop_duplicates("text")
    chosen = sorted(rng(0, "bench", "parse").permutation(len(captions))[:n])
    captions = captions.iloc[chosen].reset_index(drop=True)
    texts = captions["text"].tolist()[:loop]

    import spacy

    whole, lean = spacy.load(installed_name(MODEL)), load_language(MODEL)
    half = len(texts) // 2
    before = seconds(whole, texts[:half])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_table(captions, folder / "captions.parquet", CAPTIONS)
        command = [
            sys.executable, "-m", "workflow_scripts.pairs.extract_pairs",
            "--captions", folder / "captions.parquet",
            "--adjectives", *sorted((LEXICONS / "adjectives").glob("*.yaml")),
            "--nouns", LEXICONS / "nouns" / "birds.yaml", "--model", MODEL, "--processes", "2",
            "--cache", folder / "cache", "--output", folder / "pairs.parquet", "--summary", folder / "pairs.json",
        ]  # fmt: skip
        begun = time.perf_counter()
        subprocess.run([str(part) for part in command], cwd=ROOT, check=True)
        step = time.perf_counter() - begun
    after = seconds(whole, texts[half:])
    same = seconds(lean, texts[:half])
    ours, baseline = len(captions) / step, len(texts) / (before + after)
    return {
        "ratio": round(ours / baseline, 2),
        "ours": round(ours, 1),
        "baseline": round(baseline, 1),
        "unit": "captions/s",
        "n": len(captions),
        "components": round(half / same, 1),
        "n_loop": len(texts),
    }
