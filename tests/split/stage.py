"""Runs the stage's steps in one process, all artifacts in one folder."""

from importlib import import_module
from pathlib import Path
from typing import Any

import yaml

from compclip.core.step import Step, declaration
from compclip.core.tables import CAPTIONS, IMAGES, PAIRS, RANKING
from compclip.io import write_table
from tests.split.split_worlds import COLORS, NOUNS, world

FILES = {
    "adjectives": "color.yaml", "nouns": "nouns.yaml", "heldout": "heldout.json", "csv": "splits.csv",
    "jsonl": "prompts.jsonl", "audit": "audit.json", "accepted": "accepted.json", "folder": "export",
    "unused": "splits.json",
}  # fmt: skip
SUMMARIES = {"divide_images": "division", "make_splits": "splits", "swap_adjectives": "swapped",
             "make_prompts": "prompts"}  # fmt: skip
# Paths that a step takes only where a test gives them.
OPTIONAL = {"compounds", "division", "published", "reports", "log"}


def lexicon(forms: dict[str, str]) -> str:
    words: dict[str, list[str]] = {word: [] for word in forms.values()}
    for form, word in forms.items():
        if form != word:
            words[word].append(form)
    return yaml.safe_dump(words)


def inputs(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    data = world(11, images=80, captions=3)
    for name, schema in (("captions", CAPTIONS), ("images", IMAGES), ("pairs", PAIRS), ("ranking", RANKING)):
        write_table(getattr(data, name), folder / f"{name}.parquet", schema)
    (folder / "color.yaml").write_text(lexicon(COLORS))
    (folder / "nouns.yaml").write_text(lexicon(NOUNS))
    return folder


def run(step: str, folder: Path, /, **given: Any) -> None:
    """Run a step on the artifacts in ``folder``."""
    fields = declaration(f"split.{step}").model_fields
    known: dict[str, Any] = {"dataset": "d", "composition": "color", "seed": 3}
    known["summary"] = folder / f"{SUMMARIES.get(step)}.json"
    for name, field in fields.items():
        is_path = "Path" in str(field.annotation) and (name not in OPTIONAL or field.is_required())
        if is_path and name not in {*known, *Step.model_fields}:
            known[name] = folder / FILES.get(name, f"{name}.parquet")
    known = {name: value for name, value in (known | given).items() if name in fields}
    import_module(f"compclip.split.{step}").main(declaration(f"split.{step}")(**known))


def run_all(folder: Path, **division: Any) -> Path:
    """Run the stage in ``folder``, with a division by divergence if its settings are given."""
    divided = {"division": folder / "division.parquet"} if division else {}
    if division:
        run("divide_images", folder, divergence=division)
    run("sample_heldout", folder, **divided)
    run("make_splits", folder, **divided)
    run("swap_adjectives", folder)
    run("make_prompts", folder)
    run("make_variants", folder)
    run("audit", folder)
    run("accept_split", folder)
    run("export", folder)
    return folder
