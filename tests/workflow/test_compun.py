"""Stage compun through Snakemake: from drawn compounds to the page, the same bytes again, and what is rerun."""

import json
import re
from pathlib import Path

import pandas as pd
import pytest

from tests.compun.stub_model import StubModel, serving
from tests.project import Project
from workflow_scripts.compun.config import TRAININGS
from workflow_scripts.core.tables import NOUNS_SEEN
from workflow_scripts.human.tasks import read_tasks

COMPUN = """
results: {results}
cache: {cache}
seed: 3
compun:
  templates: simple
  bootstrap: 200
  examples: 3
  drawn: {{tested: 12, others: 6, things: 160, pairs: 40, each: 2}}
  judge: {{model: sketch, epochs: 1, batch: 40, captions: 2}}
  models: [{{transformers: "no/albef", name: ALBEF}}]
"""
pytestmark = pytest.mark.slow
PAGES = ("compun.md", "compun.html")
KEY = "sk-" + "secret" * 4


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A copy of the project, without the run that other tests share."""
    return Project(tmp_path_factory.mktemp("compun")).copy()


def run(project: Project, results: str, cores: int = 2) -> Path:
    (project.root / f"{results}.yaml").write_text(COMPUN.format(results=results, cache=f".cache_{results}"))
    project.snakemake(f"{results}.yaml", "--", *(f"{results}/{name}" for name in PAGES), cores=cores)
    return project.root / results


@pytest.fixture(scope="module")
def nouns(project: Project) -> Path:
    return run(project, "nouns")


def changed(project: Project, old: str, new: str) -> set[str]:
    """Return the rules that run if ``old`` in the config becomes ``new``."""
    text = (project.root / "nouns.yaml").read_text()
    assert old in text
    (project.root / "changed.yaml").write_text(text.replace(old, new))
    return set(project.planned("changed.yaml", "nouns/compun.html"))


def test_it_runs_to_the_page(nouns: Path) -> None:
    place = nouns / "sketch" / "compun"
    accuracy = pd.read_csv(place / "analysis" / "accuracy.csv")
    prompts = {"template", "reversed", "descriptions", "examples_1", "examples_2", "examples_3"}
    assert set(accuracy["prompt"]) == prompts | {f"{prompt}_ensemble" for prompt in prompts}
    assert set(accuracy["model"]) == {"untaught", "taught"} and (accuracy["n"] == 12).all()
    assert ((accuracy["low"] <= accuracy["accuracy"]) & (accuracy["accuracy"] <= accuracy["high"])).all()
    choices = pd.read_parquet(place / "choices" / "choices.parquet")
    assert len(choices) == 2 * 12 * 12
    shares = choices.groupby(["model", "prompt"])["right"].mean()
    assert all(shares[row.model, row.prompt] == pytest.approx(row.accuracy, abs=1e-6) for row in accuracy.itertuples())
    kinds = pd.read_csv(place / "analysis" / "kinds.csv")
    assert set(kinds["kind"]) == set(NOUNS_SEEN) and (kinds["n"] == 4).all()
    models = json.loads((place / "choices" / "models.json").read_text())
    assert [one["model"] for one in models["not_loaded"]] == ["ALBEF"]
    taught = {name: json.loads((place / "judges" / name / "manifest.json").read_text()) for name in TRAININGS}
    assert taught["taught"]["images"] - taught["untaught"]["images"] == 12 * 2
    page = (nouns / "compun.html").read_text()
    assert len(re.findall(r'src="figures/[^"]+\.svg"', page)) == 4 and "no maintained library offers it" in page
    # Twelve compounds with their images, and what was drawn.
    assert len(re.findall(r'src="sketch/[^"]+\.png"', page)) == 36
    assert "the 6 written as one word are unknown words" in " ".join(page.split())
    assert (nouns / "compun.md").read_text().count("\n| ") == 1 + 2 * 8 + 1
    assert not list(nouns.glob("sketch/captions.parquet")), "nothing of the other stages is made"


def test_the_same_bytes_from_nothing(project: Project, nouns: Path) -> None:
    again = run(project, "again", cores=1)
    one, other = project.artifacts("nouns"), project.artifacts("again")
    assert sorted(path for path in one.keys() | other.keys() if one.get(path) != other.get(path)) == []
    assert len(one) > 300 and again != nouns


def test_one_setting_reruns_what_depends_on_it(project: Project, nouns: Path) -> None:
    assert project.planned("nouns.yaml", "nouns/compun.html") == {}
    drawing = {"draw_compounds", "load_compounds", "ask_captions"}
    rules = changed(project, "bootstrap: 200", "bootstrap: 300")
    assert {"analyze_choices", "draw_compun", "make_compun_page"} <= rules
    assert not {*drawing, "train_small_clip", "classify"} & rules
    rules = changed(project, "templates: simple", "templates: none")
    assert "classify" in rules and not {*drawing, "train_small_clip"} & rules
    rules = changed(project, "epochs: 1", "epochs: 2")
    assert {"train_small_clip", "classify"} <= rules and not drawing & rules
    assert drawing | {"train_small_clip", "classify"} <= changed(project, "things: 160", "things: 180")
    # People are asked beside the models.
    assert not {*drawing, "train_small_clip", "classify", "analyze_choices"} & changed(
        project, "  bootstrap: 200", "  bootstrap: 200\n  human: {}"
    )


def test_a_language_model_is_asked_once_and_its_key_is_written_nowhere(
    project: Project, nouns: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMPCLIP_TEST_KEY", KEY)
    with serving(StubModel(key=KEY)) as server:
        asked = f'captions: {{address: "{server.address}", model: stub-1, key: COMPCLIP_TEST_KEY, count: 3}}'
        config = COMPUN.format(results="asked", cache=".cache_asked") + f"  {asked}\n"
        (project.root / "asked.yaml").write_text(config)
        captions = project.root / "asked" / "sketch" / "compun" / "captions.json"
        project.snakemake("asked.yaml", "--", str(captions.relative_to(project.root)))
        listed = pd.read_csv(captions.parent / "drawn" / "list.csv")["compound"]
        assert sorted(server.nouns()) == sorted(listed)
        found = json.loads(captions.read_text())
        assert found[listed[0]] == [f"Scene {n} with a {listed[0]}." for n in (1, 2, 3)]
        summary = json.loads((captions.parent / "captions_summary.json").read_text())
        assert summary["from_model"] == 12 and summary["asked"]["model"] == "stub-1"
        # Answers are cached.
        captions.unlink()
        project.snakemake("asked.yaml", "--", str(captions.relative_to(project.root)))
        assert json.loads(captions.read_text()) == found and len(server.asked) == 12
    files = [path for path in project.root.rglob("*") if path.is_file()]
    assert not [path for path in files if KEY.encode() in path.read_bytes()]


def test_compounds_models_and_people_of_the_user(project: Project, nouns: Path) -> None:
    """With a list, images, captions and a judge, nothing is drawn or trained, and the answers are the same."""
    place = "nouns/sketch/compun"
    config = (
        "results: own\ncache: .cache_own\nseed: 3\n"
        "dataset: {source: table, name: mine, table: {file: captions.csv}}\ncompun:\n"
        f"  compounds: {{file: {place}/drawn/list.csv, images: {place}/drawn/images}}\n"
        f"  models: [{{judge: {place}/judges/taught, name: mine}}]\n"
        f"  captions: {{file: {place}/drawn/captions.json, count: 3}}\n"
        "  templates: simple\n  examples: 3\n  bootstrap: 200\n  human: {keep: 0.5}\n"
    )
    (project.root / "own.yaml").write_text(config)
    (project.root / "captions.csv").write_text("image_id,caption\na,a red bird\n")
    project.snakemake("own.yaml", "--", "own/compun.html", "own/mine/compun/human/tasks.json")
    own, before = (
        pd.read_parquet(project.root / folder / "compun" / "choices" / "choices.parquet")
        for folder in ("own/mine", "nouns/sketch")
    )
    assert "descriptions" not in set(own["prompt"])
    assert "These compounds are drawn" not in (project.root / "own" / "compun.html").read_text()
    both = own.merge(before[before["model"] == "taught"], on=["compound", "prompt"])
    assert len(both) == len(own) == 12 * 10 and (both["answer_x"] == both["answer_y"]).all()
    human = project.root / "own/mine/compun/human"
    assert (human / "label_studio" / "compound.json").is_file()
    # A worker who is always right.
    tasks = read_tasks(human / "tasks.parquet")
    rows = [(row.task_id, "p", row.right) for row in tasks.itertuples()]
    answers = pd.DataFrame(rows, columns=["task_id", "annotator", "choice"])
    answers.to_csv(project.root / "answers.csv", index=False)
    (project.root / "own.yaml").write_text(config.replace("keep: 0.5", "keep: 0.5, answers: [answers.csv]"))
    assert not {"classify", "sample_compun_tasks"} & project.planned("own.yaml", "own/compun.html").keys()
    project.snakemake("own.yaml", "--", "own/compun.html")
    beside = pd.read_csv(project.root / "own/mine/compun/analysis/beside.csv")
    people = beside[(beside["model"] == "people") & (beside["whose"] == "ours")]
    assert people["value"].tolist() == [1.0] and people["n"].tolist() == [12]


@pytest.mark.parametrize(
    ("captions", "message"),
    [
        (f"file: a.json, key: {KEY}", "give the name, never the key itself"),
        (f"address: 'http://me:{KEY}/b@h/v1', model: m", "a key by the environment only"),
    ],
)
def test_a_key_in_the_config_is_refused_and_not_shown(project: Project, captions: str, message: str) -> None:
    (project.root / "bad.yaml").write_text(f"compun: {{captions: {{{captions}}}}}\n")
    for command in (
        ["python", "-m", "workflow_scripts.workflow.run", "--config", "bad.yaml"],
        ["snakemake", "--cores", "1", "--configfile", "bad.yaml", "--dry-run", "--verbose"],
    ):
        failed = project.call(*command, check=False)
        printed = failed.stdout + failed.stderr
        assert failed.returncode and message in printed and KEY not in printed
