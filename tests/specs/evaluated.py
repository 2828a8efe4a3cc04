"""Judges for the tests of evaluations: a fake one, and one that is small and real."""

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from compclip.clip.embed import Embedder
from compclip.core.errors import UserError
from compclip.core.identity.vector_cache import VectorCache
from tests.score.world import FakeJudge

TINY = {
    "embed_dim": 16,
    "vision_cfg": {
        "tower": "conv",
        "image_size": 32,
        "widths": [8, 16],
        "depths": [0, 1],
        "features": 16,
    },
    "text_cfg": {"tower": "words", "context_length": 8, "width": 16, "hidden": 16, "window": 3},
}
WORDS = "red blue green black wing bill tail bird with a and"


def real_judge(folder: Path, seed: int = 0) -> Path:
    """Return the folder of an untrained judge that reads real images and eight tokens, with the
    vocabulary WORDS.
    """
    from compclip.clip.model import build, save_judge
    from compclip.judge.config import JudgeConfig

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
    """Write an image file for ``FakeJudge``: the text that it shows."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def opener(judge: FakeJudge, folder: Path) -> Callable[..., AbstractContextManager[Embedder]]:
    """Return what opens ``judge``, with a cache in ``folder``, whatever judge is asked for."""

    @contextmanager
    def opened(*_: object) -> Iterator[Embedder]:
        with VectorCache(folder / "fake.sqlite") as cache:
            yield Embedder(judge, cache, 4)

    return opened


def refused(call: Callable[[], object]) -> str:
    """Return the one-line message of the UserError that ``call`` raises."""
    with pytest.raises(UserError) as caught:
        call()
    message = str(caught.value)
    assert "\n" not in message and len(message) < 500
    return message
