"""`make check`, and the start of every run: every problem is listed at once, and nothing is
computed before.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
import yaml
from PIL import Image
from snakemake_interface_common.exceptions import WorkflowError

from compclip.core.artifacts.parquet import write_table
from compclip.core.errors import UserError
from compclip.core.identity.code import ROOT
from compclip.core.log import UNDER_RUN
from compclip.core.tables import PROMPTS
from workflow_scripts.workflow import check
from workflow_scripts.workflow.check import (
    DRIVE,
    Findings,
    check_before_jobs,
    check_config,
    check_jobs,
)
from workflow_scripts.workflow.config import load_config

BASE = {"model": "sketch_text", "pretrained": "absent.pt", "epochs": 0}
MODELS = [{"name": "mine", "open_clip": "RN51", "pretrained": "openai"}]
# A faulty value, and what the line about it contains.
FAULTS: list[tuple[dict[str, Any], list[str]]] = [
    ({"pairs": {"nouns": "brids"}}, ["pairs.nouns", "brids.yaml", "choose one of: birds"]),
    (
        {"pairs": {"model": "en_none"}},
        ["pairs.model", "'en_none' is not installed", "spacy download"],
    ),
    (
        {"judge": {"model": "RN5O"}},
        ["judge.model: unknown model 'RN5O'; did you mean RN50? choose"],
    ),
    (
        {"judge": {"model": "sketch", "pretrained": "no/w.pt"}},
        ["judge.pretrained: no/w.pt: no such file", "no does"],
    ),
    (
        {"generate": {"generators": [{"name": "mine", "kind": "folder", "path": "rules"}]}},
        ["rules", "contains no jpg"],
    ),
    (
        {"dataset": {"source": "table", "table": {"file": "README.dm"}}},
        ["dataset.table.file", "mean README.md?"],
    ),
    (
        {"dataset": {"source": "cub", "cub": {"root": "nowhere"}}},
        ["dataset.cub.images", "CUB_200_2011.tgz: no"],
    ),
    (
        {"split": {"published": {"split": "s_{composition}.pkl"}}},
        ["split.published.split: s_color.pkl"],
    ),
    (
        {"split": {"published": {"split": "no/split.pkl"}}, "compositions": ["color"]},
        ["no/split.pkl", f"{DRIVE}/1jO"],
    ),
    (
        {"judge": {"model": "sketch", "pretrained": "no/C_CUB_{composition}.pt", "shared": False}},
        ["no/C_CUB_shape.pt", f"{DRIVE}/1A2"],
    ),
    (
        {"specs": {"data": {"examples": "a", "increments": "b"}, "base": BASE}},
        ["specs.data.examples: a"],
    ),
    ({"compun": {"captions": "no.json"}}, ["compun.captions: no.json"]),
    (
        {"compun": {"compounds": {"images": "absent"}, "models": MODELS}},
        ["compun.compounds.images: absent"],
    ),
    ({"score": {"fid": {"weights": "no.pth"}}}, ["score.fid.weights: no.pth"]),
    (
        {"judge": {"model": "sketch", "pretrained": "x" * 300 + ".pt"}},
        ["judge.pretrained: xxx", "File name too long"],
    ),
    ({"cache": "README.md"}, ["cache: README.md: not writable (not a directory)"]),
]
SMALL_JUDGE = {"judge": {"model": "sketch"}}


@pytest.mark.parametrize(("values", "parts"), FAULTS)
def test_a_fault_is_one_line(values: dict[str, Any], parts: list[str], tmp_path: Path) -> None:
    findings = check_config(
        load_config({"results": str(tmp_path / "results"), **SMALL_JUDGE, **values})
    )
    lines = [line for line in findings.errors if all(part in line for part in parts)]
    assert lines and "\n" not in lines[0], findings.errors
    assert not (tmp_path / "results").exists()


def drawn(folder: Path, names: Iterable[str]) -> Path:
    """Make a folder with an image of each name."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.effect_noise((40, 40), 50).convert("RGB").save(folder / name)
    return folder


def table_of(tmp_path: Path, count: int) -> dict[str, Any]:
    """Return a config for a table of so many images, which are in folder ``images``."""
    table = tmp_path / "captions.csv"
    rows = [f"{number}.jpg,a red cup" for number in range(count)]
    table.write_text("\n".join(["image_id,caption", *rows]))
    settings = {"file": str(table), "images": str(tmp_path / "images")}
    return {
        "results": f"{tmp_path}/results",
        "dataset": {"source": "table", "table": settings},
        "pairs": {"selection": {"min_count": 1}},
    }


def test_missing_images_of_a_table_are_counted(tmp_path: Path) -> None:
    drawn(tmp_path / "images", ["0.jpg", "2.jpg"])
    notes = check_config(load_config(table_of(tmp_path, 4) | SMALL_JUDGE)).notes
    assert notes == ["dataset.table.images: 2 of the table's 4 images are missing, the first 1.jpg"]


def test_damaged_images_of_a_folder_are_counted(tmp_path: Path) -> None:
    images = drawn(tmp_path / "images", [f"{number}.jpg" for number in range(4)])
    (images / "1.jpg").write_bytes(b"")
    (images / "3.jpg").write_bytes((images / "3.jpg").read_bytes()[:400])
    (images / "4.jpg").symlink_to("absent")
    (note,) = check_config(load_config(table_of(tmp_path, 4) | SMALL_JUDGE)).notes
    count = f"2 damaged images among the 4 that were read, the first {images}/1.jpg"
    assert note.startswith(f"dataset.table.images: {count} (no image of a known format)")


def test_missing_images_of_a_generator_are_counted(tmp_path: Path) -> None:
    names = [f"birds/color/test_seen/{number}/0.png" for number in range(4)]
    cells = ["test_seen", "a red cup", None]
    rows = [(str(number), 0, 0, *cells, name) for number, name in enumerate(names)]
    prompts = pd.DataFrame(rows, columns=[*PROMPTS.columns]).astype({"pair": "str"})
    results = tmp_path / "results"
    (results / "sketch" / "color").mkdir(parents=True)
    write_table(prompts, results / "sketch" / "color" / "prompts.parquet", PROMPTS)
    made = drawn(tmp_path / "made", [names[0].replace(".png", ".JPG"), names[3]])
    generator = {"name": "mine", "kind": "folder", "path": str(made)}
    values = {"compositions": ["color"], "generate": {"generators": [generator]}}
    (note,) = check_config(load_config({"results": str(results), **values, **SMALL_JUDGE})).notes
    missing = "2 of 4 images are missing and would count as wrong"
    assert note == f"generate.generators: mine: color: {missing}, the first {names[1]}"


def test_of_many_images_some_are_read_yet_all_empty_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check, "DECODED", 5)
    images = drawn(tmp_path / "images", [f"{number:02}.jpg" for number in range(20)])
    (images / "13.jpg").write_bytes(b"")
    findings = Findings()
    findings.has_images("key", str(images))
    assert "key: 1 damaged images among the 6 that were read" in findings.notes[0]


def test_a_table_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    drawn(tmp_path / "images", ["0.jpg"])
    values = table_of(tmp_path, 2)
    (tmp_path / "captions.csv").write_text("picture,caption\n0,a red cup\n")
    (error,) = check_config(load_config(values | SMALL_JUDGE)).errors
    assert error.startswith("dataset.table: ") and "no column 'image_id'" in error


def test_fewer_captions_than_a_ranked_pair_needs_are_an_error(tmp_path: Path) -> None:
    drawn(tmp_path / "images", ["0.jpg", "1.jpg"])
    values = table_of(tmp_path, 2) | SMALL_JUDGE | {"pairs": {"selection": {"min_count": 3}}}
    (error,) = check_config(load_config(values)).errors
    assert error.startswith("dataset.table: ")
    assert "2 captions are too few" in error


@pytest.mark.parametrize(
    ("pair", "fault"),
    [
        ("purple_bil", "'bil' is not in lexicons/nouns/birds.yaml; did you mean bill?"),
        ("purpel_bill", "'purpel' is not in"),
    ],
)
def test_a_listed_pair_of_a_word_that_no_lexicon_has_is_an_error(
    pair: str, fault: str, tmp_path: Path
) -> None:
    drawn(tmp_path / "images", ["0.jpg"])
    values = table_of(tmp_path, 1) | SMALL_JUDGE
    values |= {"compositions": ["color"], "split": {"heldout": {"pairs": [pair]}}}
    values["pairs"] = values["pairs"] | {"nouns": "birds"}
    (error,) = check_config(load_config(values)).errors
    assert error.startswith("split.heldout.pairs: color: ")
    assert fault in error


def test_a_table_is_read_again_only_if_it_has_changed_since_the_run(tmp_path: Path) -> None:
    drawn(tmp_path / "images", ["0.jpg"])
    config = load_config(table_of(tmp_path, 2) | SMALL_JUDGE)
    config.data_folder.mkdir(parents=True)
    captions = config.data_folder / "captions.parquet"
    captions.touch()
    os.utime(captions, (0, 2**31))
    assert not check_config(config).notes
    os.utime(captions, (0, 0))
    assert "1 of the table's 2 images are missing" in check_config(config).notes[0]


def test_generators_without_images_of_the_data_are_said_to_be_unused(tmp_path: Path) -> None:
    values = table_of(tmp_path, 2)
    values["dataset"]["table"]["images"] = None
    assert not check_config(load_config(values)).notes
    notes = check_config(load_config(values | {"generate": {"generators": ["photographs"]}})).notes
    assert notes == ["generate.generators: not used, because the data set has no images"]


def test_a_published_file_without_content_is_an_error(tmp_path: Path) -> None:
    split = tmp_path / "split.pkl"
    split.touch()
    published = {"split": {"published": {"split": str(split)}}, "compositions": ["color"]}
    errors = check_config(load_config(published | SMALL_JUDGE)).errors
    assert any(f"{split}: empty file; download it from {DRIVE}/1jO" in error for error in errors)


def test_judges_are_checked_once_and_other_folders_refused(tmp_path: Path) -> None:
    for name, count in (("no_{composition}.pt", 2), ("no.pt", 1)):
        judge = {"model": "sketch", "pretrained": name, "shared": False}
        assert (
            len(
                check_config(
                    load_config({"results": str(tmp_path / "results"), "judge": judge})
                ).errors
            )
            == count
        )
    (tmp_path / "thesis.tex").touch()
    errors = check_config(load_config({"results": str(tmp_path)})).errors
    assert any(
        "contains thesis.tex, but nothing that a run has made; choose an empty" in error
        for error in errors
    )
    (tmp_path / "logs").mkdir()
    assert not any(
        "thesis" in error for error in check_config(load_config({"results": str(tmp_path)})).errors
    )


def test_all_faults_of_each_run_are_listed_without_torch_also_by_plain_snakemake(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "1.png").touch()
    config = {
        "results": str(tmp_path / "results"),
        "dataset": {
            "source": "table",
            "table": {"file": "absent.csv", "images": str(tmp_path / "images")},
        },
        "pairs": {"nouns": "brids"},
        "generate": {"generators": [{"name": "mine", "kind": "folder", "path": "nowhere"}]},
    }
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(config | SMALL_JUDGE))
    script = """
import sys
from workflow_scripts.workflow import check
try: check.main(check.Check(config=sys.argv[1]))
except check.UserError as error: print(error)
print("torch" in sys.modules)
"""
    command = [sys.executable, "-c", script, str(tmp_path / "mine.yaml")]
    *errors, torch = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert torch == "False"
    keys = ["dataset.table.file", "pairs.nouns", "generate.generators: mine"]
    where = f"{tmp_path}/mine.yaml: "
    assert [error.removeprefix("error: ").split(": ")[1] for error in errors] == [
        key.split(": ")[0] for key in keys
    ]
    assert all(error.removeprefix("error: ").startswith(where) for error in errors)
    monkeypatch.delenv(UNDER_RUN, raising=False)
    settings = SimpleNamespace(deployment_method=set(), targets=set())
    workflow = SimpleNamespace(local_exec=True, deployment_settings=settings, dag_settings=settings)
    with pytest.raises(WorkflowError, match="c: pairs.nouns: .*brids.*\nc: judge.model: unknown"):
        values = {"pairs": {"nouns": "brids"}, "judge": {"model": "RN51"}}
        check_jobs(workflow, load_config({"results": f"{tmp_path}/plain", **values}), "c")


def test_the_default_run_has_no_fault_and_every_typo_is_listed() -> None:
    findings = check_config(load_config(yaml.safe_load((ROOT / "config.yaml").read_text())))
    assert (findings.errors, findings.downloads) == ([], [])
    with pytest.raises(UserError) as error:
        load_config({"sed": 1, "judge": {"epochs": -1}, "split": {"test_seen": "many"}}, "my.yaml")
    lines = str(error.value).split("\nerror: ")
    assert [line.split(": ")[:2] for line in lines] == [
        ["my.yaml", "split.test_seen"],
        ["my.yaml", "judge.epochs"],
        ["my.yaml", "sed"],
    ]


PREPROCESS = {"mean": [0.5] * 3, "std": [0.5] * 3, "resize_mode": "squash"}


@pytest.mark.parametrize(
    ("judge", "parts"),
    [
        (
            {"model": "birds"},
            [
                "judge.trainable: 'visual.layer4.*' matches no parameter; there are",
                "visual.trunk.*",
            ],
        ),
        ({"model": "sketch"}, ["judge.trainable: 'visual.layer4.*' matches no parameter"]),
        (
            {"model": "sketch_text", "trainable": ["text.*", "txet.*"]},
            ["judge.trainable: 'txet.*' matches no"],
        ),
        (
            {"model": "ViT-B-32", "pretrained": "README.md", "preprocess": PREPROCESS, "epochs": 0},
            [
                "judge.quick_gelu: the activation of README.md is unknown; set quick_gelu: true "
                "for weights tuned from Op"
            ],
        ),
        (
            {"model": "ViT-B-32", "pretrained": "README.md", "epochs": 0},
            ["preprocess.mean", "quick_gelu: true|false"],
        ),
    ],
)
def test_what_would_stop_a_training_is_found_before(
    judge: dict[str, Any], parts: list[str], tmp_path: Path
) -> None:
    errors = check_config(
        load_config({"results": str(tmp_path / "results"), "judge": judge})
    ).errors
    assert len(errors) == 1 and all(part in errors[0] for part in parts), errors


@pytest.mark.parametrize(
    "judge",
    [
        {"model": "birds", "trainable": ["*"]},
        {"model": "birds", "trainable": ["visual.head.*", "logit_scale"]},
        {
            "model": "birds",
            "tower": {"model": "x", "weights": "README.md"},
            "trainable": ["visual.trunk.*"],
        },
        {
            "model": "ViT-B-32-quickgelu",
            "pretrained": "README.md",
            "preprocess": PREPROCESS,
            "epochs": 0,
        },
        {
            "model": "ViT-B-32",
            "pretrained": "README.md",
            "preprocess": PREPROCESS,
            "epochs": 0,
            "quick_gelu": False,
        },
        {
            "model": "RN50-quickgelu",
            "pretrained": "README.md",
            "preprocess": PREPROCESS,
        },  # the defaults are for it
    ],
)
def test_what_trains_is_no_fault(judge: dict[str, Any], tmp_path: Path) -> None:
    assert (
        check_config(load_config({"results": str(tmp_path / "results"), "judge": judge})).errors
        == []
    )


@pytest.mark.parametrize(
    "name",
    ["os", "../../evil", "compclip.core.identity.code", "folder.os", "_private", "", "evil:main"],
)
def test_a_config_names_no_other_module(name: str) -> None:
    """A user's own source or generator is a file in its folder; nothing else is imported."""
    generator = {"generate": {"generators": [{"name": "mine", "kind": name}]}}
    for values in (generator, {"dataset": {"source": name}}):
        with pytest.raises(UserError):
            load_config(values)


def test_a_run_with_targets_checks_and_only_warns(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """By `make run`, with its command line, and by a plain Snakemake: each fault is one warning."""
    values = {
        "results": f"{tmp_path}/bad",
        "dataset": {"source": "table", "table": {"file": str(tmp_path / "absent.csv")}},
        "pairs": {"nouns": "brids"},
        **SMALL_JUDGE,
    }
    (tmp_path / "bad.yaml").write_text(yaml.safe_dump(values))
    target = f"{tmp_path}/bad/table/captions.parquet"
    command = [
        sys.executable,
        "-m",
        "workflow_scripts.workflow.run",
        "--config",
        str(tmp_path / "bad.yaml"),
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    # In a folder of its own, since a run of another test may lock the checkout.
    done = subprocess.run(
        [*command, "--", target, "--dry-run"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    warned = [line for line in done.stderr.splitlines() if line.startswith("warning: ")]
    assert done.returncode == 0 and len(warned) == 2, done.stderr
    assert (
        "dataset.table.file" in warned[0]
        and "absent.csv: no such file" in warned[0]
        and "brids" in warned[1]
    )

    settings = SimpleNamespace(deployment_method=set(), targets={target})
    workflow = SimpleNamespace(local_exec=True, deployment_settings=settings, dag_settings=settings)
    check_jobs(workflow, load_config(values), "module mine")
    assert [message.split(": ")[1:3] for message in caplog.messages] == [
        ["module mine", "dataset.table.file"],
        ["module mine", "pairs.nouns"],
    ]


def workflow_of(
    dryrun: bool = False, conda: bool = False, hook: Callable[[str], None] = print
) -> SimpleNamespace:
    """A plain Snakemake's workflow, as far as checks know it; a hook of the Snakefile that imports
    this one.
    """
    return SimpleNamespace(
        _onstart=hook,
        dag=SimpleNamespace(jobs=[]),
        dag_settings=SimpleNamespace(targets=set()),
        deployment_settings=SimpleNamespace(deployment_method={"conda"} if conda else set()),
        is_main_process=True,
        local_exec=True,
        output_settings=SimpleNamespace(dryrun=dryrun),
    )


@pytest.fixture
def plain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A faulty config, for a plain Snakemake."""
    monkeypatch.delenv(UNDER_RUN, raising=False)
    return {"results": f"{tmp_path}/bad", "pairs": {"nouns": "brids"}, **SMALL_JUDGE}


@pytest.mark.parametrize("case", ["dryrun", "conda"])
def test_a_config_is_checked_before_environments_are_made(
    plain: dict[str, Any], caplog: pytest.LogCaptureFixture, case: str
) -> None:
    """Which a dry run does not do."""
    check_before_jobs(workflow_of(**{case: True}), load_config(plain), "module mine")
    (message,) = caplog.messages
    assert message.startswith("warning: module mine: pairs.nouns: ")


def test_a_faulty_config_stops_a_run_before_its_first_job(plain: dict[str, Any]) -> None:
    workflow = workflow_of()
    check_before_jobs(workflow, load_config(plain), "config")
    with pytest.raises(WorkflowError, match="pairs.nouns"):
        workflow._onstart("log")


def test_the_check_keeps_the_hook_of_an_importing_snakefile(plain: dict[str, Any]) -> None:
    called: list[str] = []
    workflow = workflow_of(hook=called.append)
    judge = SMALL_JUDGE["judge"] | {"trainable": ["*"]}
    sound = plain | {"pairs": {"nouns": "birds"}, "judge": judge}
    check_before_jobs(workflow, load_config(sound), "config")
    workflow._onstart("log")
    assert called == ["log"]


def test_an_environment_without_the_steps_packages_is_one_line(
    plain: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check, "find_spec", lambda name: None)
    with pytest.raises(WorkflowError, match="^no packages for steps .* --use-conda"):
        check_jobs(workflow_of(), load_config(plain), "config")
