"""A composition's results depend on no other composition of the config."""

from pathlib import Path

import pytest

from tests.project import Project
from workflow_scripts.workflow.graph import jobs

CONFIG = """
results: {folder}
cache: {cache}
compositions: [{names}]
dataset: {{source: sketch, sketch: {{images: 120, species: 12}}}}
pairs: {{nouns: birds, selection: {{min_count: 1}}}}
judge: {{model: sketch, pretrained: null, trainable: ["*"], epochs: 1}}
"""


def test_the_commands_of_a_composition_are_the_same_beside_another(tmp_path: Path) -> None:
    commands = []
    for names in ("color", "color, shape"):
        config = tmp_path / f"{names}.yaml"
        config.write_text(CONFIG.format(folder=tmp_path / "r", cache=tmp_path / "c", names=names))
        made = [job for job in jobs(config) if job.stage in ("dataset", "pairs", "split", "judge", "generate", "score")]
        commands.append({(job.rule, job.command) for job in made if "/shape/" not in job.command})
    assert commands[0] == commands[1] and len(commands[0]) > 10


def test_shards_of_captions_are_jobs(tmp_path: Path) -> None:
    """One shard is no further job."""
    made = []
    for shards in (1, 3):
        config = tmp_path / "config.yaml"
        text = CONFIG.format(folder=tmp_path / "r", cache=tmp_path / "c", names="color")
        config.write_text(text.replace("nouns: birds", f"nouns: birds, shards: {shards}"))
        made.append({path: job for job in jobs(config) if job.stage == "pairs" for path in job.outputs})
    folders = [f"{tmp_path}/r/sketch/pairs/{shard}-of-3.parquet" for shard in (1, 2, 3)]
    assert made[1].keys() - made[0].keys() == {*folders} and made[0].keys() < made[1].keys()
    joined = made[1][f"{tmp_path}/r/sketch/pairs.parquet"]
    assert [path for path in joined.inputs if path in folders] == folders


@pytest.mark.slow
def test_splits_are_the_same_beside_another_composition(tmp_path: Path) -> None:
    """With a shared lexicon, and with one of the user's own, then from shards of the captions."""
    project = Project(tmp_path).copy()
    (tmp_path / "lexicons" / "adjectives" / "look.yaml").write_text("little: [tiny, small]\nbig: [large]\nshort:\n")
    made = []
    for folder, names in (("one", "color"), ("two", "color, shape"), ("three", "look, color")):
        config = CONFIG.format(folder=folder, cache=".cache", names=names)
        config = config.replace("nouns: birds", "nouns: birds, shards: 2") if "look" in names else config
        (tmp_path / f"{folder}.yaml").write_text(config)
        ranked = [f"{folder}/sketch/{name}/ranking.parquet" for name in names.split(", ")]
        targets = [*ranked, f"{folder}/sketch/color/prompts.parquet"]
        project.snakemake(f"{folder}.yaml", "--", *targets)
        place = tmp_path / folder / "sketch" / "color"
        made.append({file.name: file.read_bytes() for file in place.iterdir() if file.is_file()})
    assert made[0] == made[1] == made[2] and "splits.csv" in made[0]
    assert len(list(tmp_path.glob("three/sketch/**/pairs/*-of-2.parquet"))) == 4
