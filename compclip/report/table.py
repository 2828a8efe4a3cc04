"""A generator's scores of one split by one judge or several."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from compclip.core.errors import UserError
from compclip.core.tables import CAPTION_KEY, ORACLE, SCORES, TESTS, are_among, is_further
from compclip.io import read_json, read_table
from compclip.report.rows import PARTS_OF_SEEN
from compclip.score.entries import ENTRY


@dataclass(frozen=True)
class Scored:
    """One score: its part of the generator's summary, the whole summary, and its entries
    (``tables.SCORES``).

    ``entries`` also have their cluster (the image's class, or itself) and counts (whether a
    held-out prompt may count in what is composed). With several judges, they are those of the
    first, and ``by_judge`` has each judge's own.
    """

    about: Mapping[str, Any]
    summary: Mapping[str, Any]
    entries: pd.DataFrame
    by_judge: tuple[pd.DataFrame, ...]
    judge_seed: str | None = None  # None: several judges, or the oracle
    part: bool = False  # whether it is one judge's score, shown beside the mean of several

    @property
    def generator(self) -> str:
        return self.summary["generator"]

    @property
    def split(self) -> str:
        return self.about["split"]

    @property
    def main(self) -> bool:
        """Return whether this is a main score: of all trained judges, for all prompts, with
        original distractors.
        """
        all_prompts = self.split == "test_swapped" or self.about["prompts"] not in PARTS_OF_SEEN
        return self.whole and all_prompts and self.about["distractors"] == "original"

    @property
    def matched(self) -> bool:
        """Return whether this is the score of all trained judges for matched seen prompts, with all
        their draws.
        """
        return self.whole and self.about["prompts"] == "matched"

    @property
    def whole(self) -> bool:
        """Return whether this is a score of all trained judges."""
        return self.summary["judge"] != ORACLE and not self.part


def read_score_folder(folder: Path) -> tuple[dict[str, Any], dict[str, pd.DataFrame]]:
    """Return the summary in a folder of stage score, and the scores by set."""
    summary = read_json(folder / "summary.json")
    names = dict.fromkeys(about["set"] for about in summary["scores"])
    return summary, {name: read_table(folder / f"{name}.parquet", SCORES) for name in names}


def scores_of(
    summary: Mapping[str, Any],
    tables: Mapping[str, pd.DataFrame],
    swapped: pd.DataFrame,
    classes: pd.Series,
    matched: Collection[str] = (),
) -> list[Scored]:
    """Return a generator's scores by one judge, including that of matched pairs if they are
    prompted for.

    Args:
        summary: ``scores/J/G/summary.json``.
        tables: the entries (``tables.SCORES``) of each set in ``summary``.
        swapped: image_id, caption_id and exclusive (``tables.SWAPPED``) of the swapped captions.
        classes: the class of each image by image_id, or its own name: images of a class are a
            cluster.
        matched: the seen pairs that are as frequent as the held-out ones.
    """
    scores = []
    for about in summary["scores"]:
        every = tables[about["set"]]
        entries = every[~is_further(every)]
        if about["split"] == "test_seen" and about["prompts"] == "swapped":
            entries = entries[are_among(entries, swapped, CAPTION_KEY)]
        if len(entries) != about["judged"]:
            where = f"{summary['generator']}, {about['set']}"
            raise UserError(
                f"{where}: {len(entries)} entries, but summary.json counts {about['judged']}; "
                "score again"
            )
        entries, every = (
            table.assign(
                cluster=classes.loc[table["image_id"]].to_numpy(), counts=True
            ).reset_index(drop=True)
            for table in (entries, every)
        )
        if about["split"] == "test_swapped":
            # The image before another swap may show the new pair, too.
            entries["counts"] = are_among(entries, swapped[swapped["exclusive"]], CAPTION_KEY)
        scores.append(Scored(about, summary, entries, (entries,)))
        # With all draws.
        of_pairs = every[every["pair"].isin(list(matched))].reset_index(drop=True)
        if (about["split"], about["prompts"]) == ("test_seen", "pairs") and len(of_pairs):
            asked, head = of_pairs[of_pairs["adjectives"] > 1], {"prompts": "matched"}
            head |= {name: about[name] for name in ("set", "split", "distractors")}
            if len(asked):
                head["adjective"] = asked["adjective_first"].mean()
                head["adjective_chance"] = (1 / asked["adjectives"]).mean()
            scores.append(Scored(head, summary, of_pairs, (of_pairs,)))
    return scores


def averaged(scores: Sequence[Scored]) -> Scored:
    """Return the mean of the scores of the same entries by several judges."""
    first = scores[0]
    for score in scores[1:]:
        if not score.entries[ENTRY].equals(first.entries[ENTRY]):
            raise UserError(
                f"{first.generator}: judges scored different images of {first.split}; score again"
            )
    names = [name for name in ("blind_control", "hubness", "adjective") if name in first.about]
    known = {name: [score.about.get(name) for score in scores] for name in names}
    about = {
        name: None if None in values else float(np.mean(np.array(values)))
        for name, values in known.items()
    }
    summary = {**first.summary, "judge_hash": None}
    return Scored(
        {**first.about, **about}, summary, first.entries, tuple(score.entries for score in scores)
    )


def all_scores(
    judges: Mapping[str, Sequence[Scored]], oracle: Sequence[Scored] = ()
) -> list[Scored]:
    """Return a generator's scores by split: of all judges, each judge, the oracle. ``judges``:
    scores by judge.
    """

    def place(score: Scored) -> tuple[int, bool, str]:
        return (
            TESTS.index(score.split),
            score.about["prompts"] in PARTS_OF_SEEN,
            score.about["distractors"],
        )

    by_judge = [
        [replace(score, judge_seed=judge) for score in scores] for judge, scores in judges.items()
    ]
    scores = by_judge[0]
    if len(judges) > 1:
        scores = [averaged(group) for group in zip(*by_judge, strict=True)]
        scores += [replace(score, part=True) for of_judge in by_judge for score in of_judge]
    return sorted([*scores, *oracle], key=place)
