"""Score: all generators of the default run by its judges, cold cache, against a script that a user
would write.

The step also measures the judges' bias, which the script does not.

Both read the finished default run (``make run`` before). Ours is the step's process, with one
thread, for all judges, as in the run; the script (``benchmarks.plain_score``) uses two and is run
for each judge. Process starts count. The ratio is that of CPU seconds (``wall``: of wall time),
because other programs change it less; each side's fastest round counts, and
``ratio_of_rounds`` is their spread. R-precision and adjective accuracy must agree, or the benchmark
fails. ``bound`` is the ratio if each distinct image and caption went through each judge once, its
pixels read already, and nothing else were done.
``exact``: exact scores of 2,048 images against 24,000 captions, by the matrix product alone.
"""

import pickle
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import yaml

from benchmarks.speed import compared, timed
from compclip.clip.embed import similarities
from compclip.core.artifacts.files import read_json
from compclip.core.errors import UserError
from compclip.core.identity.code import ROOT
from compclip.stats.r_precision import BLOCK, Entries, Weights, blocks, make_pool, weigh
from workflow_scripts.mock_job import mock_job
from workflow_scripts.workflow.config import Config, load_config

# As ``run_script`` does, without Snakemake.
PROGRAM = (
    "import pickle, sys; from workflow_scripts.job import run_checked, tune_process; "
    "tune_process(); from workflow_scripts.score.score_images import main; "
    "run_checked(main, *pickle.load(open(sys.argv[1], 'rb')))"
)
ROUNDS = 3
SCORE_TOLERANCE = 5e-5  # rounding differs, and so near ties
IMAGES, TEXTS, WIDTH = 2048, 24_000, 128


def score_arguments(composition: str, generators: Sequence[str], to: Path) -> list[object]:
    """The arguments that score generators by all judges into ``to``, as the rule does."""
    job = mock_job("score_images", composition=composition)
    reads = [
        path
        for value in vars(job.input).values()
        for path in (value if isinstance(value, list) else [value])
    ]
    judges = job.params.judges
    output = SimpleNamespace(
        scores=[to / judge / name for judge in judges for name in generators],
        bias=[to / f"{judge}.json" for judge in judges],
    )
    job.params.cache = to / "cache"
    job = replace(job, output=output)
    writes = [*output.scores, *output.bias]
    (to / "job").write_bytes(pickle.dumps((job, "score.score_images", reads, writes)))
    return ["-c", PROGRAM, to / "job"]


def largest_difference(ours: Path, plain: dict[str, Any]) -> float:
    """The largest difference of the two sides' scores."""
    worst = 0.0
    for generator, sets in plain.items():
        # The first summary of a set covers all its entries.
        summaries = {
            each["set"]: each
            for each in reversed(read_json(ours / generator / "summary.json")["scores"])
        }
        assert summaries.keys() == sets.keys()
        for name, found in sets.items():
            pairs = [(found[key], summaries[name][key]) for key in ("exact", "adjective")]
            worst = max(worst, *(abs(one - other) for one, other in pairs if one is not None))
    return worst


def forward(config: Config, generators: Sequence[str], name: str) -> float:
    """CPU seconds of one pass of each distinct image and caption through a judge."""
    from compclip.clip.model import encode_batches, load_judge
    from compclip.core.identity.digests import sha256
    from compclip.core.progress import Progress
    from compclip.split.evaluation import evaluation_images

    results, dataset = ROOT / config.results, ROOT / config.results / config.dataset.source
    folder = dataset / config.compositions[0]
    made = [
        pd.read_parquet(folder / "generated" / generator / "manifest.parquet")["path"]
        for generator in generators
    ]
    paths = {sha256(results / path): results / path for path in pd.concat(made).dropna().unique()}
    prompts, variants, swapped, splits = (
        pd.read_parquet(folder / f"{table}.parquet")
        for table in ("prompts", "variants", "swapped", "splits")
    )
    judged = evaluation_images(
        splits, pd.read_parquet(dataset / "images.parquet"), config.judge.train_on, config.seed
    )
    captions = pd.read_parquet(dataset / "captions.parquet")
    pools = (
        captions.loc[captions["image_id"].isin(judged["image_id"]), "text"],
        swapped["swapped_text"],
    )
    texts = sorted(set(pd.concat([prompts["text"], variants["text"], *pools])))
    judge = load_judge(folder.parent / "judges" / name, 1, "cpu")
    parts = [
        *judge.preprocess.read_ahead(
            [(path, None) for path in paths.values()], config.score.batch, judge.threads
        )
    ]
    begun = time.process_time()
    encode_batches(iter(parts), config.score.batch, Progress(len(paths), "images"), judge._images)
    judge.encode_texts(texts, config.score.batch)
    return time.process_time() - begun


def exact_pass(images: int = IMAGES, texts: int = TEXTS) -> dict[str, Any]:
    """Exact scores of random embeddings, 10 captions an image and 50 classes, by the product alone;
    one thread.
    """
    import torch

    from compclip.clip.device import settle

    random = np.random.default_rng(0)
    vectors = random.standard_normal((images + texts, WIDTH)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    shown, told = vectors[:images], vectors[images:]
    of_image = np.arange(texts) // 10
    pool = make_pool(of_image, of_image % 50, np.arange(texts))
    entries = Entries(random.integers(0, texts, images), random.integers(0, 50, images), [])
    columns, threads = torch.from_numpy(told).T, torch.get_num_threads()

    def product() -> None:
        for start in range(0, images, BLOCK):
            torch.from_numpy(shown[start : start + BLOCK]) @ columns

    def ours() -> None:
        weights = Weights(pool, texts)
        for rows, values in blocks(similarities(shown, told), entries.classes):
            weigh(values, entries, rows, weights)

    settle(1)
    took: dict[Callable[[], None], list[float]] = {product: [], ours: []}
    for _ in range(8):
        for work in (product, ours):
            begun = time.process_time()
            work()
            took[work].append(time.process_time() - begun)
    torch.set_num_threads(threads)
    alone, with_scores = (float(np.median(took[work][1:])) for work in (product, ours))
    return compared(images / with_scores, images / alone, "images/s", images)


def measure() -> dict[str, Any]:
    """CPU and wall seconds of both ways, one after the other, in rounds."""
    config = load_config(yaml.safe_load((ROOT / "config.yaml").read_text(encoding="utf-8")))
    generators = [generator.name for generator in config.generate.generators]
    dataset = ROOT / config.results / config.dataset.source
    composition, judges = config.compositions[0], config.members
    if not (dataset / composition / "scores" / judges[0]).is_dir():
        raise UserError(f"{dataset}: the benchmark reads the finished default run; make run first")
    sides: dict[str, list[dict[str, float]]] = {"plain": [], "ours": [], "again": []}
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as name:
            out = Path(name)
            plain = pd.DataFrame(
                timed(
                    *("-m", "benchmarks.plain_score", dataset, composition, judge),
                    out / f"plain.{judge}.json",
                    *generators,
                )
                for judge in judges
            )
            sides["plain"].append(plain.sum().to_dict())
            for side in ("ours", "again"):  # with a cold cache, then with a warm one
                sides[side].append(timed(*score_arguments(composition, generators, out)))
            worst = max(
                largest_difference(out / judge, read_json(out / f"plain.{judge}.json"))
                for judge in judges
            )
            assert worst < SCORE_TOLERANCE, f"the two sides' scores differ by up to {worst}"
    made = dataset / composition / "generated"
    entries = sum(len(pd.read_parquet(made / name / "manifest.parquet")) for name in generators)
    n = entries * len(judges)
    fastest = {
        side: {kind: min(spent[kind] for spent in rounds) for kind in ("cpu", "wall")}
        for side, rounds in sides.items()
    }
    ours, plain_way = fastest["ours"], fastest["plain"]
    once = sum(forward(config, generators, judge) for judge in judges)
    figures = {
        kind: compared(n / ours[kind], n / plain_way[kind], f"entries per {kind} second", n)
        for kind in ("cpu", "wall")
    }
    of_rounds = [
        round(slow["cpu"] / fast["cpu"], 2)
        for slow, fast in zip(sides["plain"], sides["ours"], strict=True)
    ]
    return {
        **figures["cpu"],
        "bound": round(plain_way["cpu"] / once, 2),
        "wall": figures["wall"],
        "warm": compared(
            n / fastest["again"]["cpu"], n / plain_way["cpu"], "entries per cpu second", n
        ),
        "exact": exact_pass(),
        "ratio_of_rounds": {"lowest": min(of_rounds), "highest": max(of_rounds)},
        "percent_of_bound": {"value": round(100 * once / ours["cpu"], 1)},
        "seconds": {
            f"{side}_{kind}": round(spent, 1)
            for side, of in fastest.items()
            for kind, spent in of.items()
        },
        "max_difference": {"value": worst},
    }
