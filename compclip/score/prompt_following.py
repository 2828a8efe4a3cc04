"""Prompt following: how often a judge chooses an image's prompt among captions of other images.

R-precision ranks all captions by their embeddings. Prompt following asks for one choice among ten
texts, so that any judge has it. The exact R-precision of ten candidates is the expected prompt
following of a judge with embeddings.
"""

import pandas as pd

from compclip.core.tables import CAPTION_KEY, TESTS
from compclip.score.entries import ENTRY, EntrySet
from compclip.split.pools import Pools

# The prompt and its distractors.
CANDIDATES = 10
# How distractors are found among the sets of a split.
DISTRACTORS = "original"


def prompt_distractors(
    prompts: pd.DataFrame, pools: Pools, classes: pd.Series, seed: int
) -> pd.DataFrame:
    """Draw the texts among which each prompt is chosen.

    An image of another class is drawn uniformly, then one of its captions, with replacement, as for
    R-precision. Equal texts are listed once.

    Args:
        prompts: columns of ``ENTRY``, split, pair and text.
        pools: the captions of other images, by split.
        classes: the class of each image, by image_id.
        seed: of the draw.

    Returns:
        split, image_id, caption_id and text: up to nine rows for each prompt, none in a split
        without captions of other classes.
    """
    tables = []
    for split in TESTS:
        entries = prompts[prompts["split"] == split].drop_duplicates(CAPTION_KEY)
        entries = entries.sort_values(ENTRY, ignore_index=True)
        pool = pools.of_set(split, DISTRACTORS)
        # A prompt of the only class has no distractors, and is not asked.
        n_classes = pool["image_id"].map(classes).nunique()
        if not len(entries) or n_classes < 2:
            continue
        of_split = EntrySet(split, split, DISTRACTORS, entries, pool, classes, entries.iloc[:0])
        drawn = of_split.draws(CANDIDATES, seed).captions  # (n, 9) rows of the pool
        texts = pd.Series(of_split.numbered.texts)
        numbers = of_split.numbered.pool.texts[drawn]
        rows = entries[["split", *CAPTION_KEY, "text"]].loc[entries.index.repeat(drawn.shape[1])]
        rows["own"] = rows.pop("text")
        rows["text"] = texts.iloc[numbers.ravel()].to_numpy()
        tables.append(rows[rows["text"] != rows["own"]].drop(columns="own").drop_duplicates())
    columns = ["split", *CAPTION_KEY, "text"]
    if not tables:
        return pd.DataFrame(columns=columns)
    return pd.concat(tables, ignore_index=True)
