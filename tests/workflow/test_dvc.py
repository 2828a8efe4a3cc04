"""What DVC versions: ``dvc.yaml`` is written by hand, and Snakemake and DVC agree on what is
done.
"""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from compclip.core.identity.code import ROOT
from tests.project import Project
from workflow_scripts.mock_job import load_workflow

repo = pytest.importorskip("dvc.repo", reason="DVC is not installed (make .venv/cluster)")


def test_it_names_each_artifact_of_the_default_run_once() -> None:
    outs = [Path(out.fspath).relative_to(ROOT) for out in repo.Repo(str(ROOT)).index.outs]
    listed = subprocess.run(
        ["snakemake", "--cores", "1", "--summary"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    artifacts = [Path(line.split("\t")[0]) for line in listed[1:]]
    assert len(artifacts) > 100
    holders = {
        artifact: [out for out in outs if artifact.is_relative_to(out)] for artifact in artifacts
    }
    assert {artifact: held for artifact, held in holders.items() if len(held) != 1} == {}
    assert set(outs) == {held for (held,) in holders.values()}, (
        "an out of dvc.yaml is not made by any rule"
    )


DEFAULT = yaml.safe_load((ROOT / "config.yaml").read_text())
FOLDER = {"name": "mymodel", "kind": "folder", "path": "/data/mymodel"}
DIFFUSERS = {"name": "sd15", "kind": "diffusers", "model": "a/b", "size": [512, 512]}
# README's second recipe, and other configs whose values DVC cannot interpolate.
CONFIGS: dict[str, dict[str, Any]] = {
    "recipe": {
        "generate": {"generators": ["photographs", "usual_photographs", "pair_photographs", FOLDER]}
    },
    "settings first": {"generate": {"generators": [FOLDER, "photographs", DIFFUSERS]}},
    "options": {
        "generate": {
            "generators": [{"name": "other", "kind": "folder", "options": {"path": "made"}}]
        }
    },
    "no generators": {"generate": {"generators": []}},
    "default generators": {"generate": {}},
    "default judges": {"judge": {"seeds": None}},
    "one judge": {"judge": {"seeds": [7]}},
    "one composition": {"compositions": ["color"]},
    "listed pairs": {
        "split": {"heldout": {"pairs": {"color": ["red_wing"], "shape": ["long_bill"]}}}
    },
}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A checkout in git."""
    copy = Project(tmp_path_factory.mktemp("checkout")).copy()
    copy.call("git", "init", "-q")
    return copy


@pytest.mark.parametrize("name", CONFIGS)
def test_every_config_can_be_versioned(name: str, checkout: Project) -> None:
    config = DEFAULT | CONFIGS[name]
    (checkout.root / "config.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
    opened = repo.Repo(str(checkout.root))
    compositions = config["compositions"]
    stages = {stage.name for stage in opened.index.stages}
    assert {
        f"generate@{composition}" for composition in compositions
    } <= stages and "judge" in stages
    outs = [Path(out.fspath).relative_to(checkout.root) for out in opened.index.outs]
    assert Path("results", "sketch", compositions[0], "generated") in outs
    assert not [
        (one, other) for one in outs for other in outs if one != other and one.is_relative_to(other)
    ]
    assert all(changed for changed in opened.status().values())


def test_targets_are_what_a_stage_makes(checkout: Project) -> None:
    """Of a composition, with every kind of generator; others are not made."""
    generators = ["photographs", "faithful", FOLDER, DIFFUSERS]
    config = DEFAULT | {
        "generate": {"generators": generators},
        "judge": {"model": "sketch", "seeds": [3, 4]},
    }
    (checkout.root / "mine.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
    workflow = load_workflow(checkout.root / "mine.yaml")
    made = {
        target: {
            str(file).removeprefix("results/sketch/") for file in workflow.get_rule(target).input
        }
        for target in ("images_of_shape", "scores_of_color", "judges")
    }
    images = {
        f"shape/generated/{name}/manifest.parquet"
        for name in ("photographs", "faithful", "mymodel", "sd15")
    }
    assert images == made["images_of_shape"]
    assert made["judges"] == {"judges/3", "judges/4"}
    names = ("photographs", "faithful", "mymodel", "sd15")
    scores = {f"color/scores/{judge}/{name}" for judge in (3, 4) for name in names}
    scores |= {f"color/scores/oracle/{name}" for name in ("photographs", "faithful")}
    assert made["scores_of_color"] == scores | {"color/bias/3.json", "color/bias/4.json"}


@pytest.mark.slow
def test_a_run_is_shared(first_run: Project, tmp_path: Path) -> None:
    """Commit and push; in a clone, pull and touch: both tools find nothing to do, then just what
    changed.
    """
    run = first_run.fork(tmp_path / "run")
    config = yaml.safe_load((run.root / "small.yaml").read_text())
    for stage in ("specs", "compun", "human"):  # not in dvc.yaml
        config.pop(stage, None)
        for folder in [
            *run.root.glob(f"results/sketch/{stage}"),
            *run.root.glob(f"results/sketch/*/{stage}"),
        ]:
            shutil.rmtree(folder)
    # What dvc.yaml reads.
    config |= {"seed": 0, "threads": 2, "judge": config["judge"] | {"seeds": [0]}}
    (run.root / "config.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
    git = ("git", "-c", "user.name=t", "-c", "user.email=t@example.org")
    run.call("git", "init", "-q")
    run.call("dvc", "remote", "add", "--default", "--force", "store", str(tmp_path / "store"))
    run.snakemake("config.yaml")
    assert "?? results" not in run.call("git", "status", "--short", "--untracked-files=all").stdout
    # As docs/sharing.md says.
    command = re.search(
        r"^    (printf .*)$", (ROOT / "docs" / "sharing.md").read_text(), re.MULTILINE
    )
    run.call("bash", "-c", command[1])
    run.call("dvc", "commit", "-f")
    run.call("git", "add", "--all")
    run.call(*git, "commit", "-qm", "run")
    run.call("dvc", "push")

    clone = Project(tmp_path / "clone")
    run.call("git", "clone", "-q", str(run.root), str(clone.root))
    clone.call("dvc", "pull")
    clone.snakemake("config.yaml", "--touch", "--forceall", cores=1)
    assert clone.planned("config.yaml") == {}
    assert "up to date" in clone.call("dvc", "status").stdout
    pulled = clone.artifacts("results")
    assert (
        pulled.items() <= run.artifacts("results").items()
        and {"scores.parquet", "sketch/pairs.parquet"} <= pulled.keys()
    )

    text = (clone.root / "config.yaml").read_text()
    (clone.root / "config.yaml").write_text(text.replace("candidates: 10", "candidates: 9"))
    planned = clone.planned("config.yaml").keys()
    assert "score_images" in planned and not planned & {"train_judge", "audit", "extract_pairs"}
    module = clone.root / "compclip" / "split" / "audit.py"
    module.write_text(module.read_text() + "\nCHANGED = True\n")
    changed = clone.call("dvc", "status").stdout
    assert "split@color:" in changed and "dataset:" not in changed and "pairs:" not in changed
