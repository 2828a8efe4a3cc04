"""What an import costs, by the modules that it loads."""

import subprocess
import sys
from pathlib import Path

import pytest

from workflow_scripts.clip.config import ModelConfig
from workflow_scripts.core.code import ROOT

SLOW = {"open_clip", "torchvision", "timm", "transformers", "torch._dynamo", "torch._inductor", "scipy", "matplotlib"}


def loaded(program: str) -> set[str]:
    """Return the names of the modules after a program in a new process."""
    program += "\nimport sys\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_a_sketch_judge_encodes_without_open_clip(tmp_path: Path) -> None:
    from workflow_scripts.clip.model import build, save_judge

    save_judge(build(ModelConfig(model="sketch"), ["a red bird"] * 2, 0), "sketch", None, tmp_path)
    program = f"""
import numpy as np
from workflow_scripts.clip.model import load_judge
judge = load_judge({str(tmp_path)!r}, 1, "cpu")
judge.encode_texts(["a red bird"], 2)
judge.encode_pixels(judge.preprocess._fit(np.zeros((1, 64, 64, 3), np.uint8)), 2)
"""
    assert not SLOW & loaded(program)


@pytest.mark.parametrize("module", ["split.accept_split", "generate.generate_images", "score.score_oracle"])
def test_a_step_without_torch_starts_with_little_more_than_pandas(module: str) -> None:
    assert not (SLOW | {"torch", "pandera", "numba", "spacy"}) & loaded(f"import workflow_scripts.{module}")


@pytest.mark.parametrize("module", ["clip.embed", "clip.config", "judge.steps"])
def test_what_needs_no_torch_does_not_import_it(module: str) -> None:
    assert "torch" not in loaded(f"import workflow_scripts.{module}")
