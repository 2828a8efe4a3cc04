"""Score a run's images again: python score_images.py results/sketch/color faithful test_unseen 0
100 (candidates).
"""

import sys
from pathlib import Path

import pandas as pd

import compclip

place, generator, split, judge, candidates = Path(sys.argv[1]), *sys.argv[2:]
captions, images = (
    pd.read_parquet(place.parent / f"{name}.parquet") for name in ("captions", "images")
)
splits, prompts, variants = (
    pd.read_parquet(place / f"{name}.parquet") for name in ("splits", "prompts", "variants")
)
entries, variants = (table[table["split"] == split] for table in (prompts, variants))
# Further draws of matched seen prompts are not in the table's means.
entries = entries[entries["draw"] == 0]
entries = entries.assign(path=f"{place}/generated/{generator}/images/" + entries["file_name"])
judged = compclip.evaluation_images(splits, images, "half", seed=0).query("split == @split")
scoring = compclip.Scoring(candidates=candidates)
encoder = compclip.load_judge(place.parent / "judges" / judge)
scores = compclip.score_with_judge(
    entries, encoder, captions.merge(judged), variants, scoring=scoring
)
print("R-precision", scores.r_precision, "adjective accuracy", scores.adjective_accuracy, sep="\n")
