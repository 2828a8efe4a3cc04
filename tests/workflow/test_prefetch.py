"""All that a run would download is fetched before, from servers on loopback, and found again without them."""

import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.loopback import Handler, serving
from workflow_scripts.core.code import ROOT
from workflow_scripts.workflow.config import load_config
from workflow_scripts.workflow.prefetch import needs

COMMIT = "0123456789" * 4
PIPELINE = {"_class_name": "StableDiffusionPipeline", "unet": ["diffusers", "UNet2DConditionModel"]}
CONFIG = """
cache: {cache}
dataset:
  source: cub
  cub: {{root: "{site}", images: birds.tgz, captions: [gone.tgz, captions.zip]}}
judge: {{model: RN50, pretrained: openai, epochs: 1, trainable: [logit_scale]}}
generate:
  generators:
    - photographs
    - {{name: sd, kind: diffusers, model: somebody/sd}}
score: {{fid: {{weights: "{site}/inception.pth"}}}}
compun:
  models:
    - {{transformers: somebody/blip}}
"""


@dataclass
class Site:
    """A server of files, and of models as huggingface.co is: ``models`` holds the files of each by their names."""

    address: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    models: dict[str, dict[str, bytes]] = field(default_factory=dict)


@pytest.fixture
def site() -> Iterator[Site]:
    state = Site()

    class Hub(Handler):
        def do_GET(self) -> None:
            path = unquote(urlsplit(self.path).path)
            about = re.fullmatch(r"/api/models/([\w-]+/[\w.-]+)(?:/(?:revision|tree)/\w+)?", path)
            file = re.fullmatch(r"/([\w-]+/[\w.-]+)/resolve/\w+/(.+)", path)
            if about and about[1] in state.models:
                held = state.models[about[1]]
                answer: object = [
                    {"type": "file", "path": name, "size": len(content), "oid": COMMIT}
                    for name, content in held.items()
                ]
                if "/tree/" not in path:
                    answer = {"id": about[1], "sha": COMMIT, "siblings": [{"rfilename": name} for name in held]}
                self.send(json.dumps(answer).encode(), "application/json")
            elif file and file[2] in state.models.get(file[1], {}):
                self.send(state.models[file[1]][file[2]])
            elif path in state.files:
                self.send(state.files[path])
            else:
                known = (file or about or [None, None])[1] in state.models
                missing = ("EntryNotFound" if known else "RepoNotFound") if file or about else None
                self.answer(404, headers={"X-Error-Code": missing})

        do_HEAD = do_GET

        def send(self, content: bytes, kind: str = "application/octet-stream") -> None:
            tag = f'"{hashlib.sha256(content).hexdigest()}"'
            self.answer(200, content, {"Content-Type": kind, "ETag": tag, "X-Repo-Commit": COMMIT})

    state.files = {"/birds.tgz": b"photographs", "/captions.zip": b"captions", "/inception.pth": b"weights"}
    state.models = {
        "timm/resnet50_clip.openai": {"open_clip_model.safetensors": b"weights"},
        "somebody/blip": {"config.json": b"{}", "model.safetensors": b"weights", "README.md": b""},
        "somebody/sd": {
            "model_index.json": json.dumps(PIPELINE).encode(),
            "unet/config.json": b"{}",
            "unet/diffusion_pytorch_model.safetensors": b"weights",
        },
    }
    with serving(Hub) as state.address:
        yield state


def prefetch(tmp_path: Path, site: Site, **more: str) -> subprocess.CompletedProcess[str]:
    config = tmp_path / "mine.yaml"
    config.write_text(CONFIG.format(cache=tmp_path / "cache", site=site.address))
    own = {
        "HF_ENDPOINT": site.address,
        "HF_HOME": str(tmp_path / "hub"),
        "NO_PROXY": "127.0.0.1",
        "HF_HUB_OFFLINE": "0",
    }
    return subprocess.run(
        [sys.executable, "-m", "workflow_scripts.workflow.prefetch", "--config", str(config)],
        cwd=ROOT, env={**os.environ, **own, **more}, capture_output=True, text=True,
    )  # fmt: skip


@pytest.mark.slow
def test_everything_is_fetched_and_found_again(tmp_path: Path, site: Site) -> None:
    del site.models["somebody/blip"]
    first = prefetch(tmp_path, site)
    assert first.returncode == 1
    lines = first.stderr.splitlines()
    assert lines[-1] == f"error: {tmp_path}/mine.yaml: 1 missing: compun.models: somebody/blip"
    assert any(
        line.startswith("compun.models: somebody/blip: somebody/blip: could not be downloaded from the Hub (")
        for line in lines
    )

    site.models["somebody/blip"] = {"config.json": b"{}", "model.safetensors": b"weights"}
    second = prefetch(tmp_path, site)
    assert second.returncode == 0, second.stderr
    kept = {path.name for path in (tmp_path / "cache").rglob("*") if path.is_file()}
    assert {"birds.tgz", "captions.zip", "inception.pth"} <= kept
    said = [line for line in second.stderr.splitlines() if not line.startswith("pretrained:")]
    assert said[-1].endswith("mine.yaml: complete (7)")
    places = dict(line.split(": ", 1) for line in said if line.startswith(("judge.", "score.")))
    assert Path(places["judge.pretrained"]).read_bytes() == b"weights"
    assert Path(places["score.fid.weights"]).read_bytes() == b"weights"

    # Where there is no internet.
    site.files.clear()
    site.models.clear()
    again = prefetch(tmp_path, site, HF_HUB_OFFLINE="1")
    assert again.returncode == 0, again.stderr
    assert again.stderr.splitlines()[-1] == said[-1]


def test_captions_alone_need_no_judge_and_what_is_stored_is_said() -> None:
    values = {"judge": {"model": "RN50", "pretrained": "openai"}, "score": {"fid": {}}}
    alone = {"source": "table", "table": {"file": "s3://bucket/captions.csv"}}
    for without in ({"dataset": alone}, {"generate": {"generators": []}}):
        assert [key for key, _ in needs(load_config({**values, **without}))] == ["pairs.model"]


def test_what_lies_on_object_storage_is_said(caplog: pytest.LogCaptureFixture) -> None:
    table = {"source": "table", "table": {"file": "s3://bucket/captions.csv", "images": "photographs"}}
    made = {"generators": [{"name": "mine", "kind": "folder", "path": "s3://bucket/made"}]}
    with caplog.at_level("WARNING"):
        list(needs(load_config({"dataset": table, "generate": made})))
    assert [message.split(" is read")[0] for message in caplog.messages] == [
        "dataset.table: s3://bucket/captions.csv",
        "generate.generators: mine: s3://bucket/made",
    ]
