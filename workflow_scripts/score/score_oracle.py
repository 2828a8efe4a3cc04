"""Score a generator's drawn scenes by the oracle."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from workflow_scripts.core import cli
from workflow_scripts.core.io import read_frame
from workflow_scripts.core.layout import ORACLE
from workflow_scripts.core.rounding import rounded
from workflow_scripts.score import oracle, scores
from workflow_scripts.score.entries import EntrySet, number
from workflow_scripts.score.oracle import CaptionKey, Fact
from workflow_scripts.score.scores import Inputs, SetScores
from workflow_scripts.score.steps import ScoreOracle
from workflow_scripts.stats.r_precision import Blocks, Judged, Weights, blocks, expected_top1, weigh

Facts = dict[CaptionKey, frozenset[Fact]]


@cache
def as_text(stated: frozenset[Fact]) -> str:
    return "; ".join(" ".join(fact) for fact in sorted(stated))


def as_facts(table: pd.DataFrame, facts: Facts, known: dict[str, frozenset[Fact]]) -> pd.DataFrame:
    """Replace each caption's text in ``table`` by its facts as text, and record in ``known`` what these texts mean."""
    texts = []
    for image, caption in table[["image_id", "caption_id"]].itertuples(index=False):
        stated = facts.get((image, caption), frozenset())
        texts.append(as_text(stated))
        known[texts[-1]] = stated
    return table.assign(text=pd.Series(texts, index=table.index, dtype=str))


def score_set(
    step: ScoreOracle,
    inputs: Inputs,
    entry_set: EntrySet,
    scenes: pd.DataFrame,
    drawn: pd.DataFrame | None,
    changed: list[frozenset[Fact]],
    original: Facts,
    swapped: Facts,
) -> SetScores:
    """Score one set; the summaries add what is true of the images, and the ceiling that true distractors leave."""
    known: dict[str, frozenset[Fact]] = {}
    own = swapped if entry_set.split == "test_swapped" else original
    other = swapped if entry_set.distractors == "swapped" else original
    entry_set = replace(
        entry_set, entries=as_facts(entry_set.entries, own, known), pool=as_facts(entry_set.pool, other, known)
    )
    numbered = number(entry_set, inputs.classes)
    captions = [known[text] for text in numbered.texts]
    n = len(captions)
    shown = oracle.scenes_of_entries(entry_set, inputs.images, scenes, drawn)
    similarities = oracle.fraction_true(shown, captions)
    choices = oracle.adjective_choices(entry_set, inputs.variants, shown, own, changed)
    # A distractor ties with an own caption that is completely true only if it is completely true as well.
    perfect = replace(numbered.entries, own=np.full(len(entry_set.entries), n))
    tied, weights = np.zeros(len(perfect.own)), Weights(numbered.pool, n + 1)

    def one_pass() -> Blocks:
        for rows, values in blocks(similarities, numbered.entries.classes):
            with_perfect = np.column_stack([values, np.ones(len(rows))])
            tied[rows] = weigh(with_perfect, perfect, rows, weights)[2]
            yield rows, values

    def truth(rows: np.ndarray, judged: Judged) -> dict[str, Any]:
        if not rows.any():
            return {"true_captions": None, "true_distractors": None, "ceiling": None}
        return {
            "true_captions": rounded((judged.similarity[rows] == 1).mean()),
            "true_distractors": rounded(tied[rows].mean()),
            "ceiling": rounded(
                expected_top1(np.zeros(len(tied)), tied, scores.candidates_of(step), step.scoring.ties)[rows].mean()
            ),
        }

    return scores.score_set(step, inputs, entry_set, numbered, one_pass(), n, choices, truth)


def main(step: ScoreOracle) -> None:
    step, inputs = scores.load_inputs(step)
    scenes, facts = read_frame(step.scenes), read_frame(step.facts)
    # As objects, because Python takes values from Arrow's strings one by one, and slowly.
    facts = facts[facts["image_id"].isin(inputs.tables["judged"]["image_id"])].astype(object)
    original, swapped = oracle.facts_of_captions(facts), oracle.facts_of_swapped(facts, inputs.tables["swapped"])
    changed = oracle.facts_of_changed(facts, inputs.variants)

    def score(name: str, sets: list[EntrySet]) -> tuple[dict[str, SetScores], dict[str, Any]]:
        drawn = next((read_frame(file) for file in step.drawn if file.parent.name == name), None)
        scored = {part.name: score_set(step, inputs, part, scenes, drawn, changed, original, swapped) for part in sets}
        return scored, {"judge": ORACLE, "judge_hash": None}

    scores.score_generators(step, inputs, score)


if __name__ == "__main__":
    cli.run(main)
