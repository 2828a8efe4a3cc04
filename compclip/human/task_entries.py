"""The scored images for tasks, each with the caption that its own is compared with."""

from collections import Counter

import pandas as pd

from compclip.core.artifacts.heldout import pair_names
from compclip.core.seeds import rng
from compclip.core.tables import CAPTION_KEY
from compclip.human.tasks import PROMPT_COLUMNS
from compclip.split.swap_adjectives import SwapOption, apply, mentions_by_caption, of_one_noun

# A held-out pair in a caption, and the same caption with one wrong adjective.
TRIAL = ["image_id", "caption_id", "adjective", "noun", "wrong", "text", "wrong_text"]
Others = dict[tuple[str, str, int], str]  # other captions by split, image_id and caption_id


def make_trials(
    captions: pd.DataFrame, pairs: pd.DataFrame, heldout: set[str], adjectives: list[str], seed: int
) -> pd.DataFrame:
    """Return a trial (``TRIAL``) for each caption and held-out pair in it that can be changed.

    ``captions`` and ``pairs`` are of the images to ask about; the wrong adjective is one of
    ``adjectives`` (canonical) that no caption of the image states. A shared or disputed adjective
    is not changed.
    """
    texts = captions.set_index(CAPTION_KEY)["text"]
    stated = pairs.groupby(["image_id", "noun"])["adjective"].agg(set)
    rows = []
    for (image, caption), mentions in mentions_by_caption(pairs).items():
        text = texts[image, caption]
        changeable = of_one_noun(mentions)
        # Sorted, because a set of texts has another order in each process.
        for adjective, noun in sorted({(m.adjective, m.noun) for m in mentions}):
            if f"{adjective}_{noun}" not in heldout:
                continue
            # All mentions of the pair change together, so that the caption stays consistent.
            target = [m for m in mentions if (m.adjective, m.noun) == (adjective, noun)]
            candidates = [name for name in adjectives if name not in stated[image, noun]]
            if not candidates or not changeable.issuperset(target):
                continue
            # A stream for each pair, so that other captions do not change the choice.
            generator = rng(seed, "adjective_choice", image, caption, adjective, noun)
            wrong = str(generator.choice(candidates))
            # Two readings may find the same pair.
            distinct = {m.start: m for m in target}
            change = SwapOption.of(noun, wrong, tuple(distinct.values()))
            changed, _ = apply(text, [change])
            rows.append((image, caption, adjective, noun, wrong, text, changed))
    return pd.DataFrame(rows, columns=TRIAL)


def other_captions(swapped: pd.DataFrame, prompts: pd.DataFrame, trials: pd.DataFrame) -> Others:
    """Return the caption that each prompt is compared with, which differs only in adjectives.

    It is the swap of a seen caption, the original of a swapped one, and that of ``trials`` for an
    unseen one.
    """
    texts: Others = {}
    for row in swapped.itertuples():
        caption = (row.image_id, row.caption_id)
        texts["test_seen", *caption] = row.swapped_text
        texts["test_swapped", *caption] = row.text
    unseen = prompts[prompts["split"] == "test_unseen"]
    trials = trials.assign(pair=pair_names(trials))
    # A caption may have several held-out pairs; its prompt is about one of them.
    tried = unseen.merge(trials, on=[*CAPTION_KEY, "pair"])
    for row in tried.itertuples():
        texts["test_unseen", row.image_id, row.caption_id] = row.wrong_text
    return texts


def entries_of(
    prompts: pd.DataFrame, manifests: pd.DataFrame, scores: pd.DataFrame, others: Others
) -> tuple[pd.DataFrame, Counter[str]]:
    """Return a row for each scored image, and counts of other images by reason.

    ``manifests`` and ``scores`` also have generator, and ``scores`` split. Columns are generator,
    ``PROMPT_COLUMNS``, text, pair, other (None without another caption) and path.
    """
    key = ["generator", *PROMPT_COLUMNS]
    images = manifests[manifests["status"] == "ok"]
    entries = images.merge(scores[key], on=key)
    skipped = Counter[str]()
    skipped["no image"] = len(manifests) - len(images)
    skipped["not scored"] = len(images) - len(entries)
    entries = entries.merge(prompts[[*PROMPT_COLUMNS, "text", "pair"]], on=PROMPT_COLUMNS)
    caption_keys = pd.MultiIndex.from_frame(entries[["split", *CAPTION_KEY]])
    entries["other"] = caption_keys.map(others.get)
    is_seen = entries["split"] == "test_seen"
    is_unswapped = is_seen & entries["other"].isna()
    # Only swapped ones, if there are any, so that seen and swapped tasks are of the same captions.
    if is_seen.sum() > is_unswapped.sum():
        skipped["seen caption that was not swapped"] += int(is_unswapped.sum())
        entries = entries[~is_unswapped]
    entries = entries.sort_values(key, ignore_index=True)
    return entries.astype(object).where(entries.notna(), None), skipped
