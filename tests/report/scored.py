"""Made-up scores in memory: several judges, generators that compose, memorize or ignore
captions.
"""

import numpy as np
import pandas as pd

from compclip.core.artifacts.parquet import empty_table
from compclip.core.tables import DIVERGENCE, TESTS
from compclip.report.composed import Anchors
from compclip.report.make_table import CompositionResults, Tables, make_table
from compclip.report.scored import Scored

ADJECTIVES = ["black", "blue", "gray", "green", "pink", "red", "tan", "white", "wide", "yellow"]
NOUNS = ["bill", "crown", "tail", "wing"]
# Held-out and seen pairs, of the same adjectives and nouns.
PAIRS = [
    [
        f"{a}_{n}"
        for i, a in enumerate(ADJECTIVES)
        for j, n in enumerate(NOUNS)
        if (i + j) % 2 == is_seen
    ]
    for is_seen in (0, 1)
]
# The chance of a right adjective on seen, unseen and swapped.
SKILLS = {
    "photographs": (0.8, 0.68, None),
    "faithful": (0.75, 0.6, 0.6),
    "composer": (0.7, 0.56, 0.56),
    "memorizer": (0.75, 0.08, 0.08),
    "usual": (0.08, None, None),
    "blind": (0.1, 0.1, 0.1),
}


def prompts(split: str, images: int, pairs: int) -> pd.DataFrame:
    """Return entries of two captions an image; those of swapped are those of seen, with other
    pairs.
    """
    rng = np.random.default_rng(TESTS.index(split))
    kind = "unseen" if split == "test_unseen" else "seen"
    rows = pd.DataFrame({"image_id": np.repeat([f"{kind}{n:03}" for n in range(images)], 2)})
    rows["caption_id"], rows["draw"], rows["cluster"] = np.tile([0, 1], images), 0, rows["image_id"]
    rows["eligible"] = True
    names = PAIRS[split == "test_seen"]
    rows["pair"] = [names[n] for n in rng.integers(0, pairs, 2 * images)]
    return rows


def chosen(pairs: pd.Series, first: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return a prompt's own adjective where it is chosen, and any other elsewhere."""
    own = pairs.str.partition("_")[0].to_numpy(object)
    other = np.array(
        [ADJECTIVES[n] for n in rng.integers(0, len(ADJECTIVES) - 1, len(own))], object
    )
    return np.where(first > 0, own, np.where(other == own, ADJECTIVES[-1], other))


def scores(
    skills: dict[str, tuple[float | None, ...]] = SKILLS,
    images: int = 200,
    pairs: int = 20,
    judges: int = 3,
) -> list[Scored]:
    """Return a score for each generator and split that it serves; ``exact`` is half-way between the
    skill and 0.5.
    """
    found = []
    for name, of_splits in skills.items():
        for split, skill in zip(TESTS, of_splits, strict=True):
            if skill is None:
                continue
            rows = prompts(split, images, pairs)
            kinds = sorted(set(rows["pair"]))
            chance = skill + rows["pair"].map(
                dict(zip(kinds, np.linspace(-0.05, 0.05, len(kinds)), strict=True))
            )
            u = np.random.default_rng([len(name), TESTS.index(split)]).random(len(rows))
            by_judge = []
            for judge in range(judges):
                noise = np.random.default_rng(judge).normal(0, 0.05, len(rows))
                first = (u + noise < chance + 0.01 * judge).astype(float)
                exact = np.clip(0.25 + chance / 2 + 0.02 * judge, 0, 1)
                values = {"expected_top1": exact, "adjective_first": first}
                names = chosen(rows["pair"], first, np.random.default_rng([judge, len(name)]))
                table = rows.assign(
                    **values, similarity=0.5, hit=first > 0, weight=1.0, adjectives=6
                )
                by_judge.append(table.assign(adjusted_first=first, adjective_chosen=names))
            mean = by_judge[0].assign(
                **{name: np.mean([t[name] for t in by_judge], axis=0) for name in values}
            )
            about = {
                "split": split,
                "prompts": "pairs",
                "distractors": "original",
                "blind_control": 0.02,
                "adjective": mean["adjective_first"].mean(),
                "adjective_chance": 1 / 6,
                "adjective_judged": len(rows),
            }
            summary = {
                "dataset": "tiny",
                "composition": "color",
                "generator": name,
                "judge": "sketch",
                "judge_hash": None,
                "seed": 0,
                "candidates": 100,
                "class_rule": "other class",
                "chunking": "even",
            }
            found.append(Scored(about, summary, mean, tuple(by_judge)))
            if split == "test_seen":
                found.append(Scored(about | {"prompts": "matched"}, summary, mean, tuple(by_judge)))
    return found


ANCHORS = dict.fromkeys(("test_unseen", "test_swapped"), ("faithful", "memorizer")) | {
    "test_seen": ("faithful", "usual")
}


def mixed(
    found: list[Scored], name: str, fraction: float, seed: int = 0, whole_pairs: bool = False
) -> list[Scored]:
    """Return the scores of a generator that is faithful with this chance on held-out prompts, or
    pairs.
    """
    of = {(score.generator, score.split): score for score in found if score.is_main}
    result = []
    for split in TESTS:
        faithful, memorizer = (of[which, split] for which in ("faithful", "memorizer"))
        rng = np.random.default_rng(seed)
        keys = faithful.entries["pair"] if whole_pairs else pd.Series(range(len(faithful.entries)))
        kept = keys.map({key: rng.random() < fraction for key in sorted(set(keys))}).to_numpy()
        kept = kept | (split == "test_seen")
        tables = [
            own.where(pd.Series(kept), other)
            for own, other in zip(faithful.by_judge, memorizer.by_judge, strict=True)
        ]
        result.append(
            Scored(
                faithful.set_summary,
                {**faithful.summary, "generator": name},
                faithful.entries,
                tuple(tables),
            )
        )
    return result


def tables_of(found: list[Scored], anchors: Anchors = ANCHORS) -> Tables:
    """Return the rows of scores.parquet, comparisons.csv and pairs.csv."""
    composition = CompositionResults(found, empty_table(DIVERGENCE), fids={}, variants={})
    return make_table([composition], anchors=anchors, controls=list(SKILLS), chunks=2)
