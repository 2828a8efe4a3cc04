"""Several judges of the same images, side by side: what generators compose by each judge, and where
judges agree.

Judges of different kinds are never averaged. The scores of a judge are made from its choices
(``score.choose_texts``), so that any tool's answers get the estimates of the table.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Annotated, Any

import numpy as np
import pandas as pd

from compclip.core.errors import require
from compclip.core.seeds import rng
from compclip.core.settings.arguments import table as table_of
from compclip.core.settings.calls import checked
from compclip.core.tables import HELD_OUT, HELD_OUT_SPLITS, TESTS, TEXT_CHOICES, are_among
from compclip.report.composed import ANCHOR_NAMES, Anchors, Estimates, estimate_all, rows_of
from compclip.report.rows import Row
from compclip.report.scored import ENTRY, Scored
from compclip.report.values import column_values, mean_columns
from compclip.report.verdicts import OTHER_TRAINING
from compclip.score.choose_texts import IMAGE_KEY, OF_ADJECTIVE, OF_PROMPT
from compclip.score.prompt_following import CANDIDATES
from compclip.stats.composed import verdict_of
from compclip.stats.r_precision import expected_top1

RESAMPLES = 1000  # of the images, for intervals of agreement
LEVEL = 0.95
# Columns of choices that the scores read, beside their key.
CHOSEN = [OF_ADJECTIVE, "adjective_chosen", "answered"]
# The measures that are means of choices, by their columns.
MEASURE_BY_COLUMN = {OF_ADJECTIVE: "adjective_accuracy", OF_PROMPT: "prompt_following"}
# The columns of judges.csv after data set and composition.
COLUMNS = [
    "judge",
    "kind",
    "members",
    "generator",
    "split",
    "measure",
    "value",
    "same_pairs_low",
    "same_pairs_high",
    "new_pairs_low",
    "new_pairs_high",
    "n",
    "pairs",
    "verdict",
    "note",
]
Passes = Mapping[str, bool]
# Choices from Python; other columns, such as cluster, may be missing.
CHOICE_COLUMNS = [*IMAGE_KEY, "pair", OF_ADJECTIVE, "adjective_chosen"]
JudgedChoices = Annotated[Any, table_of(TEXT_CHOICES, *CHOICE_COLUMNS)]
# Pairs on which judges differ most, of each two judges.
MOST_PAIRS = 5


@dataclass(frozen=True)
class JudgedBy:
    """The scores of one composition's generators by one judge.

    Attributes:
        judge: its name.
        kind: its kind, such as clip or table.
        scores: by all members of the judge.
        anchors: reference and usual pair of each split.
        unanswered: the fraction of choices without a usable answer.
        passes: whether its certificate or, of the leading judge, its bias check says that it may
            judge; None without a certificate.
    """

    judge: str
    kind: str
    scores: Sequence[Scored]
    anchors: Anchors
    unanswered: float = 0.0
    passes: bool | None = None

    @property
    def members(self) -> int:
        return len(self.scores[0].by_judge)

    @cached_property
    def estimates(self) -> Estimates | None:
        """What the generators draw; None without anchors."""
        return estimate_all(self.scores, self.anchors, controls=[])


def members_of(choices: pd.DataFrame) -> list[pd.DataFrame]:
    """Return the choices of each member of a judge, which has one unless a column names several."""
    if "member" not in choices:
        return [choices]
    return [rows for _, rows in choices.groupby("member", sort=False)]


def with_choices(score: Scored, members: Sequence[pd.DataFrame]) -> Scored:
    """Return a score of the same entries by another judge.

    Args:
        score: of the leading judge.
        members: the choices of each member of the other judge, for all generators and splits.
    """
    columns = [*CHOSEN, OF_PROMPT]
    # Which prompts are scored, and their clusters, are those of the leading judge.
    by_judge = []
    for choices in members:
        is_scored = (choices["generator"] == score.generator) & (choices["split"] == score.split)
        own_choices = choices.loc[is_scored, [*ENTRY, *columns]]
        entries = score.entries.drop(columns=columns, errors="ignore")
        # One to one: a second answer about an image would count it twice.
        by_judge.append(entries.merge(own_choices, on=ENTRY, how="left", validate="one_to_one"))
    return replace(score, entries=by_judge[0], by_judge=tuple(by_judge))


def leading_judge(
    judge: str, scores: Sequence[Scored], anchors: Anchors, passes: bool | None
) -> JudgedBy:
    """Return the scores of the leading judge, with its prompt following.

    It ranks all captions, so this needs no draw: it is the chance that the own caption is first
    among as many candidates.
    """
    with_prompt = []
    for score in scores:
        by_judge = []
        for table in score.by_judge:
            beaten = table["p_beaten"].to_numpy()
            first = expected_top1(beaten, table["p_tied"].to_numpy(), CANDIDATES)
            by_judge.append(table.assign(**{OF_PROMPT: first}))
        with_prompt.append(replace(score, entries=by_judge[0], by_judge=tuple(by_judge)))
    return JudgedBy(judge, "clip", with_prompt, anchors, passes=passes)


def judged_by(
    judge: str, kind: str, leading: JudgedBy, choices: pd.DataFrame, passes: bool | None = None
) -> JudgedBy:
    """Return the scores by a further judge of what the leading one has scored."""
    members = members_of(choices)
    scores = [with_choices(score, members) for score in leading.scores]
    # Prompts without variants were not asked.
    questions = choices[choices["adjective_first"].notna()]
    unanswered = float((~questions["answered"]).mean()) if len(questions) else 0.0
    return JudgedBy(judge, kind, scores, leading.anchors, unanswered, passes)


def judges_of(
    leading: JudgedBy, choices: Mapping[str, pd.DataFrame], kinds: Mapping[str, str], passes: Passes
) -> list[JudgedBy]:
    """Return the scores by the leading judge, then those by each further one.

    Args:
        choices: of each further judge, about what the leading one scored (``tables.TEXT_CHOICES``).
        kinds: of each further judge.
        passes: whether the certificate of each judge that has one says that it may judge.
    """
    further = []
    for name, table in choices.items():
        further.append(judged_by(name, kinds[name], leading, table, passes.get(name)))
    return [leading, *further]


def passing(certificates: Mapping[str, Mapping[str, Any]]) -> Passes:
    """Return whether all members of each judge pass.

    Args:
        certificates: by judge and member, as ``judge.certify.describe`` returns them.
    """
    return {
        name: bool(members) and all(member["passes"] is True for member in members.values())
        for name, members in certificates.items()
    }


def scores_of_choices(choices: pd.DataFrame, matched: Collection[str] | None) -> list[Scored]:
    """Return the scores of choices that are of no run.

    Args:
        choices: as ``choose`` returns them, optionally with columns member, cluster and eligible.
        matched: seen pairs that are as frequent as the held-out ones; None: all seen pairs.
    """
    defaults = {"cluster": choices["image_id"], "eligible": True}
    absent = {name: value for name, value in defaults.items() if name not in choices}
    members = members_of(choices.assign(**absent))
    scores = []
    for (generator, split), _ in members[0].groupby(["generator", "split"], sort=False):
        tables = []
        for member in members:
            rows = member[(member["generator"] == generator) & (member["split"] == split)]
            tables.append(rows.sort_values(ENTRY, ignore_index=True))
        set_summary = {"split": split, "prompts": "pairs", "distractors": "original"}
        summary = {"generator": generator, "judge": "judge"}
        scores.append(Scored(set_summary, summary, tables[0], tuple(tables)))
        if split == TESTS[0]:
            # What a generator draws of seen pairs is measured on matched ones.
            is_matched = np.ones(len(tables[0]), bool)
            if matched is not None:
                is_matched = tables[0]["pair"].isin(list(matched)).to_numpy()
            of_pairs = tuple(table[is_matched].reset_index(drop=True) for table in tables)
            set_summary = set_summary | {"prompts": "matched"}
            scores.append(Scored(set_summary, summary, of_pairs[0], of_pairs))
    return scores


def as_anchors(name: str | Mapping[str, str]) -> dict[str, str | None]:
    """Return an anchor's generator for each split."""
    if isinstance(name, str):
        return dict.fromkeys(TESTS, name)
    unknown = sorted(name.keys() - {*TESTS})
    require(not unknown, "reference and usual", f"split {unknown}", f"known: {', '.join(TESTS)}")
    return {split: name.get(split) for split in TESTS}


def require_whole(choices: pd.DataFrame, reference: str | None, split: str) -> None:
    """Raise UserError unless each generator and member has a choice wherever the reference has
    one.
    """
    of_split = choices[choices["split"] == split]
    with_choice = of_split[of_split[OF_ADJECTIVE].notna()]
    expected = with_choice.loc[with_choice["generator"] == reference, ENTRY].drop_duplicates()
    for (generator, member), rows in of_split.groupby(["generator", "member"], sort=False):
        # A missing choice would count as a wrong one.
        is_there = are_among(expected, rows[rows[OF_ADJECTIVE].notna()], ENTRY)
        lacking = expected[~is_there]
        first = lacking.head(1).to_dict("records")
        fault = (
            f"no {OF_ADJECTIVE} for {len(lacking)} of {len(expected)} prompts, the first {first}"
        )
        location = f"choices: {generator}, {split}, member {member}"
        remedy = "add a row for each prompt; 0 for a missing image"
        require(not first, location, fault, remedy)


def check_choices(choices: pd.DataFrame, anchors: Mapping[str, Sequence[str | None]]) -> None:
    """Raise UserError unless choices of any origin can be estimated between these anchors."""
    pairs = choices["pair"].dropna().unique()
    unreadable = [pair for pair in pairs if not all(pair.partition("_"))]
    fault = f"pair {unreadable[:1]}"
    require(not unreadable, "choices", fault, "write adjective_noun, such as red_wing")
    repeat = TEXT_CHOICES.repeat(choices)
    require(not repeat, "choices", repeat or "", "remove one")
    of_prompts = choices.groupby(["split", *ENTRY], sort=False)["pair"].nunique(dropna=False)
    differing = of_prompts[of_prompts > 1].head(1).index.tolist()
    remedy = "image_id and caption_id are those of the prompt, which all generators share"
    require(not differing, "choices", f"several pairs for the prompt {differing}", remedy)
    names = list(dict.fromkeys(choices["generator"]))
    for member, rows in choices.groupby("member", sort=False):
        lacking = [name for name in names if name not in set(rows["generator"])]
        fault = f"no generator {lacking[:1]}"
        require(not lacking, f"choices: member {member}", fault, "add its choices")
    for split, (reference, usual) in anchors.items():
        named = [name for name in (reference, usual) if name is not None]
        unknown = [name for name in named if name not in names]
        remedy = f"choose reference and usual of {', '.join(names)}"
        require(not unknown, "choices", f"no generator {unknown[:1]}", remedy)
        is_same = reference is not None and reference == usual
        require(not is_same, split, f"{reference} is reference and usual", remedy)
        require_whole(choices, reference, split)


@checked
def fraction_composed(
    choices: JudgedChoices,
    reference: str | dict[str, str],
    usual: str | dict[str, str],
    matched: list[str] | None = None,
) -> pd.DataFrame:
    """Estimate what generators draw of seen and of held-out pairs, and compose, from a judge's
    choices.

    Args:
        choices: as ``choose`` returns them: a row for each image of each generator, with the chance
            that the judge chooses the prompt's own text. A column member tells several members of a
            judge apart (its seeds), and cluster images that are resampled together.
        reference: the generator whose images show what is asked, for all splits or by split.
        usual: the generator whose images show the noun with another usual adjective.
        matched: seen pairs that are as frequent as the held-out ones; None: all seen pairs.

    Returns:
        Rows with generator, split, measure, value, the intervals for the same pairs and, with
        several members, for new pairs, n, pairs, verdict and note, which says why there is none.

    Raises:
        UserError: a value is refused, a generator lacks a choice, or a split has no anchors.
    """
    references = as_anchors(reference)
    usuals = as_anchors(usual)
    anchors = {split: (references[split], usuals[split]) for split in TESTS}
    if "member" not in choices:
        choices = choices.assign(member="judge")
    check_choices(choices, anchors)
    scores = scores_of_choices(choices, matched)
    judge = JudgedBy("judge", "", scores, anchors)
    fault = "reference and usual serve no seen and held-out split together"
    remedy = "add their images of test_seen and one other"
    require(judge.estimates is not None, "choices", fault, remedy)
    table = pd.DataFrame(composed_rows(judge, {}))
    return table.reindex(columns=[name for name in COLUMNS if name in table])


def composed_rows(judge: JudgedBy, training_data: Mapping[str, str]) -> Iterator[Row]:
    """Yield the rows of what each generator draws and composes by a judge."""
    if judge.estimates is None:
        return
    for generator, skills in judge.estimates.skills.items():
        for split, measure, columns in rows_of(skills):
            row = {"generator": generator, "split": split, "measure": measure, **columns}
            if judge.members < 2:
                # One judge does not tell how much another one would differ.
                row |= {"new_pairs_low": None, "new_pairs_high": None}
            if (split, measure) == (HELD_OUT, "composes"):
                row |= verdict_columns(row, judge, training_data.get(generator, "split"))
            yield row


def verdict_columns(row: Row, judge: JudgedBy, trained_on: str) -> Row:
    """Return the verdict of a row of what is composed, and why there is none."""
    # An anchor's value is fixed by definition, so it is named and gets no verdict.
    for split in HELD_OUT_SPLITS:
        for name, anchor in zip(judge.anchors[split], ANCHOR_NAMES, strict=True):
            if name == row["generator"]:
                return {"verdict": anchor}
    if row.get("note"):
        return {"verdict": None}
    if judge.passes is False:
        return {"verdict": None, "note": "the judge fails its certificate or bias check"}
    if trained_on in OTHER_TRAINING:
        return {"verdict": None, "note": OTHER_TRAINING[trained_on]}
    return {"verdict": verdict_of(row["same_pairs_low"], row["same_pairs_high"])}


def recognized_pairs(judge: JudgedBy) -> list[str]:
    """Return the held-out pairs that a judge recognizes, sorted."""
    # All generators have estimates over the same pairs, except where images are missing.
    skills = [] if judge.estimates is None else judge.estimates.skills.values()
    pairs = set[str]()
    for skill in skills:
        pairs.update(skill.by_pair["pair"])
    return sorted(pairs)


def accuracy_rows(judge: JudgedBy) -> Iterator[Row]:
    """Yield each generator's adjective accuracy and prompt following by split."""
    for score in judge.scores:
        for column, measure in MEASURE_BY_COLUMN.items():
            # Choices of a user, from Python, are of adjectives alone.
            if not score.is_of_split or column not in score.entries:
                continue
            values = column_values(score, column)
            if not len(values):
                continue
            columns = mean_columns(values)
            if judge.members < 2:
                columns |= {"new_pairs_low": None, "new_pairs_high": None}
            row = {"generator": score.generator, "split": score.split, "measure": measure}
            yield row | columns | {"n": len(values), "pairs": values.entries["pair"].nunique()}


def compare_judges(judges: Sequence[JudgedBy], training_data: Mapping[str, str]) -> pd.DataFrame:
    """Return accuracies, prompt following and what is composed by each judge, a row for each."""
    rows = []
    for judge in judges:
        head = {"judge": judge.judge, "kind": judge.kind, "members": judge.members}
        own_rows = [*accuracy_rows(judge), *composed_rows(judge, training_data)]
        rows += [head | row for row in own_rows]
        rows.append(head | {"measure": "unanswered", "value": judge.unanswered})
    table = pd.DataFrame(rows).reindex(columns=COLUMNS)
    # Counts, which are missing in some rows.
    return table.astype({"n": "Int64", "pairs": "Int64"})


# Agreement


@dataclass(frozen=True)
class Resampled:
    """Adjective accuracies of generators by two judges, on the same images.

    Attributes:
        values: (B, G, 2): the first of the data, the others of Bayesian bootstraps of the images.
        by_pair: (B, K, 2): of each held-out pair, over all generators.
        pairs: (K,) their names.
    """

    values: np.ndarray
    by_pair: np.ndarray
    pairs: np.ndarray


def _entries_of(judge: JudgedBy, split: str) -> pd.DataFrame:
    """Return the entries of a split by all generators, with the mean of the judge's members."""
    tables = []
    for score in judge.scores:
        if score.split != split or not score.is_of_split:
            continue
        first = np.mean([table["adjective_first"].to_numpy(float) for table in score.by_judge], 0)
        columns = score.entries[[*ENTRY, "cluster", "pair"]]
        tables.append(columns.assign(generator=score.generator, first=first))
    return pd.concat(tables, ignore_index=True).dropna(subset="first")


def resample(first: JudgedBy, second: JudgedBy, split: str) -> Resampled:
    """Return what two judges say of the images of a split, and of resampled images."""
    key = ["generator", *ENTRY]
    # Paired: the same images, resampled by the same weights, for both judges.
    other = _entries_of(second, split)[[*key, "first"]]
    both = _entries_of(first, split).merge(other, on=key, suffixes=("_a", "_b"))
    cluster, names = pd.factorize(both["cluster"].astype(str), sort=True)
    stream = rng(0, "agreement of judges")
    # Rubin's bootstrap: exponential weights keep every image, so each mean is defined.
    drawn = stream.exponential(size=(RESAMPLES, len(names)))
    weights = np.vstack([np.ones(len(names)), drawn])  # (B, C)

    def means(groups: pd.Series) -> tuple[np.ndarray, np.ndarray]:
        """Return (B, groups, 2), the weighted means, and the names of the groups."""
        number, group_names = pd.factorize(groups)
        shape = (len(names), len(group_names))
        sums = []
        for values in (both["first_a"], both["first_b"], pd.Series(1.0, both.index)):
            by_cluster = np.zeros(shape)
            np.add.at(by_cluster, (cluster, number), values.to_numpy())
            sums.append(weights @ by_cluster)
        size = np.maximum(sums[2], 1e-12)
        return np.stack([sums[0] / size, sums[1] / size], axis=-1), np.asarray(group_names)

    values, _ = means(both["generator"])
    by_pair, pairs = means(both["pair"])
    return Resampled(values, by_pair, pairs)


def tau(values: np.ndarray) -> np.ndarray:
    """Return (B,): Kendall's tau-b of the order of G generators by two judges, ``values``
    (B, G, 2).
    """
    # tau-b: concordant minus discordant, over the pairs that each judge does not tie.
    differences = np.sign(values[:, :, None, :] - values[:, None, :, :])  # (B, G, G, 2)
    products = differences.prod(axis=-1).sum(axis=(1, 2))
    variances = (differences**2).sum(axis=(1, 2))  # (B, 2)
    with np.errstate(invalid="ignore"):
        # 0 / 0 is NaN: a judge to whom all generators are equal has no order.
        return products / np.sqrt(variances.prod(axis=-1))


def _ends(values: np.ndarray) -> dict[str, float | None]:
    """Return the first of ``values`` with the interval of the others; None where undefined."""
    low, high = np.nan, np.nan
    if np.isfinite(values[1:]).any():
        tail = (1 - LEVEL) / 2
        low, high = np.nanquantile(values[1:], [tail, 1 - tail])
    ends = {"value": values[0], "low": low, "high": high}
    return {name: float(end) if np.isfinite(end) else None for name, end in ends.items()}


def agreement(judges: Sequence[JudgedBy], table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return how far each two judges agree.

    Args:
        judges: of one composition.
        table: their rows, as ``compare_judges`` returns them.

    Returns:
        For each two judges: by split, tau of the generators' order with its interval over images,
        and the held-out pairs on which they differ most; generators with different verdicts, and
        how many have a verdict by both.
    """
    verdicts = table[table["verdict"].notna()].pivot(
        index="generator", columns="judge", values="verdict"
    )
    # All judges have scored the same images.
    scored_splits = {score.split for score in judges[0].scores}
    splits = [split for split in TESTS if split in scored_splits]
    result = []
    for first, second in combinations(judges, 2):
        names = [first.judge, second.judge]
        taus = {}
        differing = []
        for split in splits:
            resampled = resample(first, second, split)
            taus[split] = _ends(tau(resampled.values))
            if split in HELD_OUT_SPLITS:
                gaps = resampled.by_pair[:, :, 0] - resampled.by_pair[:, :, 1]  # (B, K)
                largest = np.argsort(-np.abs(gaps[0]))[:MOST_PAIRS]
                for pair in largest:
                    location = {"split": split, "pair": str(resampled.pairs[pair])}
                    differing.append(location | _ends(gaps[:, pair]))
        # A verdict that one of them withholds is no disagreement.
        both = verdicts.reindex(columns=names).dropna()
        is_other = both[names[0]] != both[names[1]]
        result.append(
            {
                "judges": names,
                "tau": taus,
                "pairs": differing,
                "verdicts": both[is_other].reset_index().to_dict("records"),
                "with_both": len(both),
            }
        )
    return result
