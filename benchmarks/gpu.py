"""The paper's judge and scoring on a GPU: ``bash benchmarks/gpu.sh``.

``files`` makes JPEGs, ``train`` trains the paper's judge (RN101, random weights) on some of them
from cached activations, ``score`` encodes all of them by ViT-B/32 (random weights) as stage score
does. Each prints a line for each figure, with its target on an H100 or H200. Without a GPU, all run
on the CPU, for a trial with few images.
"""

import argparse
import os
import shutil
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from PIL import Image

DISTINCT = 256  # pictures; files of the same picture differ in bytes after its end
SIZE = (500, 375)
NOISE = 6  # standard deviation, of 255, so that a file has the size of a photograph's
BATCH = 256
CAPTIONS_EACH = 10
WORDS = "a bird with black yellow red white wings bill crown belly and long short small".split()
# What the paper's appendix trains.
TRAINED_PARTS = [
    "visual.layer4.*",
    "visual.attnpool.*",
    "transformer.resblocks.11.*",
    "ln_final.*",
    "text_projection",
    "logit_scale",
]


def report(name: str, value: float, unit: str, target: str) -> None:
    print(f"{name:<44} {value:>10,.1f} {unit:<10} target {target}", flush=True)


def write_copies(folder: Path, picture: int, numbers: range) -> None:
    """Write the files with these ``numbers``, all of one picture."""
    draw = np.random.default_rng(picture)
    colors = Image.fromarray(draw.integers(0, 256, (12, 16, 3), np.uint8))
    smooth = np.asarray(colors.resize(SIZE, Image.Resampling.BICUBIC), np.float32)
    noisy = smooth + draw.normal(0, NOISE, smooth.shape)
    file = folder / f"picture{picture}.jpg"
    Image.fromarray(noisy.clip(0, 255).astype(np.uint8)).save(file, quality=90)
    content = file.read_bytes()
    file.unlink()
    for number in numbers:
        path = folder / f"{number:06d}.jpg"
        path.write_bytes(content + number.to_bytes(8, "big"))


def make_files(folder: Path, n: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    pictures = range(min(DISTINCT, n))
    with ProcessPoolExecutor() as pool:
        jobs = [
            pool.submit(write_copies, folder, picture, range(picture, n, DISTINCT))
            for picture in pictures
        ]
        for job in jobs:
            job.result()
    size = (folder / "000000.jpg").stat().st_size
    print(f"{n} files of {size / 1000:.0f} kB", flush=True)


def train_papers_judge(files: list[Path], cache: Path, epochs: int) -> None:
    """Report the time of a step, and of the whole training with its caches."""
    import torch

    from compclip.clip.device import find_device, is_gpu, settle
    from compclip.clip.model import Judge, build
    from compclip.clip.pixels import Preprocess
    from compclip.clip.tokens import tokenize
    from compclip.judge.config import JudgeConfig
    from compclip.judge.parallel import ALONE
    from compclip.judge.training import Examples, choose_trainable, train
    from compclip.judge.training_inputs import TrainingInputs

    device = find_device("auto")
    name = torch.cuda.get_device_name(device) if is_gpu(device) else "CPU"
    print(f"{name}, {os.cpu_count()} cores, torch {torch.__version__}", flush=True)
    settle(1)
    config = JudgeConfig.model_validate(
        {
            "model": "RN101",
            "pretrained": None,
            "trainable": TRAINED_PARTS,
            "epochs": epochs,
            "batch": min(BATCH, len(files)),
            "lr": 5e-4,
            "precision": "amp_bf16",
        }
    )
    built = build(config, [], 0)
    preprocess = Preprocess(built.preprocess_cfg, config.crop)
    judge = Judge(built.model, built.tokenizer(), preprocess, device, os.cpu_count() or 1)
    choose_trainable(judge.model, config.trainable)
    draw = np.random.default_rng(0)
    lengths = draw.integers(6, 20, len(files) * CAPTIONS_EACH)
    texts = [" ".join(draw.choice(WORDS, length)) for length in lengths]
    ids = tokenize(judge.tokenizer, texts)
    count = np.full(len(files), CAPTIONS_EACH)
    first = count.cumsum() - count
    ends: list[float] = []

    def ended() -> dict[str, float]:
        # The epoch's losses were read before, so the GPU is done.
        ends.append(time.perf_counter())
        return {}

    begun = time.perf_counter()
    inputs = TrainingInputs(judge, config, cache, ALONE)
    images = inputs.images([(file, None) for file in files], "images")
    images_cached = time.perf_counter()
    captions = inputs.captions(ids, "captions")
    captions_cached = time.perf_counter()
    examples = Examples(images, captions, first, count)
    train(judge.model, lambda: (examples, ended), config, 0, cache / "checkpoint.pt")
    finished = time.perf_counter()
    inputs.clear()

    steps = len(files) // config.batch
    report("image cache", images_cached - begun, "s", "-")
    report("caption cache", captions_cached - images_cached, "s", "-")
    report("step (median epoch)", float(np.median(np.diff(ends))) / steps * 1000, "ms", "<= 12")
    report("training, caches included", finished - begun, "s", "<= 75, bound 13")
    if is_gpu(device):
        report("GPU memory", torch.cuda.max_memory_allocated(device) / 2**30, "GiB", "-")


def score_files(files: list[Path], cache: Path) -> None:
    """Report how many images a second are encoded, and read from the cache again."""
    from compclip.clip.config import ModelConfig
    from compclip.clip.embed import open_embedder
    from compclip.clip.model import build, save_judge

    config = ModelConfig(model="ViT-B-32", pretrained=None)
    save_judge(build(config, [], 0), "ViT-B-32", None, cache / "judge")
    threads = os.cpu_count() or 1
    for name, target in (("scoring", ">= 3,000"), ("scoring, embeddings cached", "-")):
        begun = time.perf_counter()
        with open_embedder(cache / "judge", BATCH, threads, "auto", cache) as embedder:
            embedder.files(files)
        seconds = time.perf_counter() - begun
        report(name, len(files) / seconds, "images/s", target)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=["files", "train", "score"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--images", type=int, default=100_000)
    parser.add_argument("--epochs", type=int, default=100)
    options = parser.parse_args()
    pictures = options.folder / "pictures"
    cache = options.folder / "cache"
    if options.part == "files":
        make_files(pictures, options.images)
        return
    shutil.rmtree(cache, ignore_errors=True)
    files = sorted(pictures.iterdir())[: options.images]
    if options.part == "train":
        train_papers_judge(files, cache, options.epochs)
    else:
        score_files(files, cache)


if __name__ == "__main__":
    main()
