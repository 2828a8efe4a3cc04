"""What an import costs, by the modules that it loads."""

import subprocess
import sys
from pathlib import Path

import pytest

from compclip.clip.config import ModelConfig
from compclip.core.identity.code import ROOT
from compclip.core.settings import plugins

LEARNING = {"torch", "open_clip", "spacy", "scipy"}
SLOW = {
    "open_clip",
    "torchvision",
    "timm",
    "transformers",
    "torch._dynamo",
    "torch._inductor",
    "scipy",
    "matplotlib",
}


def loaded(program: str) -> set[str]:
    """Return the names of the modules after a program in a new process."""
    program += "\nimport sys\nprint(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_a_sketch_judge_encodes_without_open_clip(tmp_path: Path) -> None:
    from compclip.clip.model import build, save_judge

    save_judge(build(ModelConfig(model="sketch"), ["a red bird"] * 2, 0), "sketch", None, tmp_path)
    program = f"""
import numpy as np
from compclip.clip.model import load_judge
judge = load_judge({str(tmp_path)!r}, 1, "cpu")
judge.encode_texts(["a red bird"], 2)
judge._images(judge.preprocess._fit(np.zeros((1, 64, 64, 3), np.uint8)))
"""
    assert not SLOW & loaded(program)


PLUGINS = [
    " ".join(f"{package}.{name}" for name in plugins.available(f"compclip.{package}"))
    for package in ("dataset.sources", "generate.generators")
]
LITTLE = SLOW | {"torch", "pandera", "numba", "spacy"}  # little more than pandas is left


@pytest.mark.parametrize(
    ("modules", "unwanted"),
    [
        *(
            (name, LITTLE)
            for name in ("split.export", "generate.generate_images", "score.score_oracle")
        ),
        *((names, {"torch", "open_clip", "diffusers", "transformers"}) for names in PLUGINS),
        *((name, {"torch"}) for name in ("clip.embed", "clip.config", "judge.config")),
        (
            "workflow_scripts.report.make_table workflow_scripts.report.join_tables",
            {*LEARNING, "matplotlib", "PIL"},
        ),
        ("workflow_scripts.report.make_page", {*LEARNING, "matplotlib"}),
        ("workflow_scripts.report.draw_scores", LEARNING),
    ],
)
def test_steps_import_only_what_they_need(modules: str, unwanted: set[str]) -> None:
    names = [
        name if name.startswith("workflow_scripts.") else f"compclip.{name}"
        for name in modules.split()
    ]
    assert not unwanted & loaded(f"import {', '.join(names)}")
