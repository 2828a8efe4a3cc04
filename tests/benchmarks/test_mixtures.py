"""Mixtures have the scores of the generators that they name, and words are checked against regions."""

import numpy as np
import pandas as pd

from benchmarks.mixtures import PERFECT, REFERENCE, SCORE_COLUMNS, SPANS, mixed, mixtures, with_composed
from compclip.report.table import Scored
from compclip.score.entries import ENTRY


def score(generator: str, rows: list[int]) -> Scored:
    entries = pd.DataFrame({name: [f"{name}{row}" for row in rows] for name in ENTRY} | {"pair": "red_bill"})
    judges = tuple(entries.assign(**dict.fromkeys(SCORE_COLUMNS, 10 * judge + np.array(rows)) | {"hit": False})
                   for judge in (1, 2))  # fmt: skip
    return Scored({"split": "test_unseen"}, {"generator": generator}, judges[0], judges)


def test_mixtures_have_the_scores_of_who_draws_and_words_span_their_regions() -> None:
    scores = {(REFERENCE, "test_unseen"): score(REFERENCE, [1, 2, 3])}
    blind = score("blind", [3, 1, 2])
    for table in blind.by_judge:
        table[[*SCORE_COLUMNS]] *= 100
    scores["blind", "test_unseen"] = blind
    drawn_by = np.array(["blind", REFERENCE, PERFECT])
    of = mixed(scores, "test_unseen", drawn_by, "mixture")
    assert of.generator == "mixture"
    assert [table["adjective_first"].tolist() for table in of.by_judge] == [[1100, 12, 1], [2100, 22, 1]]
    assert of.entries["hit"].tolist() == [0, 0, 1]
    entries = pd.DataFrame({"pair": ["red_bill", "tan_wing", "red_bill"]})
    choice = with_composed({"red_bill"})
    assert choice(entries, "test_swapped").tolist() == ["faithful", "memorizer", "faithful"]
    assert choice(entries, "test_seen").tolist() == ["faithful"] * 3
    names = [name for name, _ in mixtures(["a_b", "c_d"], {"a_b"}, np.random.default_rng(0))]
    assert len(set(names)) == len(names)
    some = {"half": (0.4, 0.6), "hardly to half": (0.1, 0.6), "composes": (0.9, np.inf)}
    assert some.items() <= SPANS.items() and len(SPANS) == 15
