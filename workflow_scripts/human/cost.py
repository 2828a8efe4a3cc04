"""The cost of a study, before it is posted."""

from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from workflow_scripts.human.config import Kind, Sampling, Site

CENT = Decimal("0.01")
# Mean seconds of fast and of slow workers, who did not differ visibly in quality (appendix 1.2).
PUBLISHED_SECONDS = (20, 100)


def fee(pay: float, workers: int, site: Site | None) -> float:
    """Return the site's fee for one answer in dollars, rounded to cents, half a cent up."""
    if site is None:
        return 0.0
    fraction = site.fee_many if workers >= site.many else site.fee
    exact = Decimal(str(pay)) * Decimal(str(fraction))
    return float(max(exact.quantize(CENT, ROUND_HALF_UP), Decimal(str(site.fee_least))))


def hourly(pay: float, seconds: float) -> float:
    return round(pay * 3600 / seconds, 2)


def kind_cost(tasks: int, kind: Kind, workers: int, site: Site | None) -> dict[str, Any]:
    """Return dollars and hours of ``tasks`` tasks, checks included, each answered by ``workers`` people."""
    answers = tasks * workers
    return {
        "tasks": tasks, "answers": answers, "pay_a_task": kind.pay, "seconds_a_task": kind.seconds,
        "hours": round(answers * kind.seconds / 3600, 2), "hourly": hourly(kind.pay, kind.seconds),
        "hourly_at_published_seconds": {str(s): hourly(kind.pay, s) for s in PUBLISHED_SECONDS},
        "pay": round(answers * kind.pay, 2), "fee": round(answers * fee(kind.pay, workers, site), 2),
    }  # fmt: skip


def cost(tasks: Mapping[str, int], sampling: Sampling) -> dict[str, Any]:
    """Return the cost of each kind and the total; ``tasks`` are the numbers of tasks, checks included."""
    kinds = {name: kind_cost(n, getattr(sampling, name), sampling.workers, sampling.site) for name, n in tasks.items()}
    hours = sum(kind["hours"] for kind in kinds.values())
    pay, fees = (round(sum(kind[key] for kind in kinds.values()), 2) for key in ("pay", "fee"))
    return {
        "workers_a_task": sampling.workers, "kinds": kinds, "hours": round(hours, 2),
        "hourly": round(pay / hours, 2) if hours else None, "pay": pay, "fee": fees, "total": round(pay + fees, 2),
    }  # fmt: skip


def cost_lines(total: Mapping[str, Any], *, site: bool) -> list[str]:
    lines = [
        f"{name}: {kind['tasks']} tasks x {total['workers_a_task']} people = {kind['answers']} answers at"
        f" ${kind['pay_a_task']:g}, {kind['seconds_a_task']:g} s each: ${kind['pay']:.2f}, {kind['hours']:.1f} hours,"
        f" ${kind['hourly']:.2f} an hour ("
        + ", ".join(f"${rate:.2f} at {s} s" for s, rate in kind["hourly_at_published_seconds"].items())
        + ")"
        for name, kind in total["kinds"].items()
    ]
    fees = f" + ${total['fee']:.2f} fee" if site else ", no fee without a site"
    rate = f", ${total['hourly']:.2f} an hour" if total["hourly"] is not None else ""
    return [*lines, f"total ${total['total']:.2f}: ${total['pay']:.2f} pay{fees}; {total['hours']:.1f} hours{rate}"]
