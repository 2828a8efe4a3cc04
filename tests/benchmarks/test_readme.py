"""What `make readme` writes: the first picture, from the results of two generators, and the tables
of scores.
"""

import shutil
from pathlib import Path
from xml.etree import ElementTree

import pandas as pd
import pytest

from benchmarks import idea, scores
from compclip.core.artifacts.parquet import read_table, write_table
from compclip.core.errors import UserError
from compclip.core.tables import SCORES
from compclip.report.summary import HEADLINES
from tests.project import COMPOSITION, DATASET


def test_marked_lines_hold_the_caption_and_tables_means_over_judges(tmp_path: Path) -> None:
    lines = idea.marked_lines("a bird with a <red> crown & a tail", 14, 19, "from", 0, 12)
    texts = ["".join(line.itertext()) for line in ElementTree.fromstring(f"<svg>{lines}</svg>")]
    assert " ".join(texts) == "a bird with a <red> crown & a tail"
    assert '<tspan class="from">&lt;red&gt;</tspan>' in lines
    row = {
        "generator": "mine",
        "split": "test_seen",
        "prompts": "pairs",
        "judges": 3,
        "judge": "sketch",
    }
    row |= {"composition": "color", "distractors": "original", "measure": "r_precision"}
    row |= dict(zip(("value", "new_pairs_low", "new_pairs_high"), (0.5, 0.25, 0.75), strict=True))
    others = [row | {"prompts": "swapped"}, row | {"judges": 1}, row | {"distractors": "swapped"}]
    table = scores.table_of_scores(
        pd.DataFrame([row, *others]), [("color", "r_precision", "color")]
    ).splitlines()
    assert table[-1] == "| mine | 50.0 [25.0,\u00a075.0] | – | – |"
    (document := tmp_path / "a.md").write_text(
        "<!-- scores color: make readme -->\nold\n<!-- end of scores -->"
    )
    scores.write_tables(document, {"color": "new"})
    assert (
        document.read_text()
        == "<!-- scores color: make readme -->\n\nnew\n\n<!-- end of scores -->"
    )
    with pytest.raises(UserError, match="a.md: the marks of the scores shape are missing"):
        scores.write_tables(document, {"shape": "new"})


def test_picture_shows_what_the_judges_read_right(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idea, "SHORT", 1000)
    results = Path(shutil.copytree(results, tmp_path / "results"))
    # The small run's judge is not fit, so that it reads few right.
    for generator, right in (("faithful", 1.0), ("memorizer", 0.0)):
        file = results / DATASET / COMPOSITION / "scores" / "0" / generator / "test_swapped.parquet"
        write_table(read_table(file, SCORES).assign(adjective_first=right), file, SCORES)
    step = idea.Idea(
        results=results, dataset=DATASET, composition=COMPOSITION, output=tmp_path / "idea.svg"
    )
    idea.main(step)
    assert len(ElementTree.parse(step.output).findall("{*}image")) == 3


def test_the_end_of_a_run_is_what_the_screen_shows(results: Path, tmp_path: Path) -> None:
    (tmp_path / "table.md").write_text(
        HEADLINES.format("tiny, color\n\n- composes: faithful,\n  mine.\n\ntiny, shape\n\n- x.")
        + "## color\n"
    )
    assert (
        scores.ending_lines(tmp_path) == "    tiny, color\n\n    - composes: faithful,\n      mine."
    )
    (tmp_path / "table.md").write_text("## color\n")
    with pytest.raises(UserError, match="table.md: no headlines"):
        scores.ending_lines(tmp_path)
    assert (
        "draws seen pairs"
        in scores.score_tables(pd.read_parquet(results / "scores.parquet"))[
            f"composed {COMPOSITION}"
        ]
    )
