"""The scored images for tasks, each with the caption that its own is compared with."""

from collections import Counter

import pandas as pd

from compclip.core.heldout import pair_names
from compclip.core.seeds import rng
from compclip.core.tables import CAPTION_KEY
from compclip.human.tasks import PROMPT_COLUMNS
from compclip.split.swap_adjectives import Candidate, apply, mentions_by_caption, of_one_noun

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
    adjectives_of = pairs.groupby(["image_id", "noun"])["adjective"].agg(set)
    rows = []
    for (image, caption), mentions in mentions_by_caption(pairs).items():
        plain, text = of_one_noun(mentions), texts[image, caption]
        for adjective, noun in sorted({(m.adjective, m.noun) for m in mentions}):
            if f"{adjective}_{noun}" not in heldout:
                continue
            target = [m for m in mentions if (m.adjective, m.noun) == (adjective, noun)]
            candidates = [other for other in adjectives if other not in adjectives_of[image, noun]]
            if candidates and plain.issuperset(target):
                wrong = str(
                    rng(seed, "adjective_choice", image, caption, adjective, noun).choice(
                        candidates
                    )
                )
                # Two readings may find the same pair.
                places = tuple({m.start: m for m in target}.values())
                changed, _ = apply(text, [Candidate.of(noun, wrong, places)])
                rows.append((image, caption, adjective, noun, wrong, text, changed))
    return pd.DataFrame(rows, columns=TRIAL)


def other_captions(swapped: pd.DataFrame, prompts: pd.DataFrame, trials: pd.DataFrame) -> Others:
    """Return the caption that each prompt is compared with, which differs only in adjectives.

    It is the swap of a seen caption, the original of a swapped one, and that of ``trials`` for an
    unseen one.
    """
    others: Others = {}
    for row in swapped.itertuples():
        others["test_seen", row.image_id, row.caption_id] = row.swapped_text
        others["test_swapped", row.image_id, row.caption_id] = row.text
    unseen = prompts[prompts["split"] == "test_unseen"]
    for row in unseen.merge(
        trials.assign(pair=pair_names(trials)), on=[*CAPTION_KEY, "pair"]
    ).itertuples():
        others["test_unseen", row.image_id, row.caption_id] = row.wrong_text
    return others


def entries_of(
    prompts: pd.DataFrame, manifests: pd.DataFrame, scores: pd.DataFrame, others: Others
) -> tuple[pd.DataFrame, Counter[str]]:
    """Return a row for each scored image, and counts of other images by reason.

    ``manifests`` and ``scores`` also have generator, and ``scores`` split. Columns are generator,
    ``PROMPT_COLUMNS``, text, pair, other (None without another caption) and path.
    """
    made = manifests[manifests["status"] == "ok"]
    entries = made.merge(scores[["generator", *PROMPT_COLUMNS]], on=["generator", *PROMPT_COLUMNS])
    skipped = Counter(
        {"no image": len(manifests) - len(made), "not scored": len(made) - len(entries)}
    )
    entries = entries.merge(prompts[[*PROMPT_COLUMNS, "text", "pair"]], on=PROMPT_COLUMNS)
    entries["other"] = pd.MultiIndex.from_frame(entries[["split", *CAPTION_KEY]]).map(others.get)
    seen = entries["split"] == "test_seen"
    unswapped = seen & entries["other"].isna()
    if seen.sum() > unswapped.sum():
        skipped["seen caption that was not swapped"] += int(unswapped.sum())
        entries = entries[~unswapped]
    entries = entries.sort_values(["generator", *PROMPT_COLUMNS], ignore_index=True)
    return entries.astype(object).where(entries.notna(), None), skipped
