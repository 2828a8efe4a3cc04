"""A tiny data set on disk, and a judge that reads the caption that an image file consists of."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from compclip.core import tables
from compclip.core.artifacts.files import write_json
from compclip.core.artifacts.parquet import empty_table, write_table
from compclip.core.seeds import derive_seed
from compclip.score.config import Scoring
from tests.scripts import job
from tests.split.worlds import images_table
from workflow_scripts.job import Job

COLORS = ("red", "blue", "green", "black")
PARTS = ("wing", "bill", "tail")


class FakeJudge:
    """Embeds a text as the sum of its words' random directions; an image is embedded as the text in
    its file.
    """

    name, hash, device = "fake", "0123456789abcdef", "cpu"
    preprocess = type("Preprocess", (), {"cfg": {}, "crop": None})

    def __init__(self) -> None:
        self.images_seen: list[tuple[Path, object]] = []
        self.texts_seen: list[str] = []

    @staticmethod
    def tokenizer(texts: Sequence[str], context_length: int = 77) -> object:
        import torch

        return torch.zeros((len(texts), context_length), dtype=torch.long)

    @staticmethod
    def embed(text: str) -> np.ndarray:
        words = [w for w in text.lower().split() if w not in ("a", "an")]
        vector = sum(np.random.default_rng(derive_seed(0, w)).standard_normal(16) for w in words)
        return (vector / np.linalg.norm(vector)).astype(np.float32)

    def encode_texts(self, texts: Sequence[str], batch: int, *others: "FakeJudge") -> np.ndarray:
        self.texts_seen += texts
        return np.hstack([[judge.embed(text) for text in texts] for judge in (self, *others)])

    def encode_images(
        self, items: Sequence[tuple[Path, object]], batch: int, *others: "FakeJudge"
    ) -> np.ndarray:
        self.images_seen += items
        return np.hstack(
            [[judge.embed(path.read_text()) for path, _ in items] for judge in (self, *others)]
        )


def build(root: Path, images: int = 24, classes: int | None = 6) -> Path:
    """Results of all stages before ``score``: dataset ``d``, composition ``color``, generators good
    and partial.

    Half of the images are test_seen, half test_unseen, two captions each; ``good`` draws the
    caption, ``partial`` some of it, and lacks two images. Returns the results folder.
    """
    results = root / "results"
    place = results / "d" / "color"
    generator = np.random.default_rng(0)
    ids = [f"im/{i:02d}" for i in range(images)]
    words = generator.integers(len(COLORS), size=(images, len(PARTS)))
    parts = [[0, 1], [2, 0]]
    captions = pd.DataFrame(
        [
            (name, c, None if classes is None else f"c{i % classes}", caption(words[i], parts[c]))
            for i, name in enumerate(ids)
            for c in range(2)
        ],
        columns=["image_id", "caption_id", "class_id", "text"],
    ).astype({"class_id": "str"})
    (results / "d" / "images" / "im").mkdir(parents=True)
    for i, name in enumerate(ids):
        (results / "d" / "images" / f"{name}.png").write_text(caption(words[i], [0, 1, 2]))
    table = images_table(ids, [f"d/images/{name}.png" for name in ids])
    table[["bbox_x", "bbox_y", "bbox_w", "bbox_h"]] = 1.0
    splits = pd.DataFrame({"image_id": ids, "split": ["test_seen", "test_unseen"] * (images // 2)})
    seen = captions[captions["image_id"].isin(ids[::2])]
    # The first color of each first caption becomes another one.
    swapped = seen[seen["caption_id"] == 0].copy()
    old = swapped["text"].str.split().str[1]
    new = old.map({color: COLORS[(k + 1) % 4] for k, color in enumerate(COLORS)})
    swapped["swapped_text"] = [
        t.replace(f"a {o}", f"a {n}", 1) for t, o, n in zip(swapped.text, old, new, strict=True)
    ]
    swapped["changes"] = [
        [
            {
                "noun": "wing",
                "original_adj": o,
                "new_adj": n,
                "start": 2,
                "end": 2 + len(o),
                "new_start": 2,
            }
        ]
        for o, n in zip(old, new, strict=True)
    ]
    swapped["pair"], swapped["exclusive"] = new + "_wing", True
    plain = captions.merge(splits, on="image_id").assign(pair=None)
    prompts = pd.concat(
        [plain, swapped.assign(split="test_swapped", text=swapped["swapped_text"])]
    ).assign(draw=0)
    parts_of_name = (
        prompts["split"],
        prompts["image_id"],
        prompts["caption_id"].astype(str) + ".png",
    )
    prompts["file_name"] = ["/".join(words) for words in zip(*parts_of_name, strict=True)]
    prompts = prompts.astype({"pair": "str"})[list(tables.PROMPTS.columns)]
    write_table(captions, results / "d" / "captions.parquet", tables.CAPTIONS)
    write_table(table, results / "d" / "images.parquet", tables.IMAGES)
    write_table(splits, place / "splits.parquet", tables.SPLIT)
    write_table(swapped[list(tables.SWAPPED.columns)], place / "swapped.parquet", tables.SWAPPED)
    write_table(variants(swapped), place / "variants.parquet", tables.VARIANTS)
    for name, schema in (
        ("pairs", tables.PAIRS),
        ("ranking", tables.RANKING),
    ):  # for the judge's bias check alone
        write_table(empty_table(schema), place / f"{name}.parquet", schema)
    write_json({"pairs": ["red_wing"]}, place / "heldout.json")
    write_table(prompts.sample(frac=1, random_state=0), place / "prompts.parquet", tables.PROMPTS)
    for name in ("good", "partial"):
        folder = place / "generated" / name
        paths = []
        for row in prompts.itertuples():
            file = folder / "images" / row.file_name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(row.text if name == "good" else " ".join(row.text.split()[:3]))
            paths.append(str(file.relative_to(results)))
        status = np.array(["ok"] * len(prompts), dtype=object)
        if name == "partial":
            status[:2] = "missing", "broken"
        made = prompts[["image_id", "caption_id", "split", "draw"]].assign(
            path=pd.Series(paths, index=prompts.index).where(status == "ok"), status=status
        )
        write_table(made.astype({"path": "str"}), folder / "manifest.parquet", tables.MANIFEST)
    return results


def variants(swapped: pd.DataFrame) -> pd.DataFrame:
    """The two other colors of each swapped caption's first color."""
    rows = []
    for row in swapped.itertuples():
        [change] = row.changes
        for color in COLORS:
            if color not in (change["new_adj"], change["original_adj"]):
                text = f"a {color}{row.text[change['end'] :]}"
                new = {**change, "new_adj": color}
                rows.append(("test_swapped", row.image_id, row.caption_id, color, text, [new]))
    return pd.DataFrame(rows, columns=list(tables.VARIANTS.columns))


def caption(colors: np.ndarray, parts: Sequence[int]) -> str:
    return " and ".join(f"a {COLORS[colors[part]]} {PARTS[part]}" for part in parts)


def make_job(
    results: Path, *generators: str, scores: Path, judge: Path = Path("unused"), **more: Any
) -> Job:
    """A job of ``score_images`` on ``build``'s results; ``more`` are other params, ``scoring``
    settings of its section.

    ``scores`` is the folder of the only generator, or that of a folder for each; bias.json is
    beside it.
    """
    dataset, place = results / "d", results / "d" / "color"
    inputs: dict[str, Any] = {name: dataset / f"{name}.parquet" for name in ("captions", "images")}
    names = ("pairs", "ranking", "splits", "swapped", "prompts", "variants")
    inputs |= {name: place / f"{name}.parquet" for name in names} | {
        "heldout": place / "heldout.json"
    }
    manifests = [place / "generated" / generator / "manifest.parquet" for generator in generators]
    scoring = {"candidates": 5, "distractors": ["original"]} | more.pop("scoring", {})
    params = {
        "scoring": Scoring.model_validate(scoring).model_dump(),
        "splits_by_generator": dict.fromkeys(generators, tables.TESTS),
        "results": results,
        "dataset": "d",
        "prompts": "pairs",
        "train_on": "train",
        "judge_half": 0,
        "seed": 0,
        "batch": 256,
        "device": "cpu",
        "cache": results.parent / "cache",
        "judges": ["0"],
        "faithful_generator": None,
        "max_bias": 0.15,
    }
    output: dict[str, Any] = {
        "scores": [scores / name for name in generators] if len(generators) > 1 else [scores]
    }
    output["bias"] = [scores.parent / "bias.json"]
    inputs |= {"manifests": manifests, "judges": [judge]}
    result = job(inputs, output, wildcards={"composition": "color"}, **params | more)
    result.params.threads = result.threads
    return result
