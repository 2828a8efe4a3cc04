"""What a study costs, by hand."""

import pytest

from workflow_scripts.human.config import HumanConfig, Kind, Perceptual, Site
from workflow_scripts.human.cost import cost, cost_lines, fee, hourly

SITE = Site(base="https://example.org/x")


def test_published_pay_is_five_dollars_an_hour() -> None:
    assert hourly(Perceptual().pay, Perceptual().seconds) == 5
    assert hourly(Kind().pay, Kind().seconds) == 5


@pytest.mark.parametrize(
    ("pay", "workers", "expected"),
    [
        (0.1, 3, 0.02),  # a fifth
        (0.2, 9, 0.04),
        (0.2, 10, 0.08),  # two fifths, for ten answers to a task and more
        (0.02, 3, 0.01),  # at least a cent
        (0.07, 3, 0.01),  # 1.4 cents: down
        (0.125, 3, 0.03),  # 2.5 cents: up
        (0.0, 3, 0.01),
    ],
)
def test_fee(pay: float, workers: int, expected: float) -> None:
    assert fee(pay, workers, SITE) == expected
    assert fee(pay, workers, None) == 0


def test_total() -> None:
    config = HumanConfig(workers=5, site=SITE)
    total = cost({"perceptual": 100, "match": 50, "caption": 0}, config)
    # 500 answers at 10 cents and 250 at 20, and a fifth of that; 500 x 72 s and 250 x 144 s.
    assert (total["pay"], total["fee"], total["total"], total["hours"]) == (100, 20, 120, 20)
    assert total["hourly"] == 5
    assert total["kinds"]["perceptual"]["hourly_at_published_seconds"] == {"20": 18, "100": 3.6}
    lines = cost_lines(total, site=True)
    assert lines[-1] == "total $120.00: $100.00 pay + $20.00 fee; 20.0 hours, $5.00 an hour"
    assert "no fee without a site" in cost_lines(cost({"match": 1}, HumanConfig()), site=False)[-1]
