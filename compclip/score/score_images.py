"""Score a generator's images by a trained judge; find hubs, captions that are near to many images."""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from compclip.clip.embed import Embedder, items_of, mean_embedding, merge_equal, open_embedder, similarities
from compclip.clip.tokens import cut_texts, say_cut
from compclip.core import cli
from compclip.core.rounding import rounded
from compclip.io import read_json
from compclip.score import scores
from compclip.score.choices import Choices, gathered, ranked_first, variants_of_entries
from compclip.score.entries import EntrySet, Numbered, number, renumber
from compclip.score.scores import Inputs, SetScores
from compclip.score.steps import ScoreImages
from compclip.stats.r_precision import BLOCK, Blocks, Judged, Weights, blocks, by_class, expected_of_one

HUBS = 0.01  # fraction of the captions that count as hubs
# From n texts, or paths in the manifest, to their embeddings, (n, d).
Embed = Callable[[Sequence[str]], np.ndarray]


class Nearest:
    """The captions that wrongly rank first, collected block by block.

    The candidates of an image are its own caption and all captions of the pool of other classes; texts: their number.
    """

    def __init__(self, texts: int, numbered: Numbered) -> None:
        self.texts, self.numbered, self.weights = texts, numbered, Weights(numbered.pool, texts)
        self.wrong = np.full(len(numbered.entries.own), -1)  # the caption ranked first, -1 for the own one

    def add(self, rows: np.ndarray, values: np.ndarray) -> None:
        entries = self.numbered.entries
        for of, part in by_class(entries.classes[rows]):
            no_candidates = np.flatnonzero(self.weights.of(of)[0] == 0)
            of_class, each = values[part], np.arange(part.stop - part.start)
            own, kept = of_class[each, entries.own[rows[part]]], of_class[:, no_candidates]
            of_class[:, no_candidates] = -np.inf
            best = of_class.argmax(axis=1)
            self.wrong[rows[part]] = np.where(of_class[each, best] > own, best, -1)
            of_class[:, no_candidates] = kept

    def hubness(self, rows: np.ndarray) -> float | None:
        """Return which fraction of the wrong first ranks of ``rows`` the most frequent 1 % of the captions take."""
        wins = np.bincount(self.wrong[rows][self.wrong[rows] >= 0], minlength=self.texts)
        hubs = math.ceil(HUBS * len(np.unique(self.numbered.pool.texts)))
        return float(np.sort(wins)[-hubs:].sum() / wins.sum()) if wins.any() else None


def embed_once(embedder: Embedder, texts: Sequence[str]) -> Embed:
    """Return the function from some of ``texts`` to their embeddings, (n, d)."""
    place = {text: row for row, text in enumerate(dict.fromkeys(texts))}
    vectors = embedder.texts(list(place))
    return lambda chosen: vectors[[place[text] for text in chosen]]


def adjective_choices(entry_set: EntrySet, variants: pd.DataFrame, embed: Embed, images: np.ndarray) -> Choices:
    """Return which adjective the judge chooses for each entry, from the embeddings (n, d) of their images."""
    entry, variant = variants_of_entries(entry_set, variants)
    # Draws share prompts and variants, so each text has one row.
    place, texts = pd.factorize(pd.concat([entry_set.entries["text"], variants["text"].iloc[variant]]))
    n, cosines = len(entry_set.entries), gathered(images, embed(texts.tolist()))
    return ranked_first(cosines(np.arange(n), place[:n]), cosines(entry, place[n:]), entry)


def score_set(
    step: ScoreImages, inputs: Inputs, entry_set: EntrySet, embed_texts: Embed, images: np.ndarray, choices: Choices
) -> SetScores:
    """Score one set by the embeddings (n, d) of its images.

    The summaries add the blind control, in which each image has the mean embedding of all, and what hubs take.
    """
    numbered = number(entry_set, inputs.classes)
    texts, index = merge_equal(embed_texts(numbered.texts))
    numbered = renumber(numbered, index)
    nearest = Nearest(len(texts), numbered)

    def one_pass() -> Blocks:
        for rows, values in blocks(similarities(images, texts), numbered.entries.classes):
            nearest.add(rows, values)
            yield rows, values

    def controls(rows: np.ndarray, _: Judged) -> dict[str, Any]:
        if not rows.any():
            return {"blind_control": None, "hubness": None}
        blind = similarities(mean_embedding(images, rows)[None].repeat(BLOCK, axis=0), texts)(np.arange(BLOCK))[0]
        rule = numbered.entries, numbered.pool, scores.candidates_of(step), step.scoring.ties
        return {
            "blind_control": rounded(expected_of_one(blind, *rule)[rows].mean()),
            "hubness": rounded(nearest.hubness(rows)),
        }

    return scores.score_set(step, inputs, entry_set, numbered, one_pass(), len(texts), choices, controls)


def main(step: ScoreImages) -> None:
    step, inputs = scores.load_inputs(step)
    captions = scores.all_captions(step, inputs)
    manifest = step.judge / "manifest.json"
    epochs = read_json(manifest).get("epochs") if manifest.is_file() else None
    with open_embedder(step.judge, step.batch, step.threads, step.device, step.cache) as embedder:
        judge = {"judge": embedder.judge.name, "judge_hash": embedder.judge.hash, "judge_epochs": epochs}
        embed_texts = embed_once(embedder, captions + inputs.variants["text"].tolist())
        truncated = cut_texts(embedder.judge.tokenizer, captions)
        say_cut(len(truncated), len(captions))

        def score(name: str, sets: list[EntrySet]) -> tuple[dict[str, SetScores], dict[str, Any]]:
            # Two sets of a split, one after the other, differ in their pools alone.
            @lru_cache(1)
            def of_split(split: str) -> tuple[np.ndarray, Choices]:
                entry_set = next(part for part in sets if part.split == split)
                images = embedder.images(items_of(entry_set.entries["path"].tolist(), inputs.images, step.results))
                return images, adjective_choices(entry_set, inputs.variants, embed_texts, images)

            scored = {part.name: score_set(step, inputs, part, embed_texts, *of_split(part.split)) for part in sets}
            texts = {text for part in sets for table in (part.entries, part.pool) for text in table["text"].tolist()}
            return scored, judge | {"captions": len(texts), "truncated_captions": len(truncated & texts)}

        scores.score_generators(step, inputs, score)


if __name__ == "__main__":
    cli.run(main)
