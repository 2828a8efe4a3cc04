"""Ask the judge to choose between the right and one wrong adjective of held-out pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from workflow_scripts.clip.embed import items_of, open_embedder
from workflow_scripts.clip.tokens import cut_texts, say_cut
from workflow_scripts.core import cli
from workflow_scripts.core.cli import log
from workflow_scripts.core.heldout import read_heldout
from workflow_scripts.core.io import read_table, write_json
from workflow_scripts.core.rounding import rounded
from workflow_scripts.core.seeds import rng
from workflow_scripts.core.tables import CAPTIONS, IMAGES, PAIRS, RANKING, SPLIT
from workflow_scripts.score.steps import AdjectiveChoice
from workflow_scripts.score.trials import make_trials
from workflow_scripts.split.judged import judged_images
from workflow_scripts.stats import interval


def summarize(trials: pd.DataFrame, margins: np.ndarray, resamples: int, seed: int) -> dict[str, Any]:
    """Return the fraction of right choices with its interval, and by adjective; a margin (n,) of 0 is half right."""
    right = np.where(margins > 0, 1.0, np.where(margins == 0, 0.5, 0.0))
    fraction = interval.Estimate(np.nan, None, None)
    if len(trials):
        images = trials["image_id"].to_numpy()
        stream = rng(seed, "adjective_choice", "interval")
        fraction = interval.share(images, right, np.ones(len(right)), resamples, stream)
    by_adjective = pd.Series(right).groupby(trials["adjective"].to_numpy()).agg(["size", "mean"])
    return {
        "n": len(trials),
        "images": int(trials["image_id"].nunique()),
        "right": rounded(fraction.value) if len(trials) else None,
        "low": rounded(fraction.low),
        "high": rounded(fraction.high),
        "ties": int((margins == 0).sum()),
        "adjectives": {name: {"n": int(n), "right": rounded(mean)} for name, n, mean in by_adjective.itertuples()},
    }


def main(step: AdjectiveChoice) -> None:
    images = read_table(step.images, IMAGES)
    judged = judged_images(read_table(step.splits, SPLIT), images, step.train_on, step.halves)
    unseen = judged.loc[judged["split"] == "test_unseen", "image_id"]
    files = images[images["image_id"].isin(unseen) & images["path"].notna()].set_index("image_id")["path"]
    captions, pairs = read_table(step.captions, CAPTIONS), read_table(step.pairs, PAIRS)
    trials, skipped = make_trials(
        captions[captions["image_id"].isin(files.index)],
        pairs[pairs["image_id"].isin(files.index)],
        set(read_heldout(step.heldout)),
        sorted(read_table(step.ranking, RANKING)["adjective"].unique()),
        step.seed,
    )
    asked = [*trials["text"], *trials["wrong_text"]]
    with open_embedder(step) as embedder:
        shown = embedder.images(items_of(files.loc[trials["image_id"]].tolist(), images, step.results))
        texts = embedder.texts(asked)
        truncated = len(cut_texts(embedder.judge.tokenizer, asked))
    say_cut(truncated, len(set(asked)))
    right, wrong = texts[: len(trials)], texts[len(trials) :]
    margins = np.einsum("nd,nd->n", shown, right) - np.einsum("nd,nd->n", shown, wrong)
    result = {
        "dataset": step.dataset,
        "composition": step.composition,
        "judge": embedder.judge.name,
        "judge_hash": embedder.judge.hash,
        "train_on": step.train_on,
        "seed": step.seed,
        **summarize(trials, margins, step.bootstrap, step.seed),
        "captions": len(set(asked)),
        "truncated_captions": truncated,
        "left_out": dict(sorted(skipped.items())),
    }
    write_json(result, step.choice)
    where = f"{step.dataset}/{step.composition}"
    if result["n"]:
        log.info("%s: right adjective chosen in %.1f %% of %d", where, 100 * result["right"], result["n"])
    else:
        log.warning("warning: %s: no judged image of test_unseen has a caption to ask about", where)


if __name__ == "__main__":
    cli.run(main)
