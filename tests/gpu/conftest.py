"""The squares of the judge's tests, for trainings on a GPU."""

import pytest
import torch

from tests.clip.conftest import model  # noqa: F401
from tests.judge.conftest import squares, train  # noqa: F401


@pytest.fixture(autouse=True)
def gpu() -> None:
    if not torch.cuda.is_available():
        pytest.skip("no GPU, or not started by `make test-gpu`")
