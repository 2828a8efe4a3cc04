"""SPECS: a table of pairs scored by ``score_pairs``, against a plain loop over batches of distinct images and captions.

open_clip's ViT-B/32 with random weights, stretched to 248 tokens; photographs and long captions. The baseline reads
images by Pillow and open_clip's transform, captions by open_clip's tokenizer, and encodes each distinct one once, in
batches as large as ours, all 248 places of a caption. The cosines of the two must agree, or the benchmark fails:
``max_difference``. ``bound`` is the ratio if each distinct image and caption went through the judge once, its pixels
read already, and nothing else were done; without the captions where they are cached. ``shares`` are times of parts by
themselves, of the cold run's; ``reading`` runs beside ``images``, ``tokens`` is a part of ``texts``. ``memory_mib``
is what a fresh process with the judge loaded takes more at its peak, by batch: resident memory, or the GPU's;
``pairs_per_s`` is its speed, for as many pairs as ``n_fresh``, each with an image and a caption of its own.
"""

from __future__ import annotations

import multiprocessing
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from PIL import Image

from benchmarks.speed import compared
from benchmarks.speed.judge_cached import as_photograph
from benchmarks.speed.score import seconds
from workflow_scripts.clip.device import is_gpu
from workflow_scripts.clip.embed import Embedder
from workflow_scripts.core.cache import Cache
from workflow_scripts.core.seeds import rng
from workflow_scripts.dataset.sketch.description import count_values, describe, grow
from workflow_scripts.dataset.sketch.world import Dice
from workflow_scripts.dataset.sources import sketch
from workflow_scripts.specs import score as step
from workflow_scripts.workflow.config import Config

if TYPE_CHECKING:
    from workflow_scripts.clip.model import Built

SEED = 0
EACH = 3
# A caption has so many or more, up to a whole description.
SENTENCES = 12
TOLERANCE = 1e-4
REPEATS = 5
MEMORY = Path("/proc/self")

Pairs = list[tuple[Path, str]]


@dataclass(frozen=True)
class Size:
    """images: distinct ones, and captions as many; batch: of both sides; batches: of the fresh processes, with at least
    ``fresh`` pairs each."""

    images: int
    batch: int
    batches: tuple[int, ...]
    fresh: int


ON_CPU = Size(images=128, batch=32, batches=(1, 32, 256), fresh=64)
ON_GPU = Size(images=4096, batch=256, batches=(1, 32, 256), fresh=512)


def described(n: int, folder: Path) -> tuple[list[Path], list[str]]:
    """n photographs of drawn birds in ``folder``, and of each one's description as many sentences as a die says."""
    drawn = sketch.load(sketch.Settings(images=n, captions=1), seed=SEED, limit=n, folder=folder, cache=folder)
    table = drawn.tables["scenes"]
    scenes = table.astype(object).where(table.notna(), None).to_dict("records")
    frequencies, dice = count_values(scenes), Dice(rng(SEED, "bench", "specs"))
    texts = []
    for scene in scenes:
        sentences = describe(scene, frequencies, dice)
        texts.append(dice.pick(grow(sentences)[SENTENCES - 1 :])[0])
    return [folder / as_photograph(folder / name) for name in drawn.images["path"]], texts


def pair(images: Sequence[Path], texts: Sequence[str]) -> Pairs:
    """Pairs of n images and n captions as evaluations have them: first images with EACH captions, each of another
    captioner, then captions with EACH images, each of another generator."""
    n = len(images) // (1 + EACH)
    several = [(one, n + EACH * one + k) for one in range(n) for k in range(EACH)]
    rows = [*several, *((many, one) for one, many in several)]
    return [(images[image], texts[text]) for image, text in rows]


def stretched(model: str) -> Built:
    """open_clip's ``model``, or a model config's, with random weights and 248 positions."""
    # Here and below, for other benchmarks' sake: loading torch's models takes seconds.
    from workflow_scripts.clip.config import ModelConfig
    from workflow_scripts.clip.model import assemble, build
    from workflow_scripts.specs.stretch import stretch

    built = build(ModelConfig(model=model, pretrained=None), [], SEED)
    return assemble(*stretch(built.model_cfg, built.model.state_dict()), built.preprocess_cfg, None, model)


def plain_way(built: Built, device: torch.device, batch: int) -> Callable[[Pairs], np.ndarray]:
    """The cosines of pairs, (n,), as eight plain lines compute them: distinct images and captions, in batches."""
    from workflow_scripts.clip.vision import open_clip

    library = open_clip()
    model: Any = built.model.to(device)
    transform = library.transform.image_transform_v2(
        library.transform.PreprocessCfg(**built.preprocess_cfg), is_train=False
    )
    tokenizer = library.SimpleTokenizer(context_length=built.model_cfg["text_cfg"]["context_length"])

    @torch.inference_mode()
    def cosines(pairs: Pairs) -> np.ndarray:
        paths, texts = (list(dict.fromkeys(column)) for column in zip(*pairs, strict=True))
        images, told = [], []
        for start in range(0, len(paths), batch):
            pixels = torch.stack([transform(Image.open(path)) for path in paths[start : start + batch]])
            images.append(model.encode_image(pixels.to(device), normalize=True))
        for ids in tokenizer(texts).split(batch):
            told.append(model.encode_text(ids.to(device), normalize=True))
        all_cosines = torch.cat(images) @ torch.cat(told).T
        return np.array([all_cosines[paths.index(path), texts.index(text)].item() for path, text in pairs])

    return cosines


def check_equal(ours: np.ndarray, plain: np.ndarray) -> float:
    """The largest difference of cosines; AssertionError if it is too large, or if all pairs are alike."""
    assert np.ptp(plain) > 10 * TOLERANCE, f"all pairs have about one score ({plain.min()} to {plain.max()})"
    worst = float(np.abs(ours - plain).max())
    assert worst < TOLERANCE, f"the two sides' cosines differ by up to {worst}"
    return worst


def score(embedder: Embedder, pairs: Pairs) -> np.ndarray:
    images, texts = zip(*pairs, strict=True)
    return step.score_pairs(embedder, images, texts).cosine


def peak_memory(device: torch.device, work: Callable[[], Any]) -> float | None:
    """MiB that ``work`` takes at its peak, more than before; None where the system does not tell (all but Linux)."""
    if is_gpu(device):
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        work()
        return (torch.cuda.max_memory_allocated() - before) / 2**20
    if not (MEMORY / "clear_refs").is_file():
        work()
        return None
    # Loading the judge took more than it left: the peak is to count from here.
    (MEMORY / "clear_refs").write_text("5")
    at_start = resident("VmRSS")
    work()
    return resident("VmHWM") - at_start


def resident(key: str) -> float:
    """MiB, by a line of the process's status."""
    lines = dict(line.split(":", 1) for line in (MEMORY / "status").read_text().splitlines())
    return int(lines[key].split()[0]) / 2**10


def score_fresh(folder: Path, pairs: Pairs, batch: int, threads: int, device: str) -> tuple[float, float | None]:
    """Pairs a second and ``peak_memory``, of a process of its own; ``folder`` has the judge."""
    from workflow_scripts.clip.model import load_judge

    judge = load_judge(folder / "judge", threads, device)
    with Cache(folder / f"fresh{batch}.sqlite") as cache:
        embedder = Embedder(judge, cache, batch, "bench")
        took, memory = seconds(lambda: peak_memory(judge.device, lambda: score(embedder, pairs)))
    return len(pairs) / took, memory


def measure(size: Size | None = None, model: str = "ViT-B-32") -> dict[str, Any]:
    """Pairs a second of the two ways, cold, with cached captions, with all cached; memory by batch."""
    from workflow_scripts.clip.model import load_judge, save_judge
    from workflow_scripts.clip.tokens import cut_texts, tokenize

    threads = Config.model_validate({}).threads
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        built = stretched(model)
        save_judge(built, model, None, folder / "judge")
        judge = load_judge(folder / "judge", threads, "auto")
        size = size or (ON_GPU if is_gpu(judge.device) else ON_CPU)
        batch = size.batch
        plain = plain_way(built, judge.device, batch)

        # For the fresh processes as many pairs as the largest batch has.
        several = max(2 * size.images, *size.batches)
        paths, said = described(several, folder)
        first, others, texts = paths[: size.images], paths[size.images : 2 * size.images], said[: size.images]
        pairs, of_others = pair(first, texts), pair(others, texts)
        n = len(pairs)

        plain(pairs[:3])  # what is only slow the first time
        before, one = seconds(lambda: plain(pairs))
        with Cache(folder / "cache.sqlite") as cache:
            embedder = Embedder(judge, cache, batch, "bench")
            cold, cosines = seconds(lambda: score(embedder, pairs))
            new_images, of_new = seconds(lambda: score(embedder, of_others))
            again = [seconds(lambda: score(embedder, pairs)) for _ in range(REPEATS)]
            cached = float(np.median([took for took, _ in again]))
            assert (again[0][1] == cosines).all(), "the cache gives other scores"
            fetched = seconds(lambda: (step.embed_images(embedder, first), embedder.texts(texts)))[0]
        items = [(path, None) for path in first]
        reading, parts = seconds(lambda: list(judge.read_ahead(items, batch)))
        images = seconds(lambda: judge.encode_pixels(np.concatenate(parts), batch))[0]
        tokens, ids = seconds(lambda: tokenize(judge.tokenizer, texts))
        encoded = seconds(lambda: judge.encode_texts(texts, batch))[0]
        cut = seconds(lambda: cut_texts(judge.tokenizer, texts))[0]
        after, two = seconds(lambda: plain(of_others))
        difference = check_equal(np.concatenate([cosines, of_new]), np.concatenate([one, two]))

        fresh, speeds, memory = {}, {}, {}
        for wanted in size.batches:
            alike = list(zip(paths, said, strict=True))[: max(wanted, size.fresh)]
            with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
                found = pool.submit(score_fresh, folder, alike, wanted, threads, str(judge.device)).result()
            fresh[str(wanted)], speeds[str(wanted)] = len(alike), round(found[0], 1)
            memory[str(wanted)] = None if found[1] is None else round(found[1])
    each = (before + after) / (2 * n)

    def figures(took: float, **bound: float) -> dict[str, Any]:
        bounds = {name: round(each * n / seconds, 2) for name, seconds in bound.items()}
        return compared(n / took, 1 / each, "pairs/s", n, **bounds)

    spent = {"reading": reading, "images": images, "texts": encoded, "tokens": tokens, "cut": cut, "cache": fetched}
    return {
        **figures(cold, bound=images + encoded),
        "texts_cached": figures(new_images, bound=images),
        "all_cached": figures(cached),
        "memory_mib": memory,
        "pairs_per_s": speeds,
        "n_fresh": fresh,
        "shares": {part: round(took / cold, 4) for part, took in spent.items()},
        "model": model,
        "images": len(first),
        "texts": len(texts),
        "tokens": round(float((ids != 0).sum(1).float().mean()), 1),
        "batch": batch,
        "max_difference": difference,
        "device": judge.device.type,
    }
