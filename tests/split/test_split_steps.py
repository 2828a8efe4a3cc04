"""The stage's steps by their command lines, from tables to tables."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
import yaml

from tests.split.split_worlds import COLORS, NOUNS, world
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import empty_table, read_json, write_table
from workflow_scripts.core.tables import CAPTIONS, IMAGES, PAIRS, RANKING
from workflow_scripts.split import audit, export, make_prompts, make_splits, sample_heldout, swap_adjectives


def lexicon(forms: dict[str, str]) -> str:
    words: dict[str, list[str]] = {word: [] for word in forms.values()}
    for form, word in forms.items():
        if form != word:
            words[word].append(form)
    return yaml.safe_dump(words)


def inputs(folder: Path) -> Path:
    data = world(11, images=80, captions=3)
    for name, schema in (("captions", CAPTIONS), ("images", IMAGES), ("pairs", PAIRS), ("ranking", RANKING)):
        write_table(getattr(data, name), folder / f"{name}.parquet", schema)
    (folder / "color.yaml").write_text(lexicon(COLORS))
    (folder / "nouns.yaml").write_text(lexicon(NOUNS))
    return folder


def run(step, folder: Path, out: dict[str, Path], *more: str, names: str) -> None:
    paths = {"heldout": "heldout.json", "adjectives": "color.yaml", "nouns": "nouns.yaml"}
    where = [f"--{n}={folder / paths.get(n, n + '.parquet')}" for n in names.split()]
    step.main(step.arguments().parse_args([*where, *(f"--{k}={v}" for k, v in out.items()), *more]))


def all_steps(folder: Path) -> None:
    place = "--dataset=d", "--composition=color"
    seeded = *place, "--seed=3"
    run(sample_heldout, folder, {"output": folder / "heldout.json"}, *seeded, names="ranking")
    out = {"output": folder / "splits.parquet", "csv": folder / "splits.csv", "summary": folder / "splits.json"}
    run(make_splits, folder, out, *seeded, names="captions pairs ranking heldout")
    out = {"output": folder / "swapped.parquet", "summary": folder / "swapped.json"}
    run(swap_adjectives, folder, out, *seeded, names="captions pairs heldout splits adjectives nouns")
    out = {"output": folder / "prompts.parquet", "jsonl": folder / "prompts.jsonl", "summary": folder / "prompts.json"}
    run(make_prompts, folder, out, *seeded, names="captions images pairs ranking heldout splits swapped")
    out = {"output": folder / "audit.json"}
    run(audit, folder, out, *place, names="captions heldout splits swapped adjectives nouns")
    run(export, folder, {"output": folder / "export"}, names="captions images heldout splits swapped")


def digests(folder: Path) -> dict[str, str]:
    files = (p for p in sorted(folder.rglob("*")) if p.is_file())
    return {str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        all_steps(inputs(tmp_path / name))
    one = digests(tmp_path / "one")
    assert one == digests(tmp_path / "two")
    assert {"heldout.json", "splits.csv", "swapped.parquet", "prompts.jsonl", "audit.json", "export/split.pkl"} <= set(
        one
    )
    counts = read_json(tmp_path / "one" / "audit.json")["counts"]
    assert counts["violations"] == 0 and counts["swapped"] > 0


def test_nothing_ranked_is_one_clear_line(tmp_path: Path) -> None:
    folder = inputs(tmp_path)
    write_table(empty_table(RANKING), folder / "ranking.parquet", RANKING)
    with pytest.raises(UserError, match="d/color: 0 ranked pairs"):
        run(
            sample_heldout, folder, {"output": folder / "h.json"}, "--dataset=d", "--composition=color", names="ranking"
        )
    assert not (folder / "h.json").exists()


def test_a_listed_pair_that_is_not_ranked(tmp_path: Path) -> None:
    folder = inputs(tmp_path)
    more = "--dataset=d", "--composition=color", "--pairs", "red_wings"
    with pytest.raises(UserError, match="'red_wings' is not among .* the nearest are red_wing"):
        run(sample_heldout, folder, {"output": folder / "h.json"}, *more, names="ranking")
