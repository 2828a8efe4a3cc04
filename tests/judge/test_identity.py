"""A training and an embedding are repeated only if the code that decides them changes."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from compclip.clip.embed import encoding_code
from compclip.core.identity import code
from compclip.judge import train_judge, training
from compclip.judge.config import Training
from tests.core.test_code import forget
from tests.judge.conftest import Train, squares_settings, squares_training_data


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Let identities be those of a copy of the code, and return its folder."""
    root = tmp_path_factory.mktemp("project")
    shutil.copytree(
        code.ROOT / code.PACKAGE, root / code.PACKAGE, ignore=shutil.ignore_patterns("__pycache__")
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(code, "ROOT", root)
        yield root / code.PACKAGE
    forget()


def identities() -> tuple[str, str]:
    forget()
    return train_judge.training_code(), encoding_code()


@pytest.mark.parametrize(
    ("file", "old", "new", "retrains", "encodes_again"),
    [
        ("judge/training.py", "logits.T, target)) / 2", "logits.T, target)) / 3", True, False),
        ("core/seeds.py", "digest_size=8", "digest_size=7", True, False),
        ("clip/networks.py", "std=0.5", "std=0.4", True, True),
        ("judge/training.py", "logits = scale", "# A comment.\n    logits = scale", False, False),
        (
            "score/score_images.py",
            "def score_images(",
            "X = 1\n\n\ndef score_images(",
            False,
            False,
        ),
        ("split/wording.py", "\n    return ", "\n    repr(0)\n    return ", False, False),
    ],
)
def test_only_what_decides_a_result_repeats_it(
    project: Path, file: str, old: str, new: str, retrains: bool, encodes_again: bool
) -> None:
    before, text = identities(), (project / file).read_text()
    assert old in text
    (project / file).write_text(text.replace(old, new))
    try:
        after = identities()
    finally:
        (project / file).write_text(text)
    assert (after[0] != before[0], after[1] != before[1]) == (retrains, encodes_again)


def test_a_finished_training_is_not_repeated(
    train: Train, squares: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A finished judge is made again from the checkpoint, without reading an image."""

    def key(processes: int = 1, **settings: object) -> str:
        config = Training.model_validate(squares_settings(squares, **settings))
        training_data = squares_training_data(squares, config)
        return train_judge.training_key(
            training_data, config, 0, 1, training.torch.device("cpu"), processes
        )

    assert key() == key(device="cpu") == key(gpus=2)
    assert len({key(), key(lr=0.02), key(train_on="half"), key(processes=2), key(crop=None)}) == 5
    first = train("first", captions=2)
    monkeypatch.setattr(training, "clip_loss", None)
    monkeypatch.setattr("compclip.clip.pixels.Preprocess.read", None)
    again = train("again", captions=2)
    for file in first.iterdir():
        assert (again / file.name).read_bytes() == file.read_bytes(), file.name
