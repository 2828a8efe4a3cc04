"""What a study will cost, to be known before it is posted."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from workflow_scripts.human.config import HumanConfig, Kind, Site

CENT = Decimal("0.01")
# Means of fast and of slow workers, with no visible gap in quality (appendix 1.2).
PUBLISHED_SECONDS = (20, 100)


def fee(pay: float, workers: int, site: Site | None) -> float:
    """Dollars that the site takes for one answer: a share of the pay, to the cent, half a cent up.

    The share is larger where many people answer one task.
    """
    if site is None:
        return 0.0
    share = site.fee_many if workers >= site.many else site.fee
    exact = Decimal(str(pay)) * Decimal(str(share))
    return float(max(exact.quantize(CENT, ROUND_HALF_UP), Decimal(str(site.fee_least))))


def hourly(pay: float, seconds: float) -> float:
    """Dollars an hour."""
    return round(pay * 3600 / seconds, 2)


def kind_cost(tasks: int, kind: Kind, workers: int, site: Site | None) -> dict[str, Any]:
    """Dollars and hours of ``tasks`` tasks, checks included, each answered by ``workers`` people."""
    answers = tasks * workers
    return {
        "tasks": tasks,
        "answers": answers,
        "pay_a_task": kind.pay,
        "seconds_a_task": kind.seconds,
        "hours": round(answers * kind.seconds / 3600, 2),
        "hourly": hourly(kind.pay, kind.seconds),
        "hourly_at_published_seconds": {str(s): hourly(kind.pay, s) for s in PUBLISHED_SECONDS},
        "pay": round(answers * kind.pay, 2),
        "fee": round(answers * fee(kind.pay, workers, site), 2),
    }


def cost(tasks: Mapping[str, int], config: HumanConfig) -> dict[str, Any]:
    """What each kind costs, and all of them. tasks: how many of each kind, checks included."""
    kinds = {name: kind_cost(n, getattr(config, name), config.workers, config.site) for name, n in tasks.items()}
    hours = sum(part["hours"] for part in kinds.values())
    pay, fees = (round(sum(part[key] for part in kinds.values()), 2) for key in ("pay", "fee"))
    return {
        "workers_a_task": config.workers,
        "kinds": kinds,
        "hours": round(hours, 2),
        "hourly": round(pay / hours, 2) if hours else None,
        "pay": pay,
        "fee": fees,
        "total": round(pay + fees, 2),
    }


def cost_lines(found: Mapping[str, Any], *, site: bool) -> list[str]:
    """The same in words."""
    lines = [
        f"{name}: {part['tasks']} tasks x {found['workers_a_task']} people = {part['answers']} answers at"
        f" ${part['pay_a_task']:g}, {part['seconds_a_task']:g} s each: ${part['pay']:.2f}, {part['hours']:.1f} hours,"
        f" ${part['hourly']:.2f} an hour ("
        + ", ".join(f"${rate:.2f} at {s} s" for s, rate in part["hourly_at_published_seconds"].items())
        + ")"
        for name, part in found["kinds"].items()
    ]
    fees = f" + ${found['fee']:.2f} fee" if site else ", no fee without a site"
    rate = f", ${found['hourly']:.2f} an hour" if found["hourly"] is not None else ""
    return [*lines, f"in all ${found['total']:.2f}: ${found['pay']:.2f} pay{fees}; {found['hours']:.1f} hours{rate}"]
