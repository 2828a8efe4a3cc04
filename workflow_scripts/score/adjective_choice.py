"""Between the right and one wrong adjective of a held-out pair, which does the judge choose for a real image?

R-precision alone can hide a judge that is blind to a composition's adjectives. Each caption of a judged image of
test_unseen that holds a held-out pair is set against itself with that adjective replaced by one that no caption
of the image says of the noun.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from workflow_scripts.clip import embed
from workflow_scripts.clip.tokens import cut_texts, say_cut
from workflow_scripts.core import cli
from workflow_scripts.core.cli import log
from workflow_scripts.core.heldout import read_heldout
from workflow_scripts.core.io import read_table, write_json
from workflow_scripts.core.seeds import rng
from workflow_scripts.core.tables import CAPTIONS, IMAGES, PAIRS, RANKING, SPLIT
from workflow_scripts.score.scores import rounded
from workflow_scripts.split.judged import judged_images
from workflow_scripts.split.swap_adjectives import Candidate, apply
from workflow_scripts.split.wording import Mention
from workflow_scripts.stats import interval

TRIAL = ["image_id", "caption_id", "adjective", "noun", "wrong", "text", "wrong_text"]


def make_trials(
    captions: pd.DataFrame, pairs: pd.DataFrame, heldout: set[str], adjectives: list[str], seed: int
) -> tuple[pd.DataFrame, Counter[str]]:
    """A row (TRIAL) for each caption and held-out pair in it, sorted; and why others were left out.

    captions, pairs: of the images to ask about. adjectives: those that may be the wrong one, canonical.
    """
    texts = captions.set_index(["image_id", "caption_id"])["text"]
    said = pairs.groupby(["image_id", "noun"])["adjective"].agg(set).to_dict()
    # An adjective that several nouns share cannot be replaced for one of them alone.
    bearers = pairs.groupby(["image_id", "caption_id", "adjective_start"])["noun_start"].transform("nunique")
    pairs = pairs.assign(plain=~pairs["relation"].isin(["shared", "disputed"]) & (bearers == 1))
    held = pairs[(pairs["adjective"] + "_" + pairs["noun"]).isin(heldout)]
    rows, left_out = [], Counter[str]()
    for (image, caption, adjective, noun), mentions in held.groupby(["image_id", "caption_id", "adjective", "noun"]):
        wrong = [other for other in adjectives if other not in said[image, noun]]
        if not mentions["plain"].all():
            left_out["shared or disputed"] += 1
        elif not wrong:
            left_out["no wrong adjective is left"] += 1
        else:
            chosen = str(rng(seed, "adjective_choice", image, int(caption), adjective, noun).choice(wrong))
            columns = ["adjective_start", "adjective_end", "noun_start", "noun_end"]
            places = [
                Mention(adjective, noun, *map(int, row), relation)
                for *row, relation in mentions.drop_duplicates("adjective_start")[[*columns, "relation"]].values
            ]
            text = texts[image, caption]
            changed, _ = apply(text, [Candidate(noun, chosen, tuple(places))])
            rows.append((image, caption, adjective, noun, chosen, text, changed))
    return pd.DataFrame(rows, columns=TRIAL), left_out


def summarize(trials: pd.DataFrame, margins: np.ndarray, resamples: int, seed: int) -> dict[str, Any]:
    """Share of right choices, its interval over images, and by adjective. margins (n,): right minus wrong.

    A tie is half right.
    """
    right = np.where(margins > 0, 1.0, np.where(margins == 0, 0.5, 0.0))
    found = interval.Estimate(np.nan, None, None)
    if len(trials):
        images = trials["image_id"].to_numpy()
        found = interval.share(images, right, np.ones(len(right)), resamples, rng(seed, "adjective_choice", "interval"))
    by_adjective = pd.Series(right).groupby(trials["adjective"].to_numpy()).agg(["size", "mean"])
    return {
        "n": len(trials),
        "images": int(trials["image_id"].nunique()),
        "right": rounded(found.value) if len(trials) else None,
        "low": rounded(found.low),
        "high": rounded(found.high),
        "ties": int((margins == 0).sum()),
        "adjectives": {name: {"n": int(n), "right": rounded(mean)} for name, n, mean in by_adjective.itertuples()},
    }


def main(options: argparse.Namespace) -> None:
    images = read_table(options.images, IMAGES)
    judged = judged_images(read_table(options.splits, SPLIT), images, options.train_on, options.seed)
    unseen = judged.loc[judged["split"] == "test_unseen", "image_id"]
    files = images[images["image_id"].isin(unseen) & images["path"].notna()].set_index("image_id")["path"]
    captions, pairs = read_table(options.captions, CAPTIONS), read_table(options.pairs, PAIRS)
    trials, left_out = make_trials(
        captions[captions["image_id"].isin(files.index)],
        pairs[pairs["image_id"].isin(files.index)],
        set(read_heldout(options.heldout)),
        sorted(read_table(options.ranking, RANKING)["adjective"].unique()),
        options.seed,
    )
    with embed.open_embedder(options) as embedder:
        shown = embedder.images(embed.items_of(files.loc[trials["image_id"]].tolist(), images, options.results))
        asked = [*trials["text"], *trials["wrong_text"]]
        texts = embedder.texts(asked)
        truncated = len(cut_texts(embedder.judge.tokenizer, asked))
    say_cut(truncated, len(set(asked)))
    right, wrong = texts[: len(trials)], texts[len(trials) :]
    margins = np.einsum("nd,nd->n", shown, right) - np.einsum("nd,nd->n", shown, wrong)
    result = {
        "dataset": options.dataset,
        "composition": options.composition,
        "judge": embedder.judge.name,
        "judge_hash": embedder.judge.hash,
        "train_on": options.train_on,
        "seed": options.seed,
        **summarize(trials, margins, options.bootstrap, options.seed),
        "captions": len(set(asked)),
        "truncated_captions": truncated,
        "left_out": dict(sorted(left_out.items())),
    }
    write_json(result, options.output)
    where = f"{options.dataset}/{options.composition}"
    if result["n"]:
        log.info("%s: right adjective chosen in %.1f %% of %d", where, 100 * result["right"], result["n"])
    else:
        log.warning("warning: %s: no judged image of test_unseen has a caption to ask about", where)


def arguments() -> argparse.ArgumentParser:
    parser = cli.parser(__doc__)
    for name in ("captions", "images", "pairs", "splits", "ranking"):
        parser.add_argument(f"--{name}", type=Path, required=True, help=f"{name}.parquet")
    parser.add_argument("--heldout", type=Path, required=True, help="heldout.json")
    parser.add_argument("--results", type=Path, required=True, help="the folder that paths in tables are relative to")
    parser.add_argument("--dataset", required=True)
    parser.add_argument("--composition", required=True)
    parser.add_argument(
        "--train-on", choices=("train", "half", "all"), default="train", help="as the judge was trained"
    )
    parser.add_argument("--bootstrap", type=cli.resamples, default=2000, help="resamples of the interval")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, required=True, help="adjective_choice.json")
    embed.add_arguments(parser)
    return parser


if __name__ == "__main__":
    cli.run(main, arguments())
