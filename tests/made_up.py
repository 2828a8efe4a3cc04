"""A made-up results folder with all artifacts that the report reads, small enough to check by hand."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image

from workflow_scripts.core import tables
from workflow_scripts.core.io import write_json, write_table, write_text

DATASET, COMPOSITION = "tiny", "color"
COLORS = ("red", "blue", "green", "white", "black", "yellow")
NOUNS = ("wing", "belly", "crown", "bill")
HELD = ("green_wing", "white_bill")
GENERATORS = ("photographs", "faithful", "memorizer")
SERVES = {"photographs": ("test_seen", "test_unseen")}
ENDS = ("", "_low", "_high", "_fixed_low", "_fixed_high", "_se_pairs", "_se_images", "_se_judges", "_se_residual")
NORMALIZED = ("_normalized", "_normalized_low", "_normalized_high")
COLUMNS = (
    "dataset", "composition", "generator", "split", "prompts", "n", "images", "pairs",
    *(f"exact{end}" for end in (*ENDS, *NORMALIZED)), "adjective_n", *(f"adjective{end}" for end in ENDS),
    "adjective_chance", "adjective_corrected", *(f"adjective{end}" for end in NORMALIZED), "sampled_mean",
    "sampled_std", "balanced", "balanced_low", "balanced_high", "blind_control", "hubness",
    "judges", "judge", "judge_seed", "judge_hash", "candidates", "class_rule", "distractors", "seed", "atom_divergence",
    "compound_divergence", "subgraph_divergence",
)  # fmt: skip
# Of pairs and of subgraphs, between train and each split's prompts; all captions have half of it.
COMPOUND_DIVERGENCES = {"pairs": (0.1, 0.4, 0.7), "subgraphs": (0.2, 0.5, 0.9)}
# The first caption of the data set: a page that does not escape it would run it.
HOSTILE = "<script>alert(1)</script> a bird with red wing & <b>blue</b> belly"
RGB = {"red": (220, 40, 40), "blue": (50, 90, 220), "green": (40, 160, 70), "white": (240, 240, 240),
       "black": (30, 30, 30), "yellow": (240, 210, 40)}  # fmt: skip


def _picture(colors: list[str], path: Path) -> None:
    pixels = np.concatenate([np.full((24, 96, 3), RGB[c], np.uint8) for c in (colors * 4)[:4]])
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path)


def _occurrences(image_id: str, caption_id: int, text: str) -> list[dict]:
    found = re.finditer(rf"\b({'|'.join(COLORS)}) ({'|'.join(NOUNS)})\b", text)
    return [
        {
            "image_id": image_id, "caption_id": caption_id, "adjective": m[1], "noun": m[2],
            "adjective_start": m.start(1), "adjective_end": m.end(1), "noun_start": m.start(2), "noun_end": m.end(2),
            "relation": "adjacent",
        }
        for m in found
    ]  # fmt: skip


def _swap(text: str, image_id: str, caption_id: int) -> dict | None:
    for found in _occurrences(image_id, caption_id, text):
        new = {"wing": "green", "bill": "white"}.get(found["noun"])
        if new:
            start, end = found["adjective_start"], found["adjective_end"]
            change = {
                "noun": found["noun"], "original_adj": found["adjective"], "new_adj": new, "start": start, "end": end,
                "new_start": start, "new_end": start + len(new),
            }  # fmt: skip
            return {
                "image_id": image_id, "caption_id": caption_id, "text": text,
                "swapped_text": text[:start] + new + text[end:], "changes": [change], "pair": f"{new}_{found['noun']}",
            }  # fmt: skip
    return None


def _scores(prompts: pd.DataFrame, skill: float, random: np.random.Generator, split: str) -> pd.DataFrame:
    n = len(prompts)
    beaten = np.round(random.beta(1, 1 + 200 * skill, n), 6)
    top = np.round((1 - beaten) ** 99, 6)
    counts = prompts["pair"].value_counts()
    weight = np.ones(n)
    if split == "test_swapped" and len(counts) > 1:
        first, second = counts.index[0], counts.iloc[1]
        weight[prompts["pair"] == first] = min(1, int(1.25 * second) / counts.iloc[0])
    return pd.DataFrame(
        {
            "image_id": prompts["image_id"].to_numpy(), "caption_id": prompts["caption_id"].to_numpy(),
            "draw": prompts["draw"].to_numpy(), "pair": prompts["pair"].to_numpy(),
            "similarity": np.round(random.uniform(0, 1, n), 6), "p_beaten": beaten, "p_tied": np.zeros(n),
            "expected_top1": top, "hit": random.random(n) < top, "weight": weight, "adjectives": 4,
            "adjective_first": np.where(random.random(n) < skill, 1.0, 0.0),
        }
    )  # fmt: skip


def _tables(root: Path, data: Path) -> None:
    """Write table.csv and comparisons.csv with meaningless numbers."""
    rows, differences = [], []
    for g, name in enumerate(GENERATORS):
        for split in SERVES.get(name, tables.TESTS):
            for judge in ("sketch", "oracle"):
                exact = max(0.05, 0.8 - 0.15 * g - 0.1 * tables.TESTS.index(split) + 0.1 * (judge == "oracle"))
                row = {
                    "dataset": DATASET, "composition": COMPOSITION, "generator": name, "split": split,
                    "prompts": "pairs", "n": 30, "images": 12, "exact": exact, "exact_low": exact - 0.04,
                    "exact_high": exact + 0.05, "pairs": 2, "adjective_n": 28, "adjective": exact - 0.03,
                    "adjective_low": exact - 0.08, "adjective_high": exact + 0.01, "adjective_chance": 0.25,
                    "adjective_corrected": (exact - 0.28) / 0.75, "sampled_mean": exact - 0.01, "sampled_std": 0.05,
                    **{
                        f"{measure}_normalized{end}": exact + add
                        for measure in ("exact", "adjective") for end, add in (("", 0), ("_low", -0.1), ("_high", 0.1))
                    },
                    "blind_control": 0.02, "hubness": 0.1, "judges": 1,
                    "exact_fixed_low": exact - 0.01, "exact_fixed_high": exact + 0.02,
                    "exact_se_pairs": 0.04, "exact_se_images": 0.01, "exact_se_judges": None, "exact_se_residual": 0.02,
                    "judge_seed": "0" if judge != "oracle" else None,
                    "judge": judge, "judge_hash": "0123456789abcdef", "candidates": 100, "class_rule": "class",
                    "distractors": "original", "seed": 0, "atom_divergence": 0.01,
                }  # fmt: skip
                for column, values in zip(COLUMNS[-2:], COMPOUND_DIVERGENCES.values(), strict=True):
                    row[column] = values[tables.TESTS.index(split)]
                if split == "test_swapped":
                    row |= {"balanced": exact - 0.02, "balanced_low": exact - 0.06, "balanced_high": exact + 0.02}
                rows.append(row)
                if split == "test_swapped" and judge != "oracle":
                    rows.append(row | {"distractors": "swapped", "exact": exact - 0.1})
    pd.DataFrame(rows).reindex(columns=list(COLUMNS)).to_csv(root / "table.csv", index=False)
    for split in tables.TESTS:
        differences.append({"a": "faithful", "b": "memorizer", "split": split, "difference": 0.15})
    for name in GENERATORS:
        for split in SERVES.get(name, tables.TESTS)[1:]:
            differences.append({"a": f"{name} {split}", "b": f"{name} test_seen", "split": split, "difference": -0.1})
    for split in tables.TESTS[1:]:
        differences.append({"a": "memorizer", "b": "faithful", "split": split, "difference": -0.1, "kind": "beyond"})
    frame = pd.DataFrame(differences).assign(dataset=DATASET, composition=COMPOSITION, n=12)
    frame["kind"] = frame["kind"].fillna(frame["a"].str.contains(" ").map({True: "fall", False: "generators"}))
    frame["family"], frame["p_holm"] = "primary", 0.02
    frame["low"], frame["high"] = frame["difference"] - 0.04, frame["difference"] + 0.05
    frame["fixed_low"], frame["fixed_high"], frame["p"] = frame["low"], frame["high"], 0.001
    frame = pd.concat([frame.assign(measure=name) for name in ("exact", "adjective")])
    frame.to_csv(root / "comparisons.csv", index=False)
    pairs = [
        {"generator": name, "split": split, "pair": pair, "n": 12, "images": 6, "exact_fall": -0.1 * n}
        for name in GENERATORS
        for split in SERVES.get(name, tables.TESTS)
        for n, pair in enumerate(HELD)
    ]
    table = pd.DataFrame(pairs).assign(dataset=DATASET, composition=COMPOSITION)
    fall = table["exact_fall"].where(table["split"] != "test_seen")
    for measure in ("exact", "adjective"):
        for end, shift in (("", 0.0), ("_low", -0.05), ("_high", 0.05)):
            table[f"{measure}_fall{end}"] = fall + shift
    table.to_csv(root / "pairs.csv", index=False)


def _divergences(place: Path) -> None:
    """Write divergence.parquet, divergence.json and division.json with meaningless numbers."""
    rows, shown = [], []
    parts = {
        "pairs": {"atoms": ["adjective:red", "noun:wing"], "compounds": ["red_wing", "green_wing", "white_bill"]},
        "subgraphs": {"atoms": ["wing", "<i>"], "compounds": ["has(dobj:wing(amod:red) nsubj:bird(det:this))"]},
    }
    for definition, names in parts.items():
        for split, compound in zip(tables.TESTS, COMPOUND_DIVERGENCES[definition], strict=True):
            for texts in ("captions", "prompts"):
                row = {
                    "definition": definition, "split": split, "texts": texts, "train": 36, "test": 12,
                    "atoms": len(names["atoms"]), "compounds": 287, "atom_divergence": 0.01,
                    "compound_divergence": compound / (1 + (texts == "captions")), "random_atom_mean": 0.0001,
                    "random_atom_std": 0.00001, "random_compound_mean": 0.03, "random_compound_std": 0.004,
                    "shuffles": 10,
                }  # fmt: skip
                rows.append(row)
            for kind, of in names.items():
                shares = np.arange(len(of), 0, -1) / 10
                about = {"definition": definition, "split": split, "kind": kind, "names": of}
                shown.append(about | {"train": shares.tolist(), "test": shares[::-1].tolist()})
    write_table(pd.DataFrame(rows), place / "divergence.parquet", tables.DIVERGENCE)
    steps = list(range(1, 49))
    write_json(
        {
            "wanted": {"atom": 0.02, "compound": "max"}, "atom_divergence": 0.0123, "compound_divergence": 0.4567,
            "path": {"images": steps, "atom": [1 / n for n in steps], "compound": [1 / n**0.2 for n in steps]},
        },
        place / "division.json",
    )  # fmt: skip
    summary = {"distributions": shown, "kept_compounds": 100_000, "warnings": ["3 <b> are cut"]}
    write_json(summary, place / "divergence.json")


def _summaries(data: Path, place: Path) -> None:
    summary = {"source": "table", "images": 60, "images_without_file": {"count": 1, "names": ["x"]}}
    write_json(summary, data / "dataset.json")
    write_json({"captions": 240, "without_pairs": 60}, data / "pairs.json")
    heldout = {"pairs": list(HELD), "occurrences": {"green_wing": 30, "white_bill": 2}, "not_ranked": ["white_bill"]}
    write_json(
        {**heldout, "window": [25, 75], "fraction": 0.1, "prefer": "any", "source": "drawn", "seed": 0},
        place / "heldout.json",
    )
    expected = {"prompts": 24, "images": 12, "half_width": 0.2}
    widths = {split: expected | ({} if split == "test_seen" else {"pairs": 2}) for split in tables.TESTS}
    warnings = ["test_swapped: few pairs (2), ± 20.0 points: set <b>"]
    write_json({"splits": widths, "warnings": warnings}, place / "widths.json")
    for name in ("splits", "swapped"):
        write_json({"seed": 0, "warnings": []}, place / f"{name}.json")
    counts = {"images_in_split": 12, "images_not_judged": 6, "images_without_prompt": 1}
    write_json({"splits": dict.fromkeys(tables.TESTS, counts)}, place / "prompts.json")
    for name in GENERATORS:
        write_json({"generator": name}, place / "generated" / name / "summary.json")
        balance = {"rule": "the most frequent pair", "cut": {"green_wing": {"of": 20, "kept": 12}}}
        score = {"split": "test_swapped", "judged": 25, "balance": balance, "true_distractors": 0.04}
        score |= {"pool": {"entries_with_fewer_than_candidates": 7}, "distractors": "original", "set": "test_swapped"}
        score["hubness"] = 0.2
        summary = {"generator": name, "ties": "random", "chunking": "even", "candidates": 100, "scores": [score]}
        for judge in ("0", "oracle"):
            write_json(summary, place / "scores" / judge / name / "summary.json")
    seen = {"n": 40, "accuracy": 0.7, "low": 0.6, "high": 0.8, "chance": 0.25, "corrected": 0.6, "two_way": 0.9}
    held_out = {**seen, "accuracy": 0.55, "corrected": 0.4}
    health = {"images": {"real": {"seen": seen, "held_out": held_out, "ratio": 0.666667}}, "ratio": 0.666667}
    write_json({**health, "synonyms": {"n": 20, "agreement": 0.95}}, place / "health" / "0.json")
    example = {"image_id": "x", "caption_id": 0, "split": "train", "text": "a green and red bird <i>wing</i>"}
    counts = {"violations": 0, "suspicions": 2, "suspicions_unexplained": 1, "captions_read": 192, "swapped": 27}
    write_json(
        {
            "violations": [],
            "counts": counts,
            "suspicions": {"green_wing": {"captions": 2, "unexplained": 1, "examples": [example]}},
        },
        place / "audit.json",
    )


def make_results(root: Path, *, classes: bool = True) -> Path:
    """Fill ``root`` with the artifacts of data set ``tiny``, composition ``color``, and return it."""
    random = np.random.default_rng(0)
    data = root / DATASET
    place = data / COMPOSITION
    captions, images, splits = [], [], []
    for i in range(60):
        image_id = f"{i % 6:03d}.Species/bird_{i:03d}"
        split = "train" if i % 5 < 3 else "test_seen" if i % 5 == 3 else "test_unseen"
        colors = [COLORS[int(c)] for c in random.permutation([0, 1, 4, 5])]
        for j in range(4):
            a, b = random.choice(len(NOUNS), 2, replace=False)
            first = "green" if split == "test_unseen" and j == 0 else colors[0]
            noun = "wing" if split == "test_unseen" and j == 0 else NOUNS[a]
            text = f"this bird has a {first} {noun} and a {colors[1]} {NOUNS[b]}"
            if j == 3:
                text = "a small bird on a branch"
            if i == 3 and j == 0:
                text = HOSTILE
            captions.append(
                {"image_id": image_id, "caption_id": j, "class_id": f"{i % 6:03d}" if classes else None, "text": text}
            )
        path = None if i == 8 else f"{DATASET}/images/{image_id}.png"
        if path:
            _picture(colors, root / path)
        size = 96 if path else None
        images.append({"image_id": image_id, "path": path, "width": size, "height": size} | dict.fromkeys(
            ("bbox_x", "bbox_y", "bbox_w", "bbox_h")))  # fmt: skip
        splits.append({"image_id": image_id, "split": split})
    captions, splits = pd.DataFrame(captions).astype({"class_id": "str"} if classes else {}), pd.DataFrame(splits)
    if not classes:
        captions["class_id"] = pd.Series([None] * len(captions), dtype="str")
    images = pd.DataFrame(images).astype(
        {"width": "Int64", "height": "Int64"} | dict.fromkeys(("bbox_x", "bbox_y", "bbox_w", "bbox_h"), "float64")
    )
    write_table(captions, data / "captions.parquet", tables.CAPTIONS)
    write_table(images, data / "images.parquet", tables.IMAGES)
    write_table(splits, place / "splits.parquet", tables.SPLIT)
    rows = [o for c in captions.itertuples() for o in _occurrences(c.image_id, c.caption_id, c.text)]
    pairs = pd.DataFrame(rows)
    write_table(pairs, data / "pairs.parquet", tables.PAIRS)
    ranking = (
        pairs.groupby(["adjective", "noun"]).agg(count=("image_id", "size"), images=("image_id", "nunique"))
        .reset_index().sort_values(["count", "adjective", "noun"], ascending=[False, True, True])
    )  # fmt: skip
    ranking["rank"] = np.arange(1, len(ranking) + 1)
    ranking["percentile"] = 100 * (ranking["rank"] - 0.5) / len(ranking)
    write_table(ranking, place / "ranking.parquet", tables.RANKING)
    seen = captions.merge(splits[splits["split"] == "test_seen"], on="image_id")
    swapped = pd.DataFrame([s for c in seen.itertuples() if (s := _swap(c.text, c.image_id, c.caption_id))])
    write_table(swapped, place / "swapped.parquet", tables.SWAPPED)

    with_pair = pairs[["image_id", "caption_id"]].drop_duplicates()
    unseen = captions.merge(splits[splits["split"] == "test_unseen"], on="image_id")
    unseen = unseen[unseen["text"].str.contains("green wing")].assign(pair="green_wing", split="test_unseen")
    prompts = pd.concat(
        [
            seen.merge(with_pair, on=["image_id", "caption_id"]).assign(pair=None),
            unseen,
            swapped.assign(split="test_swapped", text=swapped["swapped_text"]),
        ]
    )[["image_id", "caption_id", "split", "text", "pair"]].reset_index(drop=True)
    prompts["draw"] = 0
    prompts["pair"] = prompts["pair"].astype("str").where(prompts["pair"].notna())
    prompts["file_name"] = [f"{p.split}/{p.image_id}/{p.caption_id}_0.png" for p in prompts.itertuples()]
    write_table(prompts, place / "prompts.parquet", tables.PROMPTS)

    for name, skill in zip(GENERATORS, (0.9, 0.8, 0.2), strict=True):
        served = prompts[prompts["split"].isin(SERVES.get(name, tables.TESTS))].copy()
        served["path"] = [f"{DATASET}/{COMPOSITION}/generated/{name}/images/{f}" for f in served["file_name"]]
        served["status"] = "ok"
        if name == "memorizer":
            lost = served.index[served["split"] == "test_swapped"][:2]
            served.loc[lost[0], ["path", "status"]] = [None, "missing"]
            served.loc[lost[1], ["path", "status"]] = [None, "unreadable"]
        for row in served[served["status"] == "ok"].itertuples():
            words = [w for w in re.findall(r"\w+", row.text) if w in COLORS] or ["black"]
            _picture(words, root / row.path)
        write_table(
            served[["image_id", "caption_id", "split", "draw", "path", "status"]],
            place / "generated" / name / "manifest.parquet", tables.MANIFEST,
        )  # fmt: skip
        for split in SERVES.get(name, tables.TESTS):
            rows = served[(served["split"] == split) & (served["status"] == "ok")]
            scores = _scores(rows, skill * (0.3 if split != "test_seen" else 1), random, split)
            write_table(scores, place / "scores" / "0" / name / f"{split}.parquet", tables.SCORES)

    _tables(root, data)
    write_text(
        "epoch,step,loss,lr,retrieval_seen,retrieval_unseen\n"
        + "".join(f"{e},{e * 20},{4 * 0.7**e:.4f},0.001,{1 - 0.8**e:.3f},{1 - 0.9**e:.3f}\n" for e in range(1, 11)),
        place / "judges" / "0" / "log.csv",
    )
    judge = {"judge_hash": "0123456789abcdef", "model": "sketch", "train_on": "half", "images": 48, "captions": 192}
    write_json({**judge, "epochs": 9, "truncated_captions": 3}, place / "judges" / "0" / "manifest.json")
    _summaries(data, place)
    _divergences(place)
    return root


def write_fid(file: Path) -> None:
    """Write the Fréchet distances of a generator that was prompted with seen and swapped captions."""
    about = "10,000 generated and 54 real images, too few for 2,048 features: biased upwards"
    images = {"generated": 10_000, "real": 54, "about": about}
    splits = {"test_seen": {"fid": 12.3, **images}, "test_swapped": {"fid": 30.0, "balanced": 31.5, **images}}
    write_json({"generator": file.stem, "network": "Inception, 2048 features", "splits": splits}, file)
