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
from compclip.report.scored import ENTRY, Scored
from compclip.stats.composed import Fraction, JudgeChoices, Scale, Skills, at_level, shared_level
from compclip.stats.estimates import ENDS

PROMPT_KEY = ["split", *ENTRY]
# Reference and usual pair of each split, which are the ends of the scale; None if not configured.
Anchors = Mapping[str, tuple[str | None, str | None]]
ANCHOR_NAMES = ("reference", "usual pair")
# Their places in ``Anchors``, and what they compose by definition.
REFERENCE, USUAL_PAIR = 0, 1
COMPOSED_BY_ANCHOR = {REFERENCE: 1.0, USUAL_PAIR: 0.0}


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


def _choices(scores: Mapping[str, Scored], prompts: pd.DataFrame) -> JudgeChoices:
    """Return the judges' choices for these prompts, 0 and None where an image is missing."""
    first_score = next(iter(scores.values()))
    first = []
    chosen = []
    for judge in range(len(first_score.by_judge)):
        tables = [score.by_judge[judge].assign(split=split) for split, score in scores.items()]
        judge_scores = pd.concat(tables, ignore_index=True)
        # In the order of the prompts, so that all generators' choices are of the same rows.
        rows = prompts[PROMPT_KEY].merge(judge_scores, on=PROMPT_KEY, how="left")
        # A missing image counts as wrong.
        first.append(rows["adjective_first"].fillna(0.0).to_numpy(float))
        chosen.append(rows["adjective_chosen"].astype(object).to_numpy())
    names = np.stack(chosen, axis=1)  # (n, J)
    # A missing name is NaN after the merge.
    names[pd.isna(names)] = None
    return JudgeChoices(np.stack(first, axis=1), names)


def anchor_scores(
    main: Mapping[tuple[str, str], Scored], anchors: Anchors, anchor: int
) -> dict[str, Scored]:
    """Return the scores of an anchor, ``REFERENCE`` or ``USUAL_PAIR``, in each split that has both.

    Args:
        main: the main scores by generator and split.
        anchors: reference and usual pair of each split.
        anchor: which of the two.
    """
    scores = {}
    for split, generators in anchors.items():
        # No generator has an empty name.
        keys = [(generator or "", split) for generator in generators]
        has_both = all(key in main for key in keys)
        if has_both:
            key = keys[anchor]
            scores[split] = main[key]
    return scores


def _with_all_draws(score: Scored, matched: Scored) -> Scored:
    """Return the score of seen prompts with the further draws of matched ones."""

    def joined(table: pd.DataFrame, further: pd.DataFrame) -> pd.DataFrame:
        # A matched score repeats the first draws.
        return pd.concat([table, further]).drop_duplicates(ENTRY, ignore_index=True)

    entries = joined(score.entries, matched.entries)
    by_judge = tuple(map(joined, score.by_judge, matched.by_judge))
    return replace(score, entries=entries, by_judge=by_judge)


@dataclass(frozen=True)
class CompositionScale:
    """The scale of one composition, and the scores of each generator by split, for the prompts of
    the scale.
    """

    scale: Scale
    main: Mapping[tuple[str, str], Scored]
    splits: Collection[str]  # that have both anchors

    @property
    def generators(self) -> list[str]:
        """The generators in the config's order."""
        return list(dict.fromkeys(generator for generator, _ in self.main))

    def scores_of(self, generator: str) -> dict[str, Scored]:
        """Return a generator's scores by split."""
        keys = {split: (generator, split) for split in self.splits}
        return {split: self.main[key] for split, key in keys.items() if key in self.main}

    def choices(self, scores: Mapping[str, Scored]) -> JudgeChoices:
        """Return what the judges choose for a generator's images, in the order of the scale's
        prompts.
        """
        return _choices(scores, self.scale.prompts)


def composition_scale(scores: Sequence[Scored], anchors: Anchors) -> CompositionScale | None:
    """Return the scale of a composition; None without anchors of seen and of a held-out split.

    Args:
        scores: all scores of the composition.
        anchors: reference and usual pair of each split.
    """
    seen_split = TESTS[0]
    # The scale is over all draws of matched pairs, which the scores of all seen prompts leave out.
    main = {(score.generator, score.split): score for score in scores if score.main}
    matched_scores = {score.generator: score for score in scores if score.matched}
    for generator, matched in matched_scores.items():
        if (generator, seen_split) in main:
            seen_score = main[generator, seen_split]
            main[generator, seen_split] = _with_all_draws(seen_score, matched)
    reference = anchor_scores(main, anchors, REFERENCE)
    usual = anchor_scores(main, anchors, USUAL_PAIR)
    # What is composed is relative to seen pairs, so these are needed beside a held-out split.
    if seen_split not in reference or len(reference) < 2:
        return None
    # Only prompts for which both anchors have an image place a generator on the scale.
    prompts = _prompts(reference).merge(_prompts(usual)[PROMPT_KEY], on=PROMPT_KEY)
    matched_pairs = set[str]()
    for score in matched_scores.values():
        matched_pairs.update(score.entries["pair"])
    is_matched = prompts["pair"].isin(matched_pairs)
    prompts = prompts.assign(matched=is_matched)
    scale = Scale(prompts, _choices(reference, prompts), _choices(usual, prompts))
    return CompositionScale(scale, main, [*reference])


def estimate_all(
    scores: Sequence[Scored], anchors: Anchors, controls: Collection[str]
) -> Estimates | None:
    """Return what each generator of a composition draws; None without anchors of seen and of a
    held-out split.

    Args:
        scores, anchors: as of ``composition_scale``.
        controls: are not ranked; simultaneous intervals are over all other generators.
    """
    composition = composition_scale(scores, anchors)
    if composition is None:
        return None
    skills = dict[str, Skills]()
    for generator in composition.generators:
        estimate = _skills(composition, anchors, generator)
        if estimate is not None:
            skills[generator] = estimate
    return Estimates(skills, _together(skills, controls))


def _skills(composition: CompositionScale, anchors: Anchors, generator: str) -> Skills | None:
    """Return what a generator draws; None if it serves seen or held-out prompts alone."""
    scale = composition.scale
    scores = composition.scores_of(generator)
    fixed = _fixed(generator, anchors, scores)
    if fixed is not None:
        if fixed.seen is not None or TESTS[0] not in scores:
            return fixed
        # An anchor of held-out splits alone may draw seen pairs as badly as any generator.
        return replace(fixed, seen=scale.draws_seen(composition.choices(scores)))
    if TESTS[0] not in scores or len(scores) < 2:
        return None
    return scale.skills(composition.choices(scores), scores)


def _together(skills: Mapping[str, Skills], controls: Collection[str]) -> dict[str, Skills]:
    """Return the skills of the ranked generators with simultaneous intervals of what they compose,
    if several are.
    """
    ranked = {}
    for name, skill in skills.items():
        held_out = skill.composes.get(HELD_OUT)
        # The values of anchors are fixed, and have no resamples.
        if name not in controls and held_out is not None and len(held_out.resampled):
            ranked[name] = skill
    if len(ranked) < 2:
        return {}
    # A level at which all intervals cover their value at once, as often as a single one.
    level = shared_level([skill.composes[HELD_OUT] for skill in ranked.values()])
    together = {}
    for name, skill in ranked.items():
        composes = {split: at_level(fraction, level) for split, fraction in skill.composes.items()}
        together[name] = replace(skill, composes=composes)
    return together


def _fixed(generator: str, anchors: Anchors, served: Collection[str]) -> Skills | None:
    """Return the skills of a generator that is an anchor of all held-out splits that it serves:
    known by definition.
    """
    # Not all generators serve both: there are no real images of swapped captions.
    held_out = [split for split in served if split in HELDOUT_SPLITS]
    if not held_out:
        return None
    for anchor, value in COMPOSED_BY_ANCHOR.items():
        if all(anchors[split][anchor] == generator for split in held_out):
            fractions = {split: Fraction(value) for split in (*held_out, HELD_OUT)}
            is_seen_anchor = anchors[TESTS[0]][anchor] == generator
            seen = Fraction(value) if is_seen_anchor else None
            return Skills(seen, fractions, fractions)
    return None


def rows_of(skills: Skills, measure_end: str = "") -> Iterator[tuple[str, str, Row]]:
    """Yield split, measure and columns of ``scores.parquet`` for a generator's skills."""
    # Simultaneous intervals (``_together``) are only of what is composed.
    is_plain = measure_end == ""
    if is_plain and skills.seen:
        yield TESTS[0], "draws_seen_pairs", _columns(skills.seen, None)
    measure = f"composes{measure_end}"
    for split, fraction in skills.held_out.items():
        if is_plain:
            yield split, "draws_held_out_pairs", _columns(fraction, None)
        yield split, measure, _columns(skills.composes[split], skills.why)
    # A row without a value has the reason.
    if not skills.held_out:
        yield HELD_OUT, measure, {"note": skills.why}


def _columns(fraction: Fraction, note: str | None) -> Row:
    columns: Row = {name: getattr(fraction, name) for name in ENDS}
    columns["value"] = fraction.value
    columns["note"] = note
    # A value that is fixed by definition is of no prompts.
    columns["n"] = fraction.prompts or None
    columns["pairs"] = fraction.pairs or None
    return columns
