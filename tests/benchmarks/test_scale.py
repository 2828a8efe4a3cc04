"""What the scale test measures with: its captions, and the figures of a run."""

import zipfile
from pathlib import Path

import pytest

from benchmarks import scale
from compclip.core.errors import UserError
from tests.project import Project
from workflow_scripts.workflow.config import load_config


def test_captions_are_distinct_as_many_as_asked_and_joined_by_bird(tmp_path: Path) -> None:
    captions = scale.make_captions(333, None)
    assert len(captions) == captions["caption"].nunique() == 333
    assert captions.equals(scale.make_captions(333, None))
    archive = tmp_path / "captions.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for bird in range(2):
            texts = [f"bird {bird} has {color} wings" for color in ("red", "blue", "tan")]
            file.writestr(f"text/00{bird + 1}.Kind/Kind_{bird}.txt", "\n".join(texts))
    assert next(scale.joined_captions(archive)) == [
        "bird 0 has red wings. bird 0 has blue wings.",
        "bird 0 has blue wings. bird 0 has tan wings.",
        "bird 0 has tan wings. bird 0 has red wings.",
    ]
    with pytest.raises(UserError, match="too few captions"):
        scale.make_captions(4000, archive)


def test_growth_is_the_exponent_between_two_sizes(tmp_path: Path, first_run: Project) -> None:
    for part, size in (("images", 1000), ("captions", 30)):
        load_config(scale.config_of(part, size, None, tmp_path))
    rows = [row | {"images": 10} for row in scale.measured_rules(first_run.root / "results")]
    slower = [row | {"images": 100, "CPU seconds": 100 * max(row["CPU seconds"], 1)} for row in rows]
    table = scale.growth_table([*rows, *slower], "images")
    assert len(table.splitlines()) == 2 + 2 * len(rows)
    line = next(line for line in table.splitlines() if "train_judge" in line and " 100 " in line)
    cells = [cell.strip() for cell in line.split("|")]
    assert cells[-3:-1] == ["2", "0"]
