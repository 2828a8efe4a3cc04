"""The fraction of each held-out split that each generator composes, between habit and the reference.

It is measured by adjective accuracy, on the prompts for which both anchors have an image. Missing images of a generator
count as wrong.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from compclip.report.comparisons import HELDOUT_SPLITS
from compclip.report.rows import Row
from compclip.report.table import ENTRY, Scored
from compclip.report.values import Values, values_of
from compclip.stats.composed import Composed, fraction_composed, fractions_composed
from compclip.stats.estimates import ENDS

MEASURE = "adjective_accuracy"
# Reference and habit of each held-out split, which are the ends of the scale; None if not configured.
Anchors = Mapping[str, tuple[str | None, str | None]]


@dataclass(frozen=True)
class Fractions:
    """Fractions composed of one split by measure and generator, all on the same entries.

    ``fraction_composed_together``, for several ranked generators, has simultaneous intervals.
    """

    by_measure: Mapping[str, Mapping[str, Composed]]
    entries: pd.DataFrame


def _filled(values: Values, entries: pd.DataFrame) -> np.ndarray:
    """Return the values (J, n) of these entries, 0 where missing."""
    rows = entries[ENTRY].merge(values.entries[ENTRY].reset_index(names="row"), on=ENTRY, how="left")["row"]
    known = rows.notna().to_numpy()
    filled = np.zeros((len(entries), values.by_judge.shape[1]))
    filled[known] = values.by_judge[rows[known].astype(int)]
    return filled.T


def fractions_of(scores: Sequence[Scored], split: str, anchors: Anchors, controls: Sequence[str]) -> Fractions | None:
    """Return the fractions composed of a split in one composition; None without the split's anchors."""
    main = {score.generator: values_of(score, MEASURE) for score in scores if score.main and score.split == split}
    reference, habit = (main.get(name or "") for name in anchors[split])
    if reference is None or habit is None or not len(both := reference - habit):
        return None
    entries = both.entries
    by_generator = {name: _filled(values, entries) for name, values in main.items()}
    known = _filled(habit, entries), _filled(reference, entries)
    pairs, clusters = entries["pair"].to_numpy(), entries["cluster"].to_numpy()
    by_measure = {
        measure: {
            name: fraction_composed(of, *known, pairs, clusters=clusters, equal_pairs=equal)
            for name, of in by_generator.items()
        }
        for measure, equal in (("fraction_composed", False), ("fraction_composed_equal", True))
    }
    ranked = {name: of for name, of in by_generator.items() if name not in controls}
    if len(ranked) > 1:
        together = fractions_composed([*ranked.values()], *known, pairs, clusters=clusters)
        by_measure["fraction_composed_together"] = dict(zip(ranked, together, strict=True))
    return Fractions(by_measure, entries)


def composed_columns(of: Composed) -> Row:
    """Return a fraction composed as columns of ``scores.parquet``."""
    note = of.why if of.decides is None else f"{of.decides} decides alone"
    ends = {name: getattr(of, name) for name in ENDS}
    return {"value": of.value, "note": note, **ends}


def follows_prompts(a: Values, b: Values, blind: float) -> Row:
    """Return (a - blind) / (b - blind): a generator's R-precision between that of text alone and the reference's.

    ``a`` and ``b`` (of the reference) are of the same entries. If a prompt has no pair, its image counts as one.
    """
    pairs = a.entries["pair"].fillna(a.entries["cluster"]).to_numpy()
    blinds = np.full(b.by_judge.T.shape, blind)
    return composed_columns(fraction_composed(a.by_judge.T, blinds, b.by_judge.T, pairs, clusters=a.images))


def evidence_of(fractions: Mapping[str, Fractions]) -> dict[tuple[str, str], float]:
    """Return the fraction of the evidence of each pair, by split and pair."""
    evidence = dict[tuple[str, str], float]()
    for split, of_split in fractions.items():
        of = next(iter(of_split.by_measure["fraction_composed"].values()))
        evidence |= {(split, pair): float(value) for pair, value in zip(of.pairs, of.evidence, strict=True)}
    return evidence


def all_fractions(scores: Sequence[Scored], anchors: Anchors, controls: Sequence[str]) -> dict[str, Fractions]:
    """Return the fractions of each held-out split that has its anchors.

    ``controls`` are not ranked: simultaneous intervals are over all other generators.
    """
    return {split: of for split in HELDOUT_SPLITS if (of := fractions_of(scores, split, anchors, controls))}
