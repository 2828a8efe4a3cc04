"""SPECS: a table of pairs scored by ``score_pairs``, against a plain loop over batches of distinct
images and captions.

open_clip's ViT-B/32 with random weights, stretched to 248 tokens; photographs and long captions.
The baseline reads images by Pillow and open_clip's transform, captions by open_clip's tokenizer,
and encodes each distinct one once, in batches as large as ours, all 248 places of a caption. The
cosines of the two must agree, or the benchmark fails: ``max_difference``. ``bound`` is the ratio if
each distinct image and caption went through the judge once, its pixels read already, and nothing
else were done; without the captions where they are cached.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from PIL import Image

from benchmarks.speed import compared, seconds
from benchmarks.speed.judge_cached import as_photograph
from compclip.clip.device import is_gpu
from compclip.clip.embed import Embedder
from compclip.core.identity.vector_cache import VectorCache
from compclip.core.progress import Progress
from compclip.core.seeds import rng
from compclip.dataset.sketch.description import count_values, describe_scene, grow
from compclip.dataset.sketch.world import Dice
from compclip.dataset.sources import sketch
from compclip.specs.score import score_pairs
from workflow_scripts.workflow.config import Config

if TYPE_CHECKING:
    from compclip.clip.model import Built

SEED = 0
OTHERS_EACH = 3
# A caption has so many or more, up to a whole description.
SENTENCES = 12
COSINE_TOLERANCE = 1e-4
WARM_RUNS = 5

PathsAndTexts = list[tuple[Path, str]]


def described_birds(n: int, folder: Path) -> tuple[list[Path], list[str]]:
    """n photographs of drawn birds in ``folder``, and of each one's description as many sentences
    as a die says.
    """
    drawn = sketch.load(
        sketch.Settings(images=n, captions=1), seed=SEED, limit=n, folder=folder, cache=folder
    )
    table = drawn.tables["scenes"]
    scenes = table.astype(object).where(table.notna(), None).to_dict("records")
    frequencies, dice = count_values(scenes), Dice(rng(SEED, "bench", "specs"))
    texts = []
    for scene in scenes:
        sentences = describe_scene(scene, frequencies, dice)
        texts.append(dice.pick(grow(sentences)[SENTENCES - 1 :])[0])
    return [folder / as_photograph(folder / name) for name in drawn.images["path"]], texts


def pair(images: Sequence[Path], texts: Sequence[str]) -> PathsAndTexts:
    """Pairs of n images and n captions as evaluations have them: images with OTHERS_EACH captions,
    of as many captioners, then captions with OTHERS_EACH images, of as many generators.
    """
    n = len(images) // (1 + OTHERS_EACH)
    several = [(one, n + OTHERS_EACH * one + k) for one in range(n) for k in range(OTHERS_EACH)]
    rows = [*several, *((many, one) for one, many in several)]
    return [(images[image], texts[text]) for image, text in rows]


def stretched(model: str) -> Built:
    """open_clip's ``model``, or a model config's, with random weights and 248 positions."""
    # Here and below, for other benchmarks' sake: loading torch's models takes seconds.
    from compclip.clip.config import ModelConfig
    from compclip.clip.model import build
    from compclip.specs.stretch import stretch

    return stretch(build(ModelConfig(model=model, pretrained=None), [], SEED))


def plain_way(
    built: Built, device: torch.device, batch: int
) -> Callable[[PathsAndTexts], np.ndarray]:
    """The cosines of pairs, (n,), as eight plain lines compute them: distinct images and captions,
    in batches.
    """
    from compclip.clip.vision import open_clip

    library = open_clip()
    model: Any = built.model.to(device)
    transform = library.transform.image_transform_v2(
        library.transform.PreprocessCfg(**built.preprocess_cfg), is_train=False
    )
    tokenizer = library.SimpleTokenizer(
        context_length=built.model_cfg["text_cfg"]["context_length"]
    )

    @torch.inference_mode()
    def cosines(pairs: PathsAndTexts) -> np.ndarray:
        paths, texts = (list(dict.fromkeys(column)) for column in zip(*pairs, strict=True))
        images, told = [], []
        for start in range(0, len(paths), batch):
            pixels = torch.stack(
                [transform(Image.open(path)) for path in paths[start : start + batch]]
            )
            images.append(model.encode_image(pixels.to(device), normalize=True))
        for ids in tokenizer(texts).split(batch):
            told.append(model.encode_text(ids.to(device), normalize=True))
        all_cosines = torch.cat(images) @ torch.cat(told).T
        return np.array(
            [all_cosines[paths.index(path), texts.index(text)].item() for path, text in pairs]
        )

    return cosines


def check_cosines(ours: np.ndarray, plain: np.ndarray) -> float:
    """The largest difference of cosines; AssertionError if it is too large, or if all pairs are
    alike.
    """
    assert np.ptp(plain) > 10 * COSINE_TOLERANCE, (
        f"all pairs have about one score ({plain.min()} to {plain.max()})"
    )
    worst = float(np.abs(ours - plain).max())
    assert worst < COSINE_TOLERANCE, f"the two sides' cosines differ by up to {worst}"
    return worst


def cosines_of(embedder: Embedder, pairs: PathsAndTexts) -> np.ndarray:
    images, texts = zip(*pairs, strict=True)
    return score_pairs(embedder, images, texts)["cosine"].to_numpy()


def measure(model: str = "ViT-B-32") -> dict[str, Any]:
    """Pairs a second of the two ways: cold, with cached captions, with all cached."""
    from compclip.clip.model import encode_batches, load_judge, save_judge

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        built = stretched(model)
        save_judge(built, model, None, folder / "judge")
        judge = load_judge(folder / "judge", Config.model_validate({}).threads, "auto")
        images, batch = (4096, 256) if is_gpu(judge.device) else (128, 32)
        plain = plain_way(built, judge.device, batch)
        paths, captions = described_birds(2 * images, folder)
        first, texts = paths[:images], captions[:images]
        pairs, of_others = pair(first, texts), pair(paths[images:], texts)
        n = len(pairs)

        plain(pairs[:3])  # what is only slow the first time
        before, one = seconds(lambda: plain(pairs))
        with VectorCache(folder / "cache.sqlite") as cache:
            embedder = Embedder(judge, cache, batch)
            cold, cosines = seconds(lambda: cosines_of(embedder, pairs))
            new_images, of_new = seconds(lambda: cosines_of(embedder, of_others))
            cached = float(
                np.median(
                    [seconds(lambda: cosines_of(embedder, pairs))[0] for _ in range(WARM_RUNS)]
                )
            )
            assert (cosines_of(embedder, pairs) == cosines).all(), "the cache gives other scores"
        parts = list(
            judge.preprocess.read_ahead([(path, None) for path in first], batch, judge.threads)
        )
        progress = Progress(len(first), "images")
        of_images = seconds(lambda: encode_batches(iter(parts), batch, progress, judge._images))[0]
        of_texts = seconds(lambda: judge.encode_texts(texts, batch))[0]
        after, two = seconds(lambda: plain(of_others))
        difference = check_cosines(np.concatenate([cosines, of_new]), np.concatenate([one, two]))
    each = (before + after) / (2 * n)

    def figures(took: float, **bound: float) -> dict[str, Any]:
        bounds = {name: round(each * n / seconds, 2) for name, seconds in bound.items()}
        return compared(n / took, 1 / each, "pairs/s", n, **bounds)

    about = {"model": model, "images": images, "batch": batch, "device": judge.device.type}
    return {
        **figures(cold, bound=of_images + of_texts),
        "texts_cached": figures(new_images, bound=of_images),
        "all_cached": figures(cached),
        "max_difference": difference,
        **about,
    }
