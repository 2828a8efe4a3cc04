"""Score all generators of a composition by one judge as a user would write it in an evening: the
baseline of ``score``.

    python -m benchmarks.plain_score RESULTS/DATASET COMPOSITION JUDGE SCORES.json GENERATOR...

For judges of half the images, and images of one size without boxes. Each distinct path and caption
is encoded once. Writes exact R-precision and adjective accuracy of each generator and set. Leaves
out what the step adds: the controls (blind, hubness), sampled hits, tables, truncated captions,
checks and records of what it reads.
"""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from PIL import Image

from compclip.clip.model import load_judge
from compclip.split.evaluation import evaluation_images

THREADS, BATCH = 2, 256
CAPTION_ID = ["image_id", "caption_id"]


def decode_image(path: Path) -> np.ndarray:
    with Image.open(path) as file:
        return np.asarray(file.convert("RGB"))


def plain_image_embeddings(judge: Any, paths: list[Path]) -> np.ndarray:
    mean, std = (torch.tensor(judge.preprocess.cfg[key])[:, None, None] for key in ("mean", "std"))
    vectors = []
    with ThreadPoolExecutor(THREADS) as threads:
        decoded = threads.map(decode_image, paths)
        for start in range(0, len(paths), BATCH):
            images = np.stack([next(decoded) for _ in paths[start : start + BATCH]])
            pixels = torch.from_numpy(images).permute(0, 3, 1, 2)
            pixels = F.interpolate(pixels, judge.preprocess.size, mode="bicubic", antialias=True)
            vectors.append(judge.model.encode_image((pixels / 255 - mean) / std, normalize=True))
    return torch.cat(vectors).numpy()


def plain_text_embeddings(judge: Any, texts: list[str]) -> np.ndarray:
    ids = judge.tokenizer([text.strip().lower() for text in texts])
    return torch.cat(
        [judge.model.encode_text(part, normalize=True) for part in ids.split(BATCH)]
    ).numpy()


def plain_r_precision(
    similarity: np.ndarray,
    own: np.ndarray,
    of_class: np.ndarray,
    pool: pd.DataFrame,
    column: np.ndarray,
    n: int,
) -> float:
    """Exact R-precision of n candidates from similarities (entries, texts); ``column`` is the text
    of a pool's row.
    """
    classes, of_entry = np.unique(of_class, return_inverse=True)
    per_image = pool.groupby("image_id")["image_id"].transform("size").to_numpy()
    weights = np.zeros((similarity.shape[1], len(classes)), np.float32)
    for k, name in enumerate(classes):
        other = (pool["class_id"] != name).to_numpy()
        np.add.at(weights[:, k], column[other], 1 / per_image[other])
    weights /= weights.sum(axis=0)
    mine = np.take_along_axis(similarity, own[:, None], axis=1)
    above, tied = (
        np.take_along_axis(compared.astype(np.float32) @ weights, of_entry[:, None], axis=1)[
            :, 0
        ].astype(float)
        for compared in (similarity > mine, similarity == mine)
    )
    above[above < 1e-7], tied[tied < 1e-7] = 0, 0
    with np.errstate(divide="ignore", invalid="ignore"):
        split = ((1 - above) ** n - np.clip(1 - above - tied, 0, None) ** n) / (n * tied)
    return float(np.where(tied > 0, split, (1 - above) ** (n - 1)).mean())


@torch.inference_mode()
def main(
    dataset: Path,
    composition: str,
    judge: str,
    out: Path,
    generators: list[str],
    candidates: int = 100,
) -> None:
    folder = dataset / composition
    captions, images = (
        pd.read_parquet(dataset / "captions.parquet"),
        pd.read_parquet(dataset / "images.parquet"),
    )
    prompts, swapped, splits, variants = (
        pd.read_parquet(folder / f"{name}.parquet")
        for name in ("prompts", "swapped", "splits", "variants")
    )
    manifests = {
        name: pd.read_parquet(folder / f"generated/{name}/manifest.parquet") for name in generators
    }
    made = (
        pd.concat(manifests, names=["generator"]).reset_index("generator").query("status == 'ok'")
    )
    judged = captions.merge(evaluation_images(splits, images, "half", 0), on="image_id")
    pools = {name: judged[judged["split"] == name] for name in ("test_seen", "test_unseen")}
    pools["test_swapped"] = pools["test_seen"][
        pools["test_seen"]["image_id"].isin(swapped["image_id"])
    ]
    class_of = captions.groupby("image_id")["class_id"].first()
    other = swapped[swapped["image_id"].isin(pools["test_seen"]["image_id"])]
    other = other.assign(text=other["swapped_text"], class_id=other["image_id"].map(class_of))
    pools["test_swapped.distractors-swapped"] = other

    model = load_judge(folder.parent / "judges" / judge, THREADS, "cpu")
    paths = sorted(made["path"].unique())
    of_images = plain_image_embeddings(model, [dataset.parent / path for path in paths])
    texts = sorted(
        {text for table in (prompts, variants, *pools.values()) for text in table["text"]}
    )
    of_texts = plain_text_embeddings(model, texts)
    image, text = pd.Series(range(len(paths)), paths), pd.Series(range(len(texts)), texts)

    scores: dict[str, dict[str, Any]] = {name: {} for name in generators}
    for name in generators:
        for pool_name, pool in pools.items():
            split = pool_name.split(".")[0]
            entries = prompts.merge(
                made[made["generator"] == name], on=[*CAPTION_ID, "draw", "split"]
            )
            # Further draws of matched seen prompts are not in the table's means.
            of_split = (entries["split"] == split) & (entries["draw"] == 0)
            entries = entries[of_split].reset_index(drop=True)
            if entries.empty:
                continue
            shown, own = of_images[image[entries["path"]]], text[entries["text"]].to_numpy()
            distinct, column = np.unique(np.append(text[pool["text"]], own), return_inverse=True)
            similarity, classes = (
                shown @ of_texts[distinct].T,
                class_of[entries["image_id"]].to_numpy(),
            )
            column, mine = column[: len(pool)], column[len(pool) :]
            exact = plain_r_precision(similarity, mine, classes, pool, column, candidates)
            asked = entries.reset_index(names="entry").merge(
                variants, on=[*CAPTION_ID, "split"], suffixes=("", "_other")
            )
            entry, variant = asked["entry"].to_numpy(), text[asked["text_other"]].to_numpy()
            margin = ((of_texts[variant] - of_texts[own[entry]]) * shown[entry]).sum(axis=1)
            best = pd.Series(margin).groupby(entry).max()
            adjective = float((best < 0).mean()) if len(best) else None
            scores[name][pool_name] = {"exact": exact, "adjective": adjective}
    out.write_text(json.dumps(scores, indent=2))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3], Path(sys.argv[4]), sys.argv[5:])
