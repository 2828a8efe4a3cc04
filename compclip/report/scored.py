"""A generator's scores of one split by one judge or several."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from compclip.core.artifacts.files import read_json
from compclip.core.artifacts.parquet import read_table
from compclip.core.errors import UserError
from compclip.core.tables import CAPTION_KEY, ORACLE, SCORES, TESTS, are_among, is_further
from compclip.report.rows import PARTS_OF_SEEN
from compclip.score.entries import ENTRY


@dataclass(frozen=True)
class Scored:
    """One score: its part of the generator's summary, the whole summary, and its entries
    (``tables.SCORES``).

    ``entries`` also have their cluster (the image's class, or itself) and eligible (whether a
    held-out prompt may count in what is composed). With several judges, they are those of the
    first, and ``by_judge`` has each judge's own.
    """

    set_summary: Mapping[str, Any]
    summary: Mapping[str, Any]
    entries: pd.DataFrame
    by_judge: tuple[pd.DataFrame, ...]
    judge_seed: str | None = None  # None: several judges, or the oracle
    single_judge: bool = False  # whether it is one judge's score, shown beside the mean of several

    @property
    def generator(self) -> str:
        return self.summary["generator"]

    @property
    def split(self) -> str:
        return self.set_summary["split"]

    @property
    def is_main(self) -> bool:
        """Return whether this is a main score: of all trained judges, for all prompts, with
        original distractors.
        """
        return self.by_all_judges and self.is_of_split

    @property
    def is_of_split(self) -> bool:
        """Return whether this is a score for all prompts of a split, with original distractors."""
        all_prompts = (
            self.split == "test_swapped" or self.set_summary["prompts"] not in PARTS_OF_SEEN
        )
        return all_prompts and self.set_summary["distractors"] == "original"

    @property
    def is_matched(self) -> bool:
        """Return whether this is a score for matched seen prompts, with all their draws."""
        return self.set_summary["prompts"] == "matched"

    @property
    def by_oracle(self) -> bool:
        return self.summary["judge"] == ORACLE

    @property
    def by_all_judges(self) -> bool:
        """Return whether this is a score of all trained judges."""
        return not self.by_oracle and not self.single_judge


def read_score_folder(folder: Path) -> tuple[dict[str, Any], dict[str, pd.DataFrame]]:
    """Return the summary in a folder of stage score, and the scores by set."""
    summary = read_json(folder / "summary.json")
    names = dict.fromkeys(score["set"] for score in summary["scores"])
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
    for set_summary in summary["scores"]:
        table = tables[set_summary["set"]]
        cluster = classes.loc[table["image_id"]].to_numpy()
        # Images of a class are not independent, so they are resampled together.
        all_draws = table.assign(cluster=cluster, eligible=True)
        entries = all_draws[~is_further(table)]
        if set_summary["split"] == "test_seen" and set_summary["prompts"] == "swapped":
            entries = entries[are_among(entries, swapped, CAPTION_KEY)]
        # Tables and summaries of different runs may be in the same folder.
        if len(entries) != set_summary["judged"]:
            fault = f"{len(entries)} entries, but summary.json counts {set_summary['judged']}"
            raise UserError(f"{summary['generator']}, {set_summary['set']}: {fault}; score again")
        entries = entries.reset_index(drop=True)
        if set_summary["split"] == "test_swapped":
            # The image before another swap may show the new pair, too.
            entries["eligible"] = are_among(entries, swapped[swapped["exclusive"]], CAPTION_KEY)
        scores.append(Scored(set_summary, summary, entries, (entries,)))
        # Without a pair, a prompt cannot be matched.
        if (set_summary["split"], set_summary["prompts"]) == ("test_seen", "pairs"):
            of_pairs = all_draws[all_draws["pair"].isin(list(matched))].reset_index(drop=True)
            if len(of_pairs):
                scores.append(_matched_score(set_summary, summary, of_pairs))
    return scores


def _matched_score(
    seen: Mapping[str, Any], summary: Mapping[str, Any], entries: pd.DataFrame
) -> Scored:
    """Return the score of entries of matched pairs, with all draws; ``seen``: the summary of all
    seen prompts.
    """
    set_summary = {"prompts": "matched"} | {
        name: seen[name] for name in ("set", "split", "distractors")
    }
    with_variants = entries[entries["adjectives"] > 1]
    if len(with_variants):
        set_summary["adjective"] = with_variants["adjective_first"].mean()
        set_summary["adjective_chance"] = (1 / with_variants["adjectives"]).mean()
    return Scored(set_summary, summary, entries, (entries,))


def averaged(scores: Sequence[Scored]) -> Scored:
    """Return the mean of the scores of the same entries by several judges."""
    first = scores[0]
    # Means over judges are of the same entries, in the same order.
    for score in scores[1:]:
        if not score.entries[ENTRY].equals(first.entries[ENTRY]):
            raise UserError(
                f"{first.generator}: judges scored different images of {first.split}; score again"
            )
    set_summary = dict(first.set_summary)
    for name in ("blind_control", "hubness", "adjective"):
        if name in set_summary:
            values = [score.set_summary.get(name) for score in scores]
            set_summary[name] = None if None in values else float(np.mean(np.array(values)))
    by_judge = tuple(score.entries for score in scores)
    # The hash is that of one judge.
    summary = {**first.summary, "judge_hash": None}
    return Scored(set_summary, summary, first.entries, by_judge)


def all_scores(
    judges: Mapping[str, Sequence[Scored]], oracle: Sequence[Scored] = ()
) -> list[Scored]:
    """Return a generator's scores by split: of all judges, each judge, the oracle. ``judges``:
    scores by judge.
    """
    by_judge = [
        [replace(score, judge_seed=judge) for score in scores] for judge, scores in judges.items()
    ]
    scores = by_judge[0]
    # The score of a single judge is that of all judges.
    if len(by_judge) > 1:
        scores = [averaged(group) for group in zip(*by_judge, strict=True)]
        for judge_scores in by_judge:
            scores += [replace(score, single_judge=True) for score in judge_scores]
    return sorted([*scores, *oracle], key=_row_order)


def _row_order(score: Scored) -> tuple[int, bool, str]:
    """Sort by split, subsets of seen prompts after all prompts; the sort keeps judges in order."""
    is_subset = score.set_summary["prompts"] in PARTS_OF_SEEN
    return TESTS.index(score.split), is_subset, score.set_summary["distractors"]
