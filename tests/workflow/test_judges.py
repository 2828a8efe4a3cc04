"""A run with several judges: a second CLIP, and another tool's answers to ``options.jsonl``."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
import yaml
from pandas.testing import assert_frame_equal

from compclip.core.errors import UserError
from compclip.core.identity.digests import sha256
from compclip.release.open_release import open_release
from compclip.release.recorded import recorded_note, unequal_recorded
from tests.project import Project

pytestmark = pytest.mark.slow
OTHER = {
    "name": "other",
    "kind": "clip",
    "model": "sketch",
    "pretrained": None,
    "trainable": ["*"],
    "epochs": 1,
    "batch": 64,
    "seeds": [3, 4],
    "train_on": "half",
}
TOOL = {"name": "tool", "kind": "table", "file": "answers_{composition}.csv"}
HOME = Path("results/sketch/color")


def with_judges(project: Project, *judges: dict[str, object]) -> str:
    """Write the small config with further judges; return its name."""
    name = project.config("judges.yaml", "results")
    file = project.root / name
    config = yaml.safe_load(file.read_text())
    file.write_text(yaml.safe_dump(config | {"judges": list(judges)}))
    return name


def answer_first(project: Project) -> int:
    """Answer each question by its first text, as a tool that does not look; return their number."""
    lines = (project.root / HOME / "options.jsonl").read_text().splitlines()
    answers = [{"id": json.loads(line)["id"], "number": 1} for line in lines]
    pd.DataFrame(answers).to_csv(project.root / "answers_color.csv", index=False)
    return len(answers)


@pytest.fixture(scope="module")
def judged(first_run: Project, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Run the small config with both judges."""
    project = first_run.fork(tmp_path_factory.mktemp("judged"))
    config = with_judges(project, OTHER, TOOL)
    project.snakemake(config, "--", str(HOME / "options.jsonl"))
    answer_first(project)
    project.snakemake(config)
    return project


def test_each_judge_has_rows_and_the_leading_one_is_first(judged: Project) -> None:
    table = pd.read_csv(judged.root / "results" / "judges.csv")
    assert list(dict.fromkeys(table["judge"])) == ["judge", "other", "tool"]
    members = table.groupby("judge")["members"].first().to_dict()
    assert members == {"judge": 1, "other": 2, "tool": 1}
    accuracy = table[table["measure"] == "adjective_accuracy"]
    scores = pd.read_csv(judged.root / "results" / "scores.csv")
    leading = accuracy[accuracy["judge"] == "judge"].set_index(["generator", "split"])["value"]
    is_same = (scores["measure"] == "adjective_accuracy") & (scores["judge"] != "oracle")
    of_table = scores[is_same & (scores["prompts"] != "matched")]
    for row in of_table[of_table["distractors"] == "original"].to_dict("records"):
        if row["prompts"] != "swapped" or row["split"] == "test_swapped":
            assert leading[row["generator"], row["split"]] == pytest.approx(row["value"])


def test_a_tool_that_does_not_look_is_right_by_chance(judged: Project) -> None:
    choices = pd.read_parquet(judged.root / HOME / "choices" / "tool.parquet")
    asked = choices[choices["adjective_first"].notna()]
    chance = (1 / asked["adjectives"]).mean()
    # Three standard errors of independent choices.
    error = 3 * (chance * (1 - chance) / len(asked)) ** 0.5
    assert asked["adjective_first"].mean() == pytest.approx(chance, abs=error)


def test_certificates_are_of_judges_that_can_be_asked(judged: Project) -> None:
    folder = judged.root / HOME / "certificates"
    assert sorted(file.name for file in folder.glob("*.json")) == ["judge.json", "other.json"]
    certificate = json.loads((folder / "other.json").read_text())
    assert [*certificate] == ["other-3", "other-4"]
    assert certificate["other-3"]["kinds"]["adjective"]["n"] > 0


def test_each_judge_is_asked_for_prompts(judged: Project) -> None:
    table = pd.read_csv(judged.root / "results" / "judges.csv")
    following = table[table["measure"] == "prompt_following"]
    assert set(following["judge"]) == {"judge", "other", "tool"}
    tool = following[following["judge"] == "tool"]
    # The first of up to ten texts, in a drawn order.
    assert tool["value"].between(0, 0.3).all()
    assert (following["n"] > 0).all() and following["value"].between(0, 1).all()


def test_the_page_shows_all_judges(judged: Project) -> None:
    page = (judged.root / "results" / "report.html").read_text()
    assert "Judges of different kinds are not averaged." in page
    assert "judge and other" in page and "judge and tool" in page
    assert "May they judge?" in page


def test_scores_are_those_of_a_run_without_further_judges(
    judged: Project, first_run: Project
) -> None:
    for name in ("scores.parquet", "comparisons.csv", "pairs.csv", "table.md", "metrics.json"):
        expected = (first_run.root / "results" / name).read_bytes()
        assert (judged.root / "results" / name).read_bytes() == expected


@pytest.fixture(scope="module")
def released(judged: Project) -> Path:
    judged.snakemake(with_judges(judged, OTHER, TOOL), "--", "results/release")
    return judged.root / "results" / "release"


def test_a_release_has_the_answers_of_all_judges(released: Path, judged: Project) -> None:
    (part,) = open_release(released).parts.values()
    assert list(unequal_recorded(part)) == []
    note = "color: the figures of other, tool in judges.csv follow from recorded answers"
    assert recorded_note(part).startswith(note)
    # All generators of the small run are controls.
    own = pd.read_csv(judged.root / "results" / "judges.csv")
    figures = pd.read_csv(released / "color" / "judges.csv")
    is_control = own["generator"].isin(figures["generator"].dropna())
    columns = ["judge", "generator", "split", "measure", "value", "verdict"]
    assert_frame_equal(
        own.loc[is_control, columns].reset_index(drop=True),
        figures.loc[figures["generator"].notna(), columns].reset_index(drop=True),
    )


def relist(folder: Path, name: str) -> None:
    """Write the digest of a changed file into release.json, as a stranger could."""
    listing = json.loads((folder / "release.json").read_text())
    listing["files"][name] = sha256(folder / name)
    (folder / "release.json").write_text(json.dumps(listing))


def test_a_release_names_no_file_of_answers(released: Path) -> None:
    for file in released.rglob("*"):
        if file.is_file():
            assert b"answers_color" not in file.read_bytes()


def test_a_figure_that_does_not_follow_from_the_answers_is_named(
    released: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(released, tmp_path / "release"))
    file = folder / "color" / "judges.csv"
    figures = pd.read_csv(file)
    row = figures.index[figures["judge"] == "tool"][0]
    figures.loc[row, "value"] += 0.1
    file.write_text(figures.to_csv(index=False))
    relist(folder, "color/judges.csv")
    (part,) = open_release(folder).parts.values()
    (fault,) = unequal_recorded(part)
    assert fault.startswith("color: judges.csv: tool, ")
    assert "follows from the answers" in fault


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("judges.csv", lambda text: "generator,value\na,1\n"),
        ("judges.csv", lambda text: text.replace("other", "../other")),
        ("judges.csv", lambda text: text.replace("measure", "measured", 1)),
        ("certificates/judge.json", lambda text: '{"0": {}}'),
    ],
)
def test_faulty_records_of_a_release_are_one_line(
    released: Path, tmp_path: Path, name: str, change: Callable[[str], str]
) -> None:
    folder = Path(shutil.copytree(released, tmp_path / "release"))
    file = folder / "color" / name
    file.write_text(change(file.read_text()))
    relist(folder, f"color/{name}")
    (part,) = open_release(folder).parts.values()
    with pytest.raises(UserError, match="release"):
        list(unequal_recorded(part))


def test_a_foreign_answer_is_named(judged: Project, tmp_path: Path) -> None:
    project = judged.fork(tmp_path / "foreign")
    file = project.root / "answers_color.csv"
    file.write_text(file.read_text() + "nowhere/test_seen/1/0/0,1\n")
    done = project.snakemake(with_judges(project, OTHER, TOOL), check=False)
    assert "1 ids that the run does not ask, the first ['nowhere/test_seen/1/0/0']" in done.stderr
