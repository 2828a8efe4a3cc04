"""What each generator draws of seen and of held-out pairs, between the usual pair and the
reference.

Judges choose the adjective of each prompt's noun, on the prompts for which both anchors have an
image. A missing image of a generator counts as wrong.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from compclip.core.tables import HELD_OUT, TESTS
from compclip.report.comparisons import HELDOUT_SPLITS
from compclip.report.rows import Row
from compclip.report.table import ENTRY, Scored
from compclip.stats.composed import Choices, Fraction, Scale, Skills, at_level, shared_level
from compclip.stats.estimates import ENDS

KEY = ["split", *ENTRY]
# Reference and usual pair of each split, which are the ends of the scale; None if not configured.
Anchors = Mapping[str, tuple[str | None, str | None]]
ANCHOR_NAMES = ("reference", "usual pair")


@dataclass(frozen=True)
class Estimates:
    """What the generators of one composition draw, all on the same prompts.

    ``together``, for several ranked generators, has simultaneous intervals.
    """

    skills: Mapping[str, Skills]
    together: Mapping[str, Skills]


def _prompts(scores: Mapping[str, Scored]) -> pd.DataFrame:
    """Return the entries of some splits that have a choice, by split."""
    tables = [score.entries.assign(split=split) for split, score in scores.items()]
    table = pd.concat(tables, ignore_index=True)
    return table[table["adjective_first"].notna() & table["pair"].notna()]


def _choices(scores: Mapping[str, Scored], prompts: pd.DataFrame) -> Choices:
    """Return the judges' choices for these prompts, 0 and None where an image is missing."""
    columns = []
    for judge in range(len(next(iter(scores.values())).by_judge)):
        tables = [score.by_judge[judge].assign(split=split) for split, score in scores.items()]
        table = pd.concat(tables, ignore_index=True)
        columns.append(prompts[KEY].merge(table, on=KEY, how="left"))
    first = [column["adjective_first"].fillna(0.0).to_numpy(float) for column in columns]
    names = [column["adjective_chosen"].astype(object).to_numpy() for column in columns]
    chosen = np.stack(names, axis=1)
    chosen[pd.isna(chosen)] = None
    return Choices(np.stack(first, axis=1), chosen)


def anchor_scores(
    main: Mapping[tuple[str, str], Scored], anchors: Anchors, place: int
) -> dict[str, Scored]:
    """Return the scores of the reference (``place`` 0) or of the usual pair (1) of each split that
    has both.
    """
    names = {
        split: both
        for split, both in anchors.items()
        if all((name or "", split) in main for name in both)
    }
    return {split: main[both[place] or "", split] for split, both in names.items()}


def _with_all_draws(score: Scored, matched: Scored) -> Scored:
    """Return the score of seen prompts with the further draws of matched ones."""
    whole, *by_judge = (
        pd.concat([table, others]).drop_duplicates(ENTRY, ignore_index=True)
        for table, others in zip(
            (score.entries, *score.by_judge), (matched.entries, *matched.by_judge), strict=True
        )
    )
    return replace(score, entries=whole, by_judge=tuple(by_judge))


@dataclass(frozen=True)
class Measured:
    """The scale of one composition, and the scores of each generator by split, for the prompts of
    the scale.
    """

    scale: Scale
    main: Mapping[tuple[str, str], Scored]
    splits: Collection[str]  # that have both anchors

    def own(self, generator: str) -> dict[str, Scored]:
        """Return a generator's scores by split."""
        return {
            split: self.main[generator, split]
            for split in self.splits
            if (generator, split) in self.main
        }

    def choices(self, own: Mapping[str, Scored]) -> Choices:
        """Return what the judges choose for a generator's images, in the order of the scale's
        prompts.
        """
        return _choices(own, self.scale.prompts)


def measured(scores: Sequence[Scored], anchors: Anchors) -> Measured | None:
    """Return the scale of a composition; None without anchors of seen and of a held-out split.

    Args:
        scores: all scores of the composition.
        anchors: reference and usual pair of each split.
    """
    main = {(score.generator, score.split): score for score in scores if score.main}
    of_matched = {score.generator: score for score in scores if score.matched}
    for (generator, split), score in main.items():
        if split == TESTS[0] and generator in of_matched:
            main[generator, split] = _with_all_draws(score, of_matched[generator])
    reference, usual = (anchor_scores(main, anchors, place) for place in (0, 1))
    if TESTS[0] not in reference or len(reference) < 2:
        return None
    prompts = _prompts(reference).merge(_prompts(usual)[KEY], on=KEY)
    matched = {pair for of in of_matched.values() for pair in of.entries["pair"]}
    prompts = prompts.assign(matched=prompts["pair"].isin(matched))
    scale = Scale(prompts, _choices(reference, prompts), _choices(usual, prompts))
    return Measured(scale, main, [*reference])


def estimate_all(
    scores: Sequence[Scored], anchors: Anchors, controls: Collection[str]
) -> Estimates | None:
    """Return what each generator of a composition draws; None without anchors of seen and of a
    held-out split.

    Args:
        scores, anchors: as of ``measured``.
        controls: are not ranked; simultaneous intervals are over all other generators.
    """
    if (of := measured(scores, anchors)) is None:
        return None
    scale = of.scale
    skills = dict[str, Skills]()
    for name in dict.fromkeys(generator for generator, _ in of.main):
        own = of.own(name)
        if fixed := _fixed(name, anchors, own):
            is_estimated = fixed.seen is None and TESTS[0] in own
            skills[name] = (
                replace(fixed, seen=scale.draws_seen(of.choices(own))) if is_estimated else fixed
            )
        elif TESTS[0] in own and len(own) > 1:
            skills[name] = scale.skills(of.choices(own), own)
    return Estimates(skills, _together(skills, controls))


def _together(skills: Mapping[str, Skills], controls: Collection[str]) -> dict[str, Skills]:
    """Return the skills of the ranked generators with simultaneous intervals of what they compose,
    if several are.
    """
    # The values of anchors are fixed, and have no resamples.
    ranked = {
        name: of
        for name, of in skills.items()
        if name not in controls and HELD_OUT in of.composes and len(of.composes[HELD_OUT].resampled)
    }
    if len(ranked) < 2:
        return {}
    level = shared_level([of.composes[HELD_OUT] for of in ranked.values()])
    together = {}
    for name, of in ranked.items():
        composes = {split: at_level(fraction, level) for split, fraction in of.composes.items()}
        together[name] = replace(of, composes=composes)
    return together


def _fixed(name: str, anchors: Anchors, served: Collection[str]) -> Skills | None:
    """Return the skills of a generator that is an anchor of all held-out splits that it serves:
    known by definition.
    """
    held_out = [split for split in served if split in HELDOUT_SPLITS]
    for place, value in ((0, 1.0), (1, 0.0)):
        if held_out and all(anchors[split][place] == name for split in held_out):
            fractions = {split: Fraction(value) for split in (*held_out, HELD_OUT)}
            return Skills(
                Fraction(value) if anchors[TESTS[0]][place] == name else None, fractions, fractions
            )
    return None


def rows_of(skills: Skills, measure_end: str = "") -> Iterator[tuple[str, str, Row]]:
    """Yield split, measure and columns of ``scores.parquet`` for a generator's skills."""
    if measure_end == "" and skills.seen:
        yield TESTS[0], "draws_seen_pairs", _columns(skills.seen, None)
    for split, fraction in skills.held_out.items():
        if measure_end == "":
            yield split, "draws_held_out_pairs", _columns(fraction, None)
        yield split, f"composes{measure_end}", _columns(skills.composes[split], skills.why)
    if not skills.held_out:
        yield HELD_OUT, f"composes{measure_end}", {"note": skills.why}


def _columns(fraction: Fraction, note: str | None) -> Row:
    ends = {name: getattr(fraction, name) for name in ENDS}
    counts = {"n": fraction.prompts or None, "pairs": fraction.pairs or None}
    return {"value": fraction.value, "note": note} | counts | ends
