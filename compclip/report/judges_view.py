"""What several judges say, for the page."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from compclip.core.tables import HELD_OUT
from compclip.plot.labels import SPLIT_NAMES, interval, p_value, pair_words, percent
from compclip.plot.table_view import Line, TableCell
from compclip.report.composed import ANCHOR_NAMES


def judged_generators(table: pd.DataFrame) -> list[str]:
    """Return the generators that are not anchors.

    Args:
        table: rows of ``judges.csv`` of one composition.
    """
    composed = table[(table["split"] == HELD_OUT) & (table["measure"] == "composes")]
    is_anchor = composed["verdict"].isin(ANCHOR_NAMES)
    return list(dict.fromkeys(composed.loc[~is_anchor, "generator"]))


def judge_lines(
    table: pd.DataFrame, generators: Sequence[str], split: str, measure: str
) -> list[Line]:
    """Return a line for each judge with a measure of the generators, where a judge has it."""
    of_measure = table[(table["split"] == split) & (table["measure"] == measure)]
    lines = []
    for judge in dict.fromkeys(table["judge"]):
        own_rows = of_measure[of_measure["judge"] == judge].set_index("generator")
        lines.append(Line(judge, [_cell(own_rows, name) for name in generators]))
    return lines


def _cell(rows: pd.DataFrame, generator: str) -> TableCell | None:
    """Return a generator's value; None without an estimate."""
    if generator not in rows.index or pd.isna(rows.loc[generator, "value"]):
        return None
    row = rows.loc[generator]
    ends = interval(row["same_pairs_low"], row["same_pairs_high"], 0)
    return TableCell(percent(row["value"], 0), ends)


def verdict_lines(table: pd.DataFrame, unanswered_above: float) -> list[str]:
    """Return a line for each judge: its verdicts by generator, and first what it did not answer."""
    lines = []
    for judge, rows in table.groupby("judge", sort=False):
        texts = []
        # First, because refusals count as wrong and so lower all that follows.
        unanswered = float(rows.loc[rows["measure"] == "unanswered", "value"].iloc[0])
        if unanswered > unanswered_above:
            texts.append(f"{percent(unanswered)} % of its choices have no usable answer")
        with_verdict = rows[rows["verdict"].notna() & ~rows["verdict"].isin(ANCHOR_NAMES)]
        for row in with_verdict.to_dict("records"):
            texts.append(f"{row['generator']} {row['verdict']}")
        if with_verdict.empty:
            reasons = rows["note"].dropna().unique()[:1]
            texts.append(": ".join(["no verdicts", *reasons]))
        lines.append(f"{judge}: {'; '.join(texts)}.")
    return lines


def certificate_lines(certificates: Mapping[str, Mapping[str, Any]]) -> list[Line]:
    """Return a line for each member of each judge and each kind of wrong texts.

    Args:
        certificates: by judge and member, as ``judge.certify.describe`` returns them.
    """
    lines = []
    # By member, since one seed of a judge may pass and another fail.
    for judge, members in certificates.items():
        for member, certificate in members.items():
            # The members of the leading judge are named by their seeds alone.
            name = member if member.startswith(judge) else f"{judge}-{member}"
            for kind, result in certificate["kinds"].items():
                cells = [_estimate(result["accuracy"]), TableCell(percent(result["chance"]))]
                cells += [_estimate(result["text_only"]), _estimate(result["order_effect"])]
                cells.append(TableCell(f"{result['n']:,}"))
                mark = "" if certificate["passes"] else "fails"
                lines.append(Line(f"{name}, {kind}", cells, mark))
    return lines


# The columns of ``certificate_lines``.
CERTIFICATE_COLUMNS = ["right, %", "chance, %", "without image, %", "first place, points", "items"]


def comparison_lines(compared: Iterable[Mapping[str, Any]], leading: str) -> list[Line]:
    """Return a line for each kind and each further judge: how it differs from the leading one.

    Args:
        compared: as ``judge.certify.compare_certificates`` returns them.
    """
    lines = []
    for row in compared:
        # The page has no room for all pairs of judges; judges.json has them.
        if row["a"] == leading:
            difference = {"value": row["difference"], "low": row["low"], "high": row["high"]}
            counts = TableCell(f"{row['only_a']} and {row['only_b']}")
            cells = [_estimate(difference), counts, TableCell(p_value(row["p_holm"]))]
            lines.append(Line(f"{row['b']}, {row['kind']}", cells))
    return lines


# The columns of ``comparison_lines``.
COMPARISON_COLUMNS = ["leading judge minus this one, points", "only one is right, items", "p"]


def _estimate(estimate: Mapping[str, float | None] | None) -> TableCell | None:
    if estimate is None or estimate["value"] is None:
        return None
    ends = interval(estimate["low"], estimate["high"])
    return TableCell(percent(estimate["value"]), ends)


def recognized_lines(recognized: Mapping[str, Iterable[str]]) -> list[str]:
    """Return a line for each judge: the held-out pairs that it recognizes."""
    lines = []
    for judge, pairs in recognized.items():
        names = ", ".join(map(pair_words, pairs)) or "none"
        lines.append(f"{judge}: {names}.")
    return lines


def agreement_view(agreements: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the agreement of each two judges as texts."""
    result = []
    for agreement in agreements:
        taus = [(SPLIT_NAMES[split], _text(tau, 1)) for split, tau in agreement["tau"].items()]
        pairs = []
        for gap in agreement["pairs"]:
            pairs.append(f"{pair_words(gap['pair'])} ({SPLIT_NAMES[gap['split']]}) {_text(gap)}")
        verdicts = [row["generator"] for row in agreement["verdicts"]]
        text = "Their verdicts are the same."
        if not agreement["with_both"]:
            text = "No generator has a verdict by both."
        elif verdicts:
            text = f"Their verdicts differ on {', '.join(verdicts)}."
        result.append(
            {"judges": agreement["judges"], "tau": taus, "pairs": pairs, "verdicts": text}
        )
    return result


def _text(ends: Mapping[str, float | None], scale: int = 100) -> str:
    """Return a value with its interval; in percent, or as it is with a ``scale`` of 1."""
    if ends["value"] is None:
        return "–"
    decimals = 2 if scale == 1 else 0
    numbers = []
    for name in ("value", "low", "high"):
        end = ends[name]
        numbers.append("–" if end is None else f"{scale * end:.{decimals}f}".replace("-", "−"))
    value, low, high = numbers
    return f"{value} [{low}, {high}]"
