"""What the tests of the evaluations share: a judge that is there at once, and one that is small and real."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.score.world import FakeJudge
from workflow_scripts.clip.embed import Embedder
from workflow_scripts.core.cache import Cache
from workflow_scripts.core.errors import UserError

TINY = {
    "embed_dim": 16,
    "vision_cfg": {"tower": "conv", "image_size": 32, "widths": [8, 16], "depths": [0, 1], "features": 16},
    "text_cfg": {"tower": "words", "context_length": 8, "width": 16, "hidden": 16, "window": 3},
}
WORDS = "red blue green black wing bill tail bird with a and"


def real_judge(folder: Path, seed: int = 0) -> Path:
    """The folder of an untrained judge of eight places, which knows WORDS and reads real images."""
    from workflow_scripts.clip.model import build, save_judge
    from workflow_scripts.judge.config import JudgeConfig

    folder.mkdir(parents=True)
    (folder / "tiny.json").write_text(json.dumps(TINY))
    built = build(JudgeConfig(model=str(folder / "tiny.json")), [WORDS, WORDS], seed)
    save_judge(built, "tiny", None, folder)
    return folder


def picture(path: Path, color: tuple[int, int, int]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.full((40, 40, 3), color, np.uint8)
    pixels[::3] = 255 - pixels[::3]
    Image.fromarray(pixels).save(path)


def drawn(path: Path, text: str) -> None:
    """An image file as ``FakeJudge`` reads it: the text that it shows."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def run(
    module: ModuleType, tmp_path: Path, *arguments: object, monkeypatch: pytest.MonkeyPatch | None = None
) -> tuple[dict[str, Any], FakeJudge]:
    """The result of a command, and the judge that it used: with ``monkeypatch`` a fake one, else --judge's."""
    judge = FakeJudge()

    @contextmanager
    def fake(_: argparse.Namespace) -> Iterator[Embedder]:
        with Cache(tmp_path / "fake.sqlite") as cache:
            yield Embedder(judge, cache, 4, "made")

    output = tmp_path / "result.json"
    words = [*map(str, arguments), "--output", str(output), "--cache", str(tmp_path / "cache"), "--bootstrap", "100"]
    if monkeypatch is not None:
        monkeypatch.setattr(module, "open_embedder", fake)
        words += ["--judge", "none"]
    module.main(module.arguments().parse_args([*words, "--batch", "4", "--threads", "1", "--device", "cpu"]))
    return json.loads(output.read_text()), judge


def refused(call: Callable[[], object]) -> str:
    """The one line of the UserError that ``call`` raises."""
    with pytest.raises(UserError) as caught:
        call()
    message = str(caught.value)
    assert "\n" not in message and len(message) < 500
    return message
