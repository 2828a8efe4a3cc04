"""Score a generator's drawn scenes by the oracle, which knows what was drawn (sketches alone).

Writes tables of scores and predictions as ``score_images`` does, and summary.json with the rate of distractors
that are true of the image and the ceiling that they leave.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from workflow_scripts.core import cli
from workflow_scripts.core.io import atomic_folder, write_json
from workflow_scripts.score import scores
from workflow_scripts.score.entries import EntrySet, number
from workflow_scripts.score.oracle import (
    CaptionKey,
    Fact,
    facts_of_captions,
    facts_of_swapped,
    scenes_of_entries,
    share_true,
)
from workflow_scripts.score.scores import Inputs, SetScores, Settings, rounded
from workflow_scripts.stats.r_precision import Judged, judge

Facts = dict[CaptionKey, frozenset[Fact]]


def as_facts(table: pd.DataFrame, facts: Facts, known: dict[str, frozenset[Fact]]) -> pd.DataFrame:
    """``table`` with each caption's text replaced by its facts as text, which ``known`` maps back."""
    texts = []
    for image, caption in table[["image_id", "caption_id"]].itertuples(index=False):
        stated = facts.get((image, caption), frozenset())
        texts.append("; ".join(" ".join(fact) for fact in sorted(stated)))
        known[texts[-1]] = stated
    return table.assign(text=pd.Series(texts, index=table.index, dtype=str))


def score_set(
    entry_set: EntrySet,
    inputs: Inputs,
    scenes: pd.DataFrame,
    drawn: pd.DataFrame | None,
    original: Facts,
    swapped: Facts,
    settings: Settings,
    prompt_rule: str,
) -> SetScores:
    """The scores of one set."""
    known: dict[str, frozenset[Fact]] = {}
    own = swapped if entry_set.split == "test_swapped" else original
    other = swapped if entry_set.distractors == "swapped" else original
    entry_set = replace(
        entry_set,
        entries=as_facts(entry_set.entries, own, known),
        pool=as_facts(entry_set.pool, other, known),
    )
    numbered = number(entry_set, inputs.classes)
    captions = [known[text] for text in numbered.texts]
    similarities = share_true(scenes_of_entries(entry_set, inputs.images, scenes, drawn), captions)
    # Against an own caption of which all is true, a distractor ties just where it is true as well.
    perfect = judge(
        lambda rows: np.column_stack([similarities(rows), np.ones(len(rows))]),
        len(captions) + 1,
        replace(numbered.entries, own=np.full(len(entry_set.entries), len(captions))),
        numbered.pool,
        **settings.candidate_rule,
    )

    def more(rows: np.ndarray, found: Judged) -> dict[str, Any]:
        if not rows.any():
            return {"true_captions": None, "true_distractors": None, "ceiling": None}
        return {
            "true_captions": rounded((found.similarity[rows] == 1).mean()),
            "true_distractors": rounded(perfect.tied[rows].mean()),
            "ceiling": rounded(perfect.expected[rows].mean()),
        }

    return scores.score_set(
        entry_set,
        numbered,
        similarities,
        len(captions),
        swapped=inputs.swapped,
        prompt_rule=prompt_rule,
        settings=settings,
        more=more,
    )


def main(options: argparse.Namespace) -> None:
    inputs = scores.load_inputs(options)
    settings = scores.settings_of(options)
    scenes = pd.read_parquet(options.scenes)
    drawn = pd.read_parquet(options.drawn) if options.drawn else None
    facts = pd.read_parquet(options.facts)
    original, swapped = facts_of_captions(facts), facts_of_swapped(facts, inputs.swapped)
    found = {
        part.name: score_set(part, inputs, scenes, drawn, original, swapped, settings, options.prompt_rule)
        for part in inputs.sets
    }
    with atomic_folder(options.output) as folder:
        summaries = scores.write_scores(found, folder)
        write_json(
            scores.head(options, inputs) | {"judge": "oracle", "judge_hash": None, "scores": summaries},
            folder / "summary.json",
        )
    scores.warn(summaries, f"{options.generator} (oracle)", settings)


def arguments() -> argparse.ArgumentParser:
    parser = cli.parser(__doc__)
    scores.add_arguments(parser)
    parser.add_argument("--scenes", type=Path, required=True, help="scenes.parquet of the data set")
    parser.add_argument("--facts", type=Path, required=True, help="facts.parquet of the data set")
    parser.add_argument(
        "--drawn", type=Path, nargs="?", help="scenes.parquet of the generator, where it drew its images"
    )
    return parser


if __name__ == "__main__":
    cli.run(main, arguments())
