"""Stage compun through Snakemake: from drawn compounds to the page, what is rerun, and a user's own
compounds.
"""

import json
import re

import pandas as pd
import pytest

from compclip.compun.config import TRAININGS
from compclip.core.tables import NOUNS_SEEN
from compclip.human.tasks import read_tasks
from tests.project import Project

PLACE = "results/sketch/compun"


def test_the_small_run_has_its_page_and_tasks_for_people(first_run: Project) -> None:
    place = first_run.root / PLACE
    analysis = pd.read_csv(place / "analysis.csv")
    right = analysis[analysis["measure"] == "right"]
    prompts = {"template", "reversed", "descriptions", *(f"examples_{n}" for n in range(1, 8))}
    assert (
        set(right["prompt"]) == prompts
        and set(right["model"]) == set(TRAININGS)
        and (right["n"] == 24).all()
    )
    assert ((right["low"] <= right["value"]) & (right["value"] <= right["high"])).all()
    choices = pd.read_parquet(place / "choices" / "choices.parquet")
    assert len(choices) == 2 * 10 * 24
    fractions = choices.groupby(["model", "prompt"])["right"].mean()
    assert all(
        fractions[row.model, row.prompt] == pytest.approx(row.value, abs=1e-6)
        for row in right.itertuples()
    )
    assert {f"wrong, {kind}" for kind in NOUNS_SEEN} <= set(analysis["measure"])
    judges = {
        name: json.loads((place / "judges" / name / "manifest.json").read_text())
        for name in TRAININGS
    }
    assert judges["taught"]["images"] - judges["untaught"]["images"] == 24 * 8
    page = (first_run.root / "results" / "compun.html").read_text()
    assert (
        len(re.findall(r'src="figures/[^"]+\.svg"', page)) == 3
        and "These compounds are drawn" in page
    )
    # Twelve compounds with their images.
    assert len(re.findall(r'src="sketch/[^"]+\.png"', page)) == 36
    assert (first_run.root / "results" / "compun.md").read_text().count("\n| ") == 2 * 4
    place = first_run.root / "results" / "sketch" / "color" / "human"
    kinds = set(read_tasks(place / "tasks.parquet")["kind"])
    assert (
        kinds
        == {"perceptual", "match", "caption"}
        == {path.stem for path in place.glob("label_studio/*.json")}
    )
    assert not (place / "analysis.json").exists()


@pytest.mark.slow
def test_compounds_models_and_people_of_the_user(project: Project) -> None:
    """With a list, images, captions and a judge, nothing is drawn or trained, and the answers are
    the same.
    """
    config = (
        "results: own\ncache: .cache\ncompun:\n"
        f"  compounds: {{file: {PLACE}/drawn/list.csv, images: {PLACE}/drawn/images}}\n"
        f"  models: [{{judge: {PLACE}/judges/taught, name: mine}}]\n"
        f"  captions: {PLACE}/drawn/captions.json\n"
        "  human: {keep: 0.5}\n"
    )
    (project.root / "own.yaml").write_text(config)
    project.snakemake("own.yaml", "--", "own/compun.html", "own/sketch/compun/human/tasks.json")
    tables = [
        pd.read_parquet(project.root / f"{place}/choices/choices.parquet")
        for place in ("own/sketch/compun", PLACE)
    ]
    both = tables[0].merge(tables[1][tables[1]["model"] == "taught"], on=["compound", "prompt"])
    assert len(both) == len(tables[0]) == 24 * 9 and (both["answer_x"] == both["answer_y"]).all()
    assert "descriptions" not in set(both["prompt"])
    assert "These compounds are drawn" not in (project.root / "own" / "compun.html").read_text()
    # A worker who is always right.
    tasks = read_tasks(project.root / "own/sketch/compun/human/tasks.parquet")
    answers = (
        tasks[["task_id", "right"]].set_axis(["task_id", "choice"], axis=1).assign(annotator="p")
    )
    answers.to_csv(project.root / "answers.csv", index=False)
    (project.root / "own.yaml").write_text(
        config.replace("keep: 0.5", "keep: 0.5, answers: [answers.csv]")
    )
    assert (
        not {"classify", "sample_compun_tasks"}
        & project.planned("own.yaml", "own/compun.html").keys()
    )
    project.snakemake("own.yaml", "--", "own/compun.html")
    analysis = pd.read_csv(project.root / "own/sketch/compun/analysis.csv")
    assert analysis[analysis["model"] == "people"][["value", "n"]].values.tolist() == [[1.0, 24]]
    assert (project.root / "own" / "compun.md").read_text().count("people") == 1
