"""The whole chain on a few drawn birds: wiring, what a change reruns, a kill, one core against
two.
"""

import json
import os
import shutil
import signal
import subprocess
import time
from functools import partial
from pathlib import Path

import pandas as pd
import psutil
import pytest
import yaml

from tests.project import Project


def differing(one: dict[str, str], other: dict[str, str]) -> list[str]:
    assert len(one) > 50
    return sorted(path for path in one.keys() | other.keys() if one.get(path) != other.get(path))


def test_table_has_every_score(project: Project) -> None:
    scores = pd.read_parquet(project.root / "results" / "scores.parquet")
    table = scores[scores.measure == "r_precision"]
    trained = table[table.judge != "oracle"]
    served = trained.groupby(["composition", "generator"]).split.agg(set)
    assert served["color", "photographs"] == {"test_seen", "test_unseen"}
    assert served["color", "faithful"] == {"test_seen", "test_unseen", "test_swapped"}
    # What DVC compares are the scores that are compared here.
    whole = (trained.prompts == "pairs") | (trained.split == "test_swapped")
    compared = trained[whole & (trained.distractors == "original")]
    metrics = json.loads((project.root / "results" / "metrics.json").read_text())["sketch"]
    found = {
        (c, g, f"test_{s}"): v
        for c, of in metrics.items()
        for g, by in of.items()
        for s, v in by.items()
    }
    expected = 100 * compared.set_index(["composition", "generator", "split"]).value
    assert found == pytest.approx(expected.to_dict(), abs=0.006)


def test_nothing_to_do_and_a_bad_config_are_one_line(project: Project) -> None:
    before = project.artifacts("results")
    done = project.make("small.yaml")
    assert done.stderr.splitlines()[-1].startswith(
        "Nothing to be done (all requested files are present"
    )
    assert "page:  results/report.html" in done.stdout
    assert project.artifacts("results") == before
    (project.root / "bad.yaml").write_text("judge: {epoch: 3}\n")
    run = project.make("bad.yaml", check=False)
    assert run.returncode == 1
    assert run.stderr.startswith(
        "error: bad.yaml: judge.epoch: unknown key; did you mean epochs? allowed: "
    )
    assert len(run.stderr.strip().splitlines()) == 1
    plain = project.snakemake("bad.yaml", check=False)
    assert plain.returncode and "judge.epoch: unknown key" in plain.stderr


RETURN, EDITED = "\n    return ", "\n    repr(0)\n    return "
CODE = "compclip/"


@pytest.mark.parametrize(
    ("file", "old", "new", "rerun", "kept"),
    [
        # A comment or a docstring anywhere reruns nothing.
        ("workflow_scripts/job.py", '"""What the', '"""All that the', set(), set()),
        (f"{CODE}judge/training.py", "\ndef ", "\n# a comment\ndef ", set(), set()),
        (
            f"{CODE}judge/training.py",
            "logits = scale *",
            "logits = 2 * scale *",
            {"train_judge"},
            {"make_prompts"},
        ),
        (
            f"{CODE}score/score_images.py",
            RETURN,
            EDITED,
            {"score_images", "make_table"},
            {"train_judge"},
        ),
        (
            f"{CODE}split/wording.py",
            RETURN,
            EDITED,
            {"swap_adjectives"},
            {"load_dataset", "extract_pairs"},
        ),
        (
            "workflow_scripts/report/make_page.py",
            RETURN,
            EDITED,
            {"make_page"},
            {"train_judge", "make_table"},
        ),
        (
            "small.yaml",
            "candidates: 10",
            "candidates: 9",
            {"score_images", "make_table"},
            {"train_judge"},
        ),
        (
            "small.yaml",
            "epochs: 2",
            "epochs: 3",
            {"train_judge", "score_images"},
            {"extract_pairs", "audit", "export"},
        ),
        ("small.yaml", "examples: 3", "examples: 2", {"make_page"}, {"make_table", "score_images"}),
        (
            "small.yaml",
            "lr: 0.001",
            "lr: 0.002",
            {"train_specs", "intrinsic", "draw_specs"},
            {
                "describe_images",
                "train_judge_for_specs",
                "stretch",
                "chunk_captions",
                "load_dataset",
            },
        ),
        (
            "small.yaml",
            "things: 240",
            "things: 260",
            {"draw_compounds", "load_compounds", "train_judge_for_compun", "classify"},
            {"load_dataset"},
        ),
        # Another judge is trained beside the first.
        (
            "small.yaml",
            "seeds: [0]",
            "seeds: [0, 4]",
            {"train_judge"},
            {"make_prompts", "generate_images"},
        ),
    ],
)
def test_a_change_reruns_what_it_decides(
    project: Project, file: str, old: str, new: str, rerun: set[str], kept: set[str]
) -> None:
    path = project.root / file
    before = path.read_text()
    assert old in before
    try:
        path.write_text(before.replace(old, new, 1))
        planned = project.planned("small.yaml")
    finally:
        path.write_text(before)
    assert rerun <= planned.keys() and not kept & planned.keys()
    assert rerun or not planned
    assert planned.get("train_judge", 1) == 1


@pytest.mark.slow
def test_other_images_of_equal_size_and_time_are_scored_again(
    project: Project, tmp_path: Path
) -> None:
    made = tmp_path / "made"
    shutil.copytree(
        project.root / "results" / "sketch" / "color" / "generated" / "faithful" / "images", made
    )
    config = yaml.safe_load((project.root / "small.yaml").read_text())
    config["generate"]["generators"].append({"name": "mine", "kind": "folder", "path": str(made)})
    (project.root / "mine.yaml").write_text(yaml.safe_dump(config))
    target = "results/sketch/color/scores/0/mine"
    project.snakemake("mine.yaml", "--", target)
    assert project.planned("mine.yaml", target) == {}
    for file in made.rglob("*.png"):
        status = file.stat()
        file.write_bytes(bytes(status.st_size))
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert project.planned("mine.yaml", target) == {"generate_images": 1, "score_images": 1}


def test_a_killed_run_on_one_core_ends_with_the_same_bytes(project: Project) -> None:
    """Cold caches, one core, killed in the training and resumed; the first run had two cores."""
    config = project.config("killed.yaml", "killed", ".cache_killed")
    wrapper = ("python", "-m", "workflow_scripts.workflow.run", "--config", config, "--cores", "1")
    with subprocess.Popen(
        wrapper,
        cwd=project.root,
        env=project.environment,
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as run:
        deadline = time.monotonic() + 300
        while not list((project.root / "killed" / "logs").rglob("train_judge.*.log")):
            assert run.poll() is None and time.monotonic() < deadline, (
                "the run ended before the training began"
            )
            time.sleep(0.05)
        # While it runs, a second one is refused in one line.
        second = project.make(config, check=False)
        os.killpg(run.pid, signal.SIGKILL)
    for refused in (second, project.make(config, check=False)):
        assert refused.returncode == 1 and refused.stderr.count("\n") == 1
        assert (
            "locked by another run of Snakemake; wait until it ends or, if it was killed, `make un"
            in refused.stderr
        )
    project.snakemake(config, "--unlock")
    # An artifact is damaged meanwhile: the next step refuses it, and that is the last line.
    artifact = project.root / "killed" / "sketch" / "color" / "splits.parquet"
    whole = artifact.read_bytes()
    artifact.write_bytes(whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:])
    refused = project.make(config, check=False)
    last = refused.stderr.splitlines()[-1]
    assert (
        refused.returncode == 1
        and last.startswith("error: ")
        and last.count("(log: killed/logs/") == 1
    )
    assert (
        "killed/sketch/color/splits.parquet: changed since split.make_splits wrote it; delete"
        in last
    )
    artifact.write_bytes(whole)
    project.make(config)
    assert differing(project.artifacts("results"), project.artifacts("killed")) == []


@pytest.mark.parametrize(
    ("number", "whole_group"),
    [(signal.SIGTERM, False), (signal.SIGTERM, True), (signal.SIGHUP, True)],
)
def test_a_terminated_run_says_so_in_one_line_and_leaves_nothing(
    project: Project, number: signal.Signals, whole_group: bool, request: pytest.FixtureRequest
) -> None:
    """A terminal that closes sends SIGHUP to the whole group."""
    folder = f"terminated{number:d}{whole_group:d}"
    config = project.config(f"{folder}.yaml", folder, f".cache_{folder}")
    command = ("python", "-m", "workflow_scripts.workflow.run", "--config", config, "--cores", "1")
    # Under nohup, what is started ignores SIGHUP, too.
    before = signal.signal(number, signal.SIG_DFL)
    request.addfinalizer(partial(signal.signal, number, before))
    with subprocess.Popen(
        command,
        cwd=project.root,
        env=project.environment,
        start_new_session=True,
        text=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as run:
        deadline = time.monotonic() + 300
        while not list((project.root / folder / "logs").rglob("*.log")):
            assert run.poll() is None and time.monotonic() < deadline, (
                "the run ended before a step began"
            )
            time.sleep(0.05)
        (os.killpg if whole_group else os.kill)(run.pid, number)
        lines = run.communicate(timeout=120)[1].splitlines()
    assert run.returncode == 128 + number
    assert lines[-1] == "terminated; run again to resume"
    assert not [line for line in lines if line.startswith("error")]
    assert not [
        process
        for process in psutil.process_iter(["cmdline"])
        if f"/{folder}/" in str(process.info)
    ]
    assert not list((project.root / ".snakemake" / "locks").glob("*"))
