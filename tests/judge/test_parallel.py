"""Several processes train as one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from compclip.clip.device import find_device
from compclip.clip.sources import find_model
from compclip.core.errors import UserError
from compclip.core.identity.code import ROOT
from compclip.judge.parallel import Group, own_device, synchronise_norms
from tests.judge import two_processes

from .conftest import TOGETHER, Model, Train, assert_alike, untrained

RULE = """
from pathlib import Path
rule train_judge:
    input: **{files}, splits=["{squares}/splits.parquet"], pretraining=[]
    output: judge=directory("judge")
    log: "judge.log"
    params: processes=2, settings={settings}, results="{squares}", judge_half=0, seed=0, threads=1,
            cache=Path("cache")
    script: "{script}"
"""


@pytest.mark.slow
def test_two_processes_train_as_one(
    train: Train, model: Model, squares: Path, tmp_path: Path
) -> None:
    """As a rule on the CPU, on a model without batch norms."""
    settings = {"model": model("vit"), **TOGETHER}
    one = train("one", **settings)
    files = {name: f"{squares}/{name}.parquet" for name in ("captions", "images")}
    script = ROOT / "workflow_scripts" / "judge" / "train_judge.py"
    rule = RULE.format(
        files=files, settings={**settings, "gpus": 2}, squares=squares, script=script
    )
    (tmp_path / "Snakefile").write_text(rule)
    done = subprocess.run(
        [sys.executable, "-m", "snakemake", "--cores", "2"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert_alike(untrained(squares, tmp_path / "start", **settings), one, tmp_path / "judge")
    assert (tmp_path / "judge.log").read_text().count("epoch 1 of 2") == 1, "only the first writes"


def test_gradients_of_two_processes_are_those_of_one(tmp_path: Path) -> None:
    """Also their size, to which Adam is blind, so that no training shows it."""
    rows, weight = (
        torch.randn(8, 3, generator=torch.Generator().manual_seed(0)),
        nn.Parameter(torch.eye(3)),
    )
    (rows @ weight).square().cumsum(0).mean().backward()
    torch.multiprocessing.spawn(two_processes.gradient_of_a_half, (str(tmp_path), rows), nprocs=2)
    for rank in (0, 1):
        torch.testing.assert_close(torch.load(tmp_path / f"{rank}.pt"), weight.grad)
    model = nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4))
    with pytest.raises(UserError, match="^its setting: .* only on GPUs"):
        synchronise_norms(model, Group(0, 2), torch.device("cpu"), "its setting")
    synchronise_norms(model, Group(0, 1), torch.device("cpu"), "")
    synchronise_norms(model.eval(), Group(0, 2), torch.device("cpu"), "")
    names = list(model.state_dict())
    synchronise_norms(model.train(), Group(0, 2), torch.device("cuda"), "")
    assert isinstance(model[1], nn.SyncBatchNorm) and list(model.state_dict()) == names


def test_more_gpus_than_there_are(train: Train, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match=r"judge\.gpus: 2, but torch sees no GPU$"):
        own_device(torch.device("cpu"), 2, "auto", "judge.gpus")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with pytest.raises(UserError, match=r"^--nproc-per-node: 4, but torch sees 2 GPUs$"):
        own_device(torch.device("cuda"), 4, "auto", "--nproc-per-node")
    assert own_device(torch.device("cpu"), 2, "cpu", "judge.gpus") == torch.device("cpu")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(
        UserError, match=r"judge\.device: cuda, but torch sees no GPU; use auto or cpu"
    ):
        train("judge", device="cuda")
    assert find_device("auto") == torch.device("cpu")


def test_a_gpu_of_any_number_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch is asked: a container may have ``/dev/nvidia3`` alone."""
    monkeypatch.setattr(Path, "exists", lambda path: str(path) == "/dev/nvidia3")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert [find_device(name).type for name in ("auto", "cuda", "cpu")] == ["cuda", "cuda", "cpu"]


def test_auto_takes_the_cpu_for_a_small_model(
    monkeypatch: pytest.MonkeyPatch, lines: list[str]
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    small = find_model("sketch").model_cfg
    assert find_device("auto", model_cfg=small).type == "cpu"
    assert lines == ["judge.device: auto takes the CPU, as fast as a GPU for a model this small"]
    assert find_device("cuda", model_cfg=small).type == "cuda"
    for model in ("birds", "RN101"):
        assert find_device("auto", model_cfg=find_model(model).model_cfg).type == "cuda", model
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert find_device("auto", model_cfg=small).type == "cpu"
    assert len(lines) == 1, "without a GPU there is nothing to say"
