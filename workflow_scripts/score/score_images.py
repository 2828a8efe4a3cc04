"""Score a generator's images by a trained judge."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from workflow_scripts.clip.embed import Embedder, items_of, mean_embedding, merge_equal, open_embedder, similarities
from workflow_scripts.clip.tokens import cut_texts, say_cut
from workflow_scripts.core import cli
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import read_json
from workflow_scripts.core.rounding import rounded
from workflow_scripts.score import scores
from workflow_scripts.score.choices import Choices, gathered, ranked_first, variants_of_entries
from workflow_scripts.score.embed_images import Embed, open_shards
from workflow_scripts.score.entries import EntrySet, number, renumber
from workflow_scripts.score.hubs import InvertedSoftmax, Nearest
from workflow_scripts.score.scores import Inputs, SetScores
from workflow_scripts.score.steps import ScoreImages
from workflow_scripts.stats.r_precision import BLOCK, Blocks, Judged, blocks, expected, expected_of_one

HELD = 1 << 27  # similarities held for the second pass, 512 MB; of larger sets they are computed again


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

    The summaries add scores by other similarities, and what captions that are hubs take. In the blind control each
    image has the mean embedding of all.
    """
    numbered = number(entry_set, inputs.classes)
    texts, index = merge_equal(embed_texts(numbered.texts))
    numbered = renumber(numbered, index)

    cosines, classes, n = similarities(images, texts), numbered.entries.classes, len(texts)
    nearest = Nearest(n, numbered)
    softmax = {rows.tobytes(): InvertedSoftmax(n, rows) for rows in scores.parts(inputs, entry_set)}
    held: list[tuple[np.ndarray, np.ndarray]] = []

    def first_pass() -> Blocks:
        for rows, values in blocks(cosines, classes):
            nearest.add(rows, values)
            for of_part in softmax.values():
                of_part.add(rows, values)
            if len(images) * n <= HELD:
                held.append((rows, values))
            yield rows, values

    def by_others(rows: np.ndarray, _: Judged) -> dict[str, Any]:
        if not rows.any():
            return dict.fromkeys(("blind_control", "inverted_softmax", "hubness"))
        blind = similarities(mean_embedding(images, rows)[None].repeat(BLOCK, axis=0), texts)(np.arange(BLOCK))[0]
        rule = numbered.entries, numbered.pool, scores.candidates_of(step), step.scoring.ties
        again = softmax[rows.tobytes()].blocks(held or blocks(cosines, classes))
        return {
            "blind_control": rounded(expected_of_one(blind, *rule)[rows].mean()),
            "inverted_softmax": rounded(expected(again, n, *rule)[rows].mean()),
            "hubness": rounded(nearest.hubness(rows)),
        }

    return scores.score_set(step, inputs, entry_set, numbered, first_pass(), n, choices, by_others)


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

        def encode_files(paths: Sequence[str]) -> np.ndarray:
            return embedder.images(items_of(paths, inputs.images, step.results))

        def score(name: str, sets: list[EntrySet]) -> tuple[dict[str, SetScores], dict[str, Any]]:
            shards = [file for file in step.embedded if file.parent.name == name]
            if step.embedded and not shards:
                raise UserError(f"--embedded: no shards in a folder named {name}; pass those of every generator")
            embed_files = open_shards(shards, embedder.judge.hash) if shards else encode_files

            # Two sets of a split, one after the other, differ in their pools alone.
            @lru_cache(1)
            def of_split(split: str) -> tuple[np.ndarray, Choices]:
                entry_set = next(part for part in sets if part.split == split)
                images = embed_files(entry_set.entries["path"].tolist())
                return images, adjective_choices(entry_set, inputs.variants, embed_texts, images)

            scored = {part.name: score_set(step, inputs, part, embed_texts, *of_split(part.split)) for part in sets}
            texts = {text for part in sets for table in (part.entries, part.pool) for text in table["text"].tolist()}
            return scored, judge | {"captions": len(texts), "truncated_captions": len(truncated & texts)}

        scores.score_generators(step, inputs, score)


if __name__ == "__main__":
    cli.run(main)
