"""Measure a judge's health: whether it reads held-out pairs as well as seen ones on images that show what they should.

A judge that has learned from the same captions as the generators may know a seen pair better than a held-out one. Then
a perfect generator falls too, and falls cannot be distinguished from the judge's bias. The measure is adjective
accuracy: k-way among the noun's ranked adjectives, and two-way against one of them.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from compclip.core.rounding import rounded
from compclip.score.choices import CAPTION_KEY, Choices
from compclip.score.entries import ENTRY, judged_entries
from compclip.score.score_images import Embed, adjective_choices
from compclip.split.swap_adjectives import Candidate, apply, mentions_by_caption
from compclip.stats import crossed

# A form is a synonym if it is at least this fraction of its word's occurrences; rarer ones are mostly misspelled.
COMMON = 0.01
Synonyms = dict[tuple[str, str], str]


def real_entries(prompts: pd.DataFrame, images: pd.DataFrame, split: str) -> pd.DataFrame:
    """Return the prompts of a split as entries of the image that each was written for."""
    paths = images.dropna(subset="path").set_index("image_id")["path"]
    rows = prompts[prompts["split"] == split].drop_duplicates(CAPTION_KEY)
    return rows.assign(path=rows["image_id"].map(paths)).dropna(subset="path").sort_values(ENTRY, ignore_index=True)


def drawn_entries(prompts: pd.DataFrame, manifest: pd.DataFrame, swapped: pd.DataFrame, split: str) -> pd.DataFrame:
    """Return the prompts of a split that were swapped, as entries of the images that a generator drew."""
    return judged_entries(prompts, manifest, split)[0].merge(swapped[CAPTION_KEY], on=CAPTION_KEY)


def synonyms(captions: pd.DataFrame, pairs: pd.DataFrame) -> Synonyms:
    """Return, for an adjective (canonical) and a form of it, its most frequent other form in these captions."""
    rows = pairs.drop_duplicates([*CAPTION_KEY, "adjective_start"]).merge(captions, on=CAPTION_KEY)
    columns = (rows[name].tolist() for name in ("adjective", "text", "adjective_start", "adjective_end"))
    counts = Counter((adjective, text[start:end].lower()) for adjective, text, start, end in zip(*columns, strict=True))
    of_word = Counter(adjective for adjective, _ in counts.elements())
    ordered = sorted(counts, key=lambda form: (-counts[form], form))
    common = [form for form in ordered if counts[form] >= COMMON * of_word[form[0]]]
    others = {
        (adjective, form): next((word for canonical, word in common if canonical == adjective and word != form), "")
        for adjective, form in counts
    }
    return {form: other for form, other in others.items() if other}


def with_synonyms(entries: pd.DataFrame, pairs: pd.DataFrame, others: Synonyms) -> pd.DataFrame:
    """Return the entries whose adjective has a synonym, wherever the caption has the pair, with it in their text."""
    mentions = mentions_by_caption(pairs[pairs["image_id"].isin(entries["image_id"])])
    texts = []
    for image, caption, text, pair in entries[[*CAPTION_KEY, "text", "pair"]].itertuples(index=False):
        target = [m for m in mentions[image, caption] if f"{m.adjective}_{m.noun}" == pair]
        forms = [others.get((m.adjective, text[m.start : m.end].lower()), "") for m in target]
        candidates = [Candidate(m.noun, form, (m,)) for m, form in zip(target, forms, strict=True)]
        texts.append(apply(text, candidates)[0] if target and all(forms) else None)
    return entries.assign(text=texts).dropna(subset="text")


def accuracy(entries: pd.DataFrame, choices: Choices) -> dict[str, Any]:
    """Summarize choices: k-way, corrected for chance, with the interval over images and pairs; and two-way."""
    asked = choices.adjectives > 1
    if not asked.any():
        return {"n": 0, **dict.fromkeys(("accuracy", "low", "high", "chance", "corrected", "two_way"))}
    chance, first = float((1 / choices.adjectives[asked]).mean()), choices.first[asked]
    images, pairs = (entries.loc[asked, name].to_numpy() for name in ("image_id", "pair"))
    of = crossed.estimate(crossed.cells(images, pairs, first, np.ones(len(first))))
    corrected = (first.mean() - chance) / (1 - chance)
    found = {"accuracy": first.mean(), "low": of.low, "high": of.high, "chance": chance, "corrected": corrected}
    found["two_way"] = choices.two_way[asked].mean()
    return {"n": len(first), **{name: rounded(value) for name, value in found.items()}}


def ratio(seen: Mapping[str, Any], held_out: Mapping[str, Any]) -> float | None:
    """Return how much of the accuracy above chance is left on held-out pairs; None if it was not measured.

    It is 0 if the accuracy on seen pairs is not above chance, by the lower end of its interval.
    """
    if not seen["n"] or not held_out["n"]:
        return None
    least = seen["accuracy"] if seen["low"] is None else seen["low"]
    return rounded(max(0.0, held_out["corrected"]) / seen["corrected"]) if least > seen["chance"] else 0.0


def measure_health(
    texts: Embed, pictures: Embed, *, captions: pd.DataFrame, images: pd.DataFrame, pairs: pd.DataFrame,
    prompts: pd.DataFrame, swapped: pd.DataFrame, variants: pd.DataFrame, manifest: pd.DataFrame | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Measure the adjective accuracy of a judge on seen and on held-out pairs.

    Args:
        texts: from n captions to their embeddings by the judge, (n, d), of unit length.
        pictures: the same from paths in ``images`` and ``manifest``.
        captions, images, pairs, prompts, swapped, variants: columns of ``CAPTIONS`` and so on in ``tables``.
        manifest: images drawn as asked, of captions before and after a swap.

    Returns:
        For real and drawn ``images`` the accuracies, and the ``ratio`` of those above chance; the lower ``ratio`` of
        both; for what fraction of the real images the choice stays the same with a ``synonym`` in the prompt.
    """
    # Of seen and of held-out pairs: captions of different images, or the same captions before and after a swap.
    parts = {"real": {split: real_entries(prompts, images, split) for split in ("test_seen", "test_unseen")}}
    if manifest is not None:
        tests = ("test_seen", "test_swapped")
        parts["drawn"] = {split: drawn_entries(prompts, manifest, swapped, split) for split in tests}

    def choices(entries: pd.DataFrame, split: str) -> Choices:
        return adjective_choices(entries, split, variants, texts, pictures(entries["path"].tolist()))

    others, agreements = synonyms(captions, pairs), []
    result: dict[str, dict[str, Any]] = {}
    for name, by_split in parts.items():
        chosen = {split: choices(entries, split) for split, entries in by_split.items()}
        seen, held_out = (accuracy(entries, chosen[split]) for split, entries in by_split.items())
        result[name] = {"seen": seen, "held_out": held_out, "ratio": ratio(seen, held_out)}
        for split, entries in by_split.items() if name == "real" else ():
            replaced = with_synonyms(entries, pairs, others)
            differences = np.abs(chosen[split].first[replaced.index] - choices(replaced, split).first)
            agreements.append(1 - differences[~np.isnan(differences)])
    agreed = np.concatenate(agreements)
    return {
        "images": result,
        "ratio": min((of["ratio"] for of in result.values() if of["ratio"] is not None), default=None),
        "synonyms": {"n": len(agreed), "agreement": rounded(agreed.mean()) if len(agreed) else None},
    }
