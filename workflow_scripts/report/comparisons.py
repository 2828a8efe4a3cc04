"""The rows of ``comparisons.csv``, one a difference a minus b by the trained judge, with original distractors.

Generators are compared on the entries of a split that both have (n of them). ``G test_swapped`` is compared with
``G test_seen`` on the same captions; ``G test_unseen`` with ``G test_seen``, which have different images, unpaired (n:
entries of a).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
import pandas as pd

from workflow_scripts.core.seeds import rng
from workflow_scripts.core.tables import TESTS
from workflow_scripts.report.table import Row, Scored, columns_of
from workflow_scripts.stats import interval
from workflow_scripts.stats.interval import Estimate

COLUMNS = ["dataset", "composition", "a", "b", "split", "difference", "low", "high", "n"]
# The columns that identify an entry.
ENTRY = ["image_id", "caption_id", "draw"]


def comparison(score: Scored, a: str, b: str, difference: Estimate | None, n: int) -> Row:
    """Return a row: a, which has ``score``, minus b, of n entries."""
    return {
        **{name: score.summary[name] for name in ("dataset", "composition")},
        **{"a": a, "b": b, "split": score.split},
        **dict(zip(("difference", "low", "high"), columns_of("", difference).values(), strict=True)),
        "n": n,
    }


def difference_stream(a: Scored, b: Scored) -> np.random.Generator:
    """Return the randomness of a difference: the same for all generators, so that they resample the same images."""
    about = a.summary
    return rng(about["seed"], "difference", about["dataset"], about["composition"], *a.place, *b.place)


def unpaired(a: Scored, b: Scored, resamples: int) -> Estimate | None:
    """Return a minus b, None if either has no entries."""
    if a.entries.empty or b.entries.empty:
        return None
    of_a, of_b = ((s.entries["image_id"].to_numpy(), s.entries["expected_top1"].to_numpy()) for s in (a, b))
    return interval.unpaired_difference(*of_a, *of_b, resamples, difference_stream(a, b))


def paired(scores: Sequence[Scored], resamples: int) -> Iterator[tuple[int, int, Estimate | None, int]]:
    """Yield, for all i < j: i, j, scores[i] minus scores[j], and the number of entries that both have.

    Scores with the same entries, as most generators have, are resampled together.
    """
    by_entries: dict[bytes, list[int]] = {}
    for number, score in enumerate(scores):
        digest = pd.util.hash_pandas_object(score.entries[ENTRY], index=False).to_numpy().tobytes()
        by_entries.setdefault(digest, []).append(number)
    together: dict[tuple[int, int], Estimate] = {}
    for numbers in by_entries.values():
        images = scores[numbers[0]].entries["image_id"].to_numpy()
        if len(images) and len(numbers) > 1:
            values = np.stack([scores[number].entries["expected_top1"] for number in numbers], axis=1)
            stream = difference_stream(scores[numbers[0]], scores[numbers[1]])
            differences = interval.paired_differences(images, values, resamples, stream)
            together |= {(numbers[i], numbers[j]): difference for (i, j), difference in differences.items()}
    for i, j in combinations(range(len(scores)), 2):
        if (i, j) in together:
            yield i, j, together[i, j], len(scores[i].entries)
            continue
        both = scores[i].entries.merge(scores[j].entries, on=ENTRY)
        difference = None
        if len(both):
            values = both[["expected_top1_x", "expected_top1_y"]].to_numpy()
            stream = difference_stream(scores[i], scores[j])
            images = both["image_id"].to_numpy()
            difference = interval.paired_differences(images, values, resamples, stream).get((0, 1))
        yield i, j, difference, len(both)


def comparisons(scores: Sequence[Scored], resamples: int) -> list[Row]:
    """Return all comparisons of one composition: generators by split, then each generator's splits with seen."""
    main = {(score.generator, score.split): score for score in scores if score.main}
    generators = list(dict.fromkeys(generator for generator, _ in main))
    rows = []
    for split in TESTS:
        serving = [name for name in generators if (name, split) in main]
        for i, j, difference, n in paired([main[name, split] for name in serving], resamples):
            rows.append(comparison(main[serving[i], split], serving[i], serving[j], difference, n))
    for generator in generators:
        seen = main.get((generator, "test_seen"))
        for split in ("test_swapped", "test_unseen"):
            score = main.get((generator, split))
            if seen is None or score is None:
                continue
            if split == "test_swapped":
                [(_, _, difference, n)] = paired([score, seen], resamples)
            else:
                difference, n = unpaired(score, seen, resamples), len(score.entries)
            rows.append(comparison(score, f"{generator} {split}", f"{generator} test_seen", difference, n))
    return rows
