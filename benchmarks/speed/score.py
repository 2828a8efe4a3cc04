"""Score: images against a pool of captions, cold, and the published procedure on some of them.

The published code encodes, for each entry anew, one image and a hundred captions: the baseline does so, with
open_clip's preprocessing. ``bound`` is the ratio if each distinct image and caption went through the judge once,
its pixels read already, and nothing else were done. The two must find the same hits for the same candidates:
``hits_differ`` counts where they do not, ``near_ties`` those of them that another rounding decides.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
import yaml
from PIL import Image

from workflow_scripts.clip.embed import Embedder, merge_equal, similarities
from workflow_scripts.core.cache import Cache
from workflow_scripts.core.code import ROOT
from workflow_scripts.core.io import read_json
from workflow_scripts.dataset.sources import sketch
from workflow_scripts.score.entries import EntrySet, number, renumber
from workflow_scripts.split.pools import CANDIDATES, class_names
from workflow_scripts.stats.r_precision import is_hit, judge, sample_distractors
from workflow_scripts.workflow.config import Config, load_config

ENTRIES, ENTRIES_ANEW = 2000, 120
NEAR = 1e-5


def load_default() -> tuple[Config, Any, Any]:
    """The default config, its judge, and that judge's model as it was trained.

    The trained judge where there is one, else the same untrained.
    """
    from workflow_scripts.clip.model import MODEL, WEIGHTS, build, construct, load_judge, save_judge
    from workflow_scripts.clip.weights import read_weights, start

    config = load_config(yaml.safe_load((ROOT / "config.yaml").read_text(encoding="utf-8")))
    folder = ROOT / config.results / config.dataset.source / config.compositions[0] / "judges" / config.judges[0]
    with tempfile.TemporaryDirectory() as name:
        if not (folder / MODEL).is_file():
            folder = Path(name)
            captions = sketch_captions(200, folder)["text"].tolist()
            save_judge(build(config.judge, captions, config.seed), "untrained", config.judge.crop, folder)
        plain = construct(read_json(folder / MODEL)["model_cfg"])
        start(plain, read_weights(str(folder / WEIGHTS)), str(folder / WEIGHTS))
        return config, load_judge(folder, config.threads, "cpu"), plain


def sketch_captions(n: int, folder: Path) -> pd.DataFrame:
    """n drawn birds in ``folder``, each with one caption that no other has: image_id, caption_id, class_id, text."""
    drawn = sketch.load(sketch.Settings(images=2 * n), seed=1, limit=2 * n, folder=folder, cache=folder)
    captions = drawn.captions.drop_duplicates("text").drop_duplicates("image_id").head(n)
    return captions.reset_index(drop=True)


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    begun = time.perf_counter()
    result = work()
    return time.perf_counter() - begun, result


def measure(n: int = ENTRIES, anew: int = ENTRIES_ANEW) -> dict[str, Any]:
    """Entries a second of the step on ``n`` entries and of the published procedure on ``anew`` of them."""
    config, model, plain = load_default()
    from workflow_scripts.clip.tokens import tokenize
    from workflow_scripts.clip.vision import open_clip

    library = open_clip().transform
    transform = library.image_transform_v2(library.PreprocessCfg(**model.preprocess.cfg), is_train=False)
    candidates = config.score.candidates or CANDIDATES
    rule: dict[str, Any] = {"candidates": candidates, "ties": config.score.ties, "seed": config.seed}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        captions = sketch_captions(n, folder)
        paths = [folder / f"{image}.png" for image in captions["image_id"]]
        entries = captions.assign(draw=0, pair=None, path=list(map(str, paths)))
        items = [(path, None) for path in paths]
        numbered = number(EntrySet("bench", "test_seen", "original", entries, captions), class_names(captions))
        drawn, luck = sample_distractors(
            numbered.entries, np.arange(anew), numbered.pool, rule["candidates"], rule["seed"]
        )
        margins: list[float] = []

        def published(rows: range) -> np.ndarray:
            hits = []
            for row in rows:
                texts = [numbered.texts[i] for i in (numbered.entries.own[row], *drawn[row])]
                with Image.open(paths[row]) as file, torch.inference_mode():
                    image = plain.encode_image(transform(file.convert("RGB"))[None], normalize=True)
                    values = (plain.encode_text(tokenize(model.tokenizer, texts), normalize=True) @ image[0]).numpy()
                margins.append(abs(float(values[0] - values[1:].max())))
                above, equal = values[None, 1:] > values[0], values[None, 1:] == values[0]
                hits.append(is_hit(above, equal, luck[[row]], rule["ties"])[0])
            return np.array(hits)

        def ours() -> np.ndarray:
            with Cache(folder / "cache.sqlite") as cache:
                embedder = Embedder(model, cache, config.score.batch, "bench")
                images = embedder.images(items)
                texts, index = merge_equal(embedder.texts(numbered.texts))
            told = renumber(numbered, index)
            return judge(similarities(images, texts), len(texts), told.entries, told.pool, **rule).hit

        published(range(3))  # what is only slow the first time
        margins.clear()
        half = anew // 2
        before, first = seconds(lambda: published(range(half)))
        own, hits = seconds(ours)
        pixels = model.preprocess.read(items)
        forward = seconds(lambda: model.encode_pixels(pixels, config.score.batch))[0]
        forward += seconds(lambda: model.encode_texts(numbered.texts, config.score.batch))[0]
        after, second = seconds(lambda: published(range(half, anew)))
    each = (before + after) / anew
    differ = hits[:anew] != np.concatenate([first, second])
    return {
        "ratio": round(each * n / own, 2),
        "ours": round(n / own, 1),
        "baseline": round(1 / each, 1),
        "unit": "entries/s",
        "n": n,
        "bound": round(each * n / forward, 2),
        "n_anew": anew,
        "hits_differ": int(differ.sum()),
        "near_ties": int((differ & (np.array(margins) < NEAR)).sum()),
    }
