"""What each generator draws of seen and of held-out pairs, between the usual pair and the
reference.

Judges choose the adjective of each prompt's noun, on the prompts for which both anchors have an
image. A missing image of a generator counts as wrong.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from compclip.core.tables import HELD_OUT, HELD_OUT_SPLITS, TESTS
from compclip.report.rows import Row
from compclip.report.scored import ENTRY, Scored
from compclip.stats.composed import Fraction, JudgeChoices, Scale, Skills, at_level, shared_level
from compclip.stats.estimates import INTERVAL_COLUMNS

PROMPT_KEY = ["split", *ENTRY]
# Reference and usual pair of each split, between which the scale lies; None if not configured.
Anchors = Mapping[str, tuple[str | None, str | None]]
# In the order of ``Anchors``: their names, and what they compose by definition.
ANCHOR_NAMES = ("reference", "usual pair")
COMPOSED_BY_ANCHOR = (1.0, 0.0)


@dataclass(frozen=True)
class Estimates:
    """What the generators of one composition draw, all on the same prompts.

    Attributes:
        skills: of each generator.
        simultaneous: of several ranked generators, with simultaneous intervals.
        drawn: what each generator drew, where its scenes are known: the truth of its estimate.
    """

    skills: Mapping[str, Skills]
    simultaneous: Mapping[str, Skills]
    drawn: Mapping[str, Skills]


def _prompts(scores: Mapping[str, Scored]) -> pd.DataFrame:
    """Return the entries of some splits that have a choice, by split."""
    tables = [score.entries.assign(split=split) for split, score in scores.items()]
    table = pd.concat(tables, ignore_index=True)
    return table[table["adjective_first"].notna() & table["pair"].notna()]


def _choices(scores: Mapping[str, Scored], prompts: pd.DataFrame) -> JudgeChoices:
    """Return the judges' choices for these prompts, 0 and None where an image is missing."""
    first_score = next(iter(scores.values()))
    own_chance = []
    chosen = []
    for judge in range(len(first_score.by_judge)):
        tables = [score.by_judge[judge].assign(split=split) for split, score in scores.items()]
        judge_scores = pd.concat(tables, ignore_index=True)
        # In the order of the prompts, so that all generators' choices are of the same rows.
        rows = prompts[PROMPT_KEY].merge(judge_scores, on=PROMPT_KEY, how="left")
        # A missing image counts as wrong.
        own_chance.append(rows["adjective_first"].fillna(0.0).to_numpy(float))
        chosen.append(rows["adjective_chosen"].astype(object).to_numpy())
    names = np.stack(chosen, axis=1)  # (n, J)
    # A missing name is NaN after the merge.
    names[pd.isna(names)] = None
    return JudgeChoices(np.stack(own_chance, axis=1), names)


def anchor_scores(
    main_scores: Mapping[tuple[str, str], Scored], anchors: Anchors
) -> tuple[dict[str, Scored], dict[str, Scored]]:
    """Return the scores of the reference and of the usual pair, by split, in each split that has
    both.

    Args:
        main_scores: by generator and split.
        anchors: reference and usual pair of each split.
    """
    reference_scores = {}
    usual_scores = {}
    for split, (reference, usual_pair) in anchors.items():
        # No generator has an empty name.
        reference_key = (reference or "", split)
        usual_key = (usual_pair or "", split)
        if reference_key in main_scores and usual_key in main_scores:
            reference_scores[split] = main_scores[reference_key]
            usual_scores[split] = main_scores[usual_key]
    return reference_scores, usual_scores


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
    main_scores: Mapping[tuple[str, str], Scored]
    oracle_scores: Mapping[tuple[str, str], Scored]  # of generators whose scenes are known
    splits: Collection[str]  # that have both anchors

    @property
    def generators(self) -> list[str]:
        """The generators in the config's order."""
        return list(dict.fromkeys(generator for generator, _ in self.main_scores))

    def scores_of(self, generator: str, *, by_oracle: bool = False) -> dict[str, Scored]:
        """Return a generator's scores by split, of all judges or of the oracle."""
        all_scores = self.oracle_scores if by_oracle else self.main_scores
        scores = {split: all_scores.get((generator, split)) for split in self.splits}
        return {split: score for split, score in scores.items() if score is not None}

    def choices(self, scores: Mapping[str, Scored]) -> JudgeChoices:
        """Return what the judges choose for a generator's images, in the order of the scale's
        prompts.
        """
        return _choices(scores, self.scale.prompts)


def _by_generator(scores: Collection[Scored]) -> dict[tuple[str, str], Scored]:
    """Return the scores of the same judges by generator and split, with all draws of matched
    pairs.
    """
    by_generator = {(score.generator, score.split): score for score in scores if score.is_of_split}
    # The scale is over all draws of matched pairs, which the scores of all seen prompts leave out.
    for score in scores:
        key = (score.generator, score.split)
        if score.is_matched and key in by_generator:
            by_generator[key] = _with_all_draws(by_generator[key], score)
    return by_generator


def make_scale(scores: Sequence[Scored], anchors: Anchors) -> CompositionScale | None:
    """Return the scale of a composition; None without anchors of seen and of a held-out split.

    Args:
        scores: all scores of the composition.
        anchors: reference and usual pair of each split.
    """
    by_judges = [score for score in scores if score.by_all_judges]
    main_scores = _by_generator(by_judges)
    reference, usual = anchor_scores(main_scores, anchors)
    # What is composed is relative to seen pairs, so these are needed beside a held-out split.
    if TESTS[0] not in reference or len(reference) < 2:
        return None
    # Only prompts for which both anchors have an image place a generator on the scale.
    prompts = _prompts(reference).merge(_prompts(usual)[PROMPT_KEY], on=PROMPT_KEY)
    matched_pairs = set[str]()
    for score in by_judges:
        if score.is_matched:
            matched_pairs.update(score.entries["pair"])
    is_matched = prompts["pair"].isin(matched_pairs)
    prompts = prompts.assign(matched=is_matched)
    scale = Scale(prompts, _choices(reference, prompts), _choices(usual, prompts))
    oracle_scores = _by_generator([score for score in scores if score.by_oracle])
    return CompositionScale(scale, main_scores, oracle_scores, [*reference])


def estimate_all(
    scores: Sequence[Scored], anchors: Anchors, controls: Collection[str]
) -> Estimates | None:
    """Return what each generator of a composition draws; None without anchors of seen and of a
    held-out split.

    Args:
        scores, anchors: as of ``make_scale``.
        controls: generators of known skill. They are not ranked; simultaneous intervals are over
            all other generators.
    """
    composition_scale = make_scale(scores, anchors)
    if composition_scale is None:
        return None
    skills = dict[str, Skills]()
    drawn = dict[str, Skills]()
    for generator in composition_scale.generators:
        estimate = _skills(composition_scale, anchors, generator)
        if estimate is not None:
            skills[generator] = estimate
        truth = _drawn(composition_scale, generator)
        if truth is not None:
            drawn[generator] = truth
    return Estimates(skills, _simultaneous(skills, controls), drawn)


def _drawn(composition_scale: CompositionScale, generator: str) -> Skills | None:
    """Return what a generator drew, by its scenes; None if they are not known, or if it serves seen
    or held-out prompts alone.
    """
    scores = composition_scale.scores_of(generator, by_oracle=True)
    if TESTS[0] not in scores or len(scores) < 2:
        return None
    # The oracle is one judge. Where an image does not show the pair, adjectives may tie.
    choices = composition_scale.choices(scores)
    shows_pair = choices.own_chance[:, 0] == 1
    return composition_scale.scale.drawn_skills(shows_pair, scores)


def _skills(composition_scale: CompositionScale, anchors: Anchors, generator: str) -> Skills | None:
    """Return what a generator draws; None if it serves seen or held-out prompts alone, unless it is
    an anchor.
    """
    scale = composition_scale.scale
    scores = composition_scale.scores_of(generator)
    fixed = _fixed(generator, anchors, scores)
    if fixed is not None:
        if fixed.draws_seen is not None or TESTS[0] not in scores:
            return fixed
        # An anchor of held-out splits alone may draw seen pairs as badly as any generator.
        draws_seen = scale.draws_seen(composition_scale.choices(scores))
        return replace(fixed, draws_seen=draws_seen)
    if TESTS[0] not in scores or len(scores) < 2:
        return None
    return scale.skills(composition_scale.choices(scores), scores)


def _simultaneous(skills: Mapping[str, Skills], controls: Collection[str]) -> dict[str, Skills]:
    """Return the skills of the ranked generators with simultaneous intervals of what they compose,
    if several are.
    """
    ranked = {}
    for name, skill in skills.items():
        composed = skill.composes.get(HELD_OUT)
        # The values of anchors are fixed, and have no resamples.
        if name not in controls and composed is not None and len(composed.resampled):
            ranked[name] = skill
    if len(ranked) < 2:
        return {}
    # A level at which all intervals of held-out pairs cover their value at once, as often as a
    # single one. Those of single splits get the same level, and are not simultaneous.
    level = shared_level([skill.composes[HELD_OUT] for skill in ranked.values()])
    simultaneous = {}
    for name, skill in ranked.items():
        composes = {split: at_level(fraction, level) for split, fraction in skill.composes.items()}
        simultaneous[name] = replace(skill, composes=composes)
    return simultaneous


def _fixed(generator: str, anchors: Anchors, served: Collection[str]) -> Skills | None:
    """Return the skills of a generator that is an anchor of all held-out splits that it serves:
    known by definition.
    """
    # Not all generators serve both: there are no real images of swapped captions.
    held_out_splits = [split for split in served if split in HELD_OUT_SPLITS]
    if not held_out_splits:
        return None
    # The references of these splits, and then their usual pairs.
    by_anchor = zip(*(anchors[split] for split in held_out_splits), strict=True)
    for names, seen_name, value in zip(
        by_anchor, anchors[TESTS[0]], COMPOSED_BY_ANCHOR, strict=True
    ):
        if set(names) == {generator}:
            fractions = {split: Fraction(value) for split in (*held_out_splits, HELD_OUT)}
            draws_seen = Fraction(value) if seen_name == generator else None
            # On the scale of the run, a reference draws all, and a usual pair nothing.
            return Skills(draws_seen, draws_held_out=fractions, composes=fractions)
    return None


def rows_of(skills: Skills, suffix: str = "") -> Iterator[tuple[str, str, Row]]:
    """Yield split, measure and columns of ``scores.parquet`` for a generator's skills.

    Args:
        suffix: of the measure's name; ``_together``: the skills have simultaneous intervals.
    """
    # Simultaneous intervals (``_simultaneous``) are only of what is composed.
    is_plain = suffix == ""
    if is_plain and skills.draws_seen:
        yield TESTS[0], "draws_seen_pairs", _columns(skills.draws_seen, None)
    measure = f"composes{suffix}"
    for split, fraction in skills.draws_held_out.items():
        if is_plain:
            yield split, "draws_held_out_pairs", _columns(fraction, None)
        yield split, measure, _columns(skills.composes[split], skills.no_verdict_reason)
    # A row without a value has the reason.
    if not skills.draws_held_out:
        yield HELD_OUT, measure, {"note": skills.no_verdict_reason}


def _columns(fraction: Fraction, note: str | None) -> Row:
    columns: Row = {name: getattr(fraction, name) for name in INTERVAL_COLUMNS}
    columns["value"] = fraction.value
    columns["note"] = note
    # A value that is fixed by definition is of no prompts.
    columns["n"] = fraction.n_prompts or None
    columns["pairs"] = fraction.n_pairs or None
    return columns
