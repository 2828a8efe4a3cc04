"""Trials of held-out pairs: a caption, and the same caption with one wrong adjective."""

from collections import Counter

import pandas as pd

from workflow_scripts.core.seeds import rng
from workflow_scripts.split.swap_adjectives import Candidate, apply
from workflow_scripts.split.wording import Mention

TRIAL = ["image_id", "caption_id", "adjective", "noun", "wrong", "text", "wrong_text"]


def make_trials(
    captions: pd.DataFrame, pairs: pd.DataFrame, heldout: set[str], adjectives: list[str], seed: int
) -> tuple[pd.DataFrame, Counter[str]]:
    """Return a trial (``TRIAL``) for each caption and held-out pair in it, and the number of skipped pairs by reason.

    ``captions`` and ``pairs`` are of the images to ask about; ``adjectives`` (canonical) may be the wrong one.
    """
    texts = captions.set_index(["image_id", "caption_id"])["text"]
    adjectives_of = pairs.groupby(["image_id", "noun"])["adjective"].agg(set).to_dict()
    # An adjective that several nouns share cannot be replaced for one of them alone.
    nouns = pairs.groupby(["image_id", "caption_id", "adjective_start"])["noun_start"].transform("nunique")
    pairs = pairs.assign(plain=~pairs["relation"].isin(["shared", "disputed"]) & (nouns == 1))
    held = pairs[(pairs["adjective"] + "_" + pairs["noun"]).isin(heldout)]
    rows, skipped = [], Counter[str]()
    for (image, caption, adjective, noun), mentions in held.groupby(["image_id", "caption_id", "adjective", "noun"]):
        candidates = [other for other in adjectives if other not in adjectives_of[image, noun]]
        if not mentions["plain"].all():
            skipped["shared or disputed"] += 1
        elif not candidates:
            skipped["no wrong adjective is left"] += 1
        else:
            wrong = str(rng(seed, "adjective_choice", image, int(caption), adjective, noun).choice(candidates))
            columns = ["adjective_start", "adjective_end", "noun_start", "noun_end", "relation"]
            places = [
                Mention(adjective, noun, int(start), int(end), int(noun_start), int(noun_end), relation)
                for start, end, noun_start, noun_end, relation in mentions.drop_duplicates(columns[0])[columns].values
            ]
            text = texts[image, caption]
            changed, _ = apply(text, [Candidate(noun, wrong, tuple(places))])
            rows.append((image, caption, adjective, noun, wrong, text, changed))
    return pd.DataFrame(rows, columns=TRIAL), skipped
