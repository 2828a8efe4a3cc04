"""Runs the stage's steps in one process, all artifacts in one folder."""

from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from compclip.core.artifacts.files import write_json
from compclip.core.artifacts.parquet import read_table, write_table
from compclip.core.tables import CAPTIONS, PAIRS
from compclip.pairs.counts import PairCounts
from compclip.text.lexicon import COMMON_COMPOUNDS
from tests.scripts import job
from tests.split.worlds import COLORS, NOUNS, world
from workflow_scripts.inputs import SCHEMAS

TABLES = ("captions", "images", "pairs", "ranking", "splits", "swapped", "prompts")
# The names of summaries that differ from the end of the rule's name.
SUMMARIES = {"divide_images": "division", "swap_adjectives": "swapped"}
DEFAULTS = {
    "divergence": {},
    "draw": {},
    "is_chosen": False,
    "width": 15,
    "listed": (),
    "published": None,
    "test_seen": "auto",
    "swaps": "distinct",
    "prompts": "pairs",
    "draws": 1,
    "per_image": None,
    "train_on": "train",
    "candidates": None,
    "judge_half": 0,
    "on_violation": "error",
    "is_published": False,
    "one_value": False,
    "seed": 3,
    "dataset": "d",
}


def lexicon(forms: dict[str, str]) -> str:
    words: dict[str, list[str]] = {word: [] for word in forms.values()}
    for form, word in forms.items():
        if form != word:
            words[word].append(form)
    return yaml.safe_dump(words)


def write_tables(folder: Path, **tables: pd.DataFrame) -> None:
    for name, table in tables.items():
        write_table(table, folder / f"{name}.parquet", SCHEMAS[name])


def inputs(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    write_tables(folder, **vars(world(11, images=80, captions=3)))
    (folder / "color.yaml").write_text(lexicon(COLORS))
    (folder / "nouns.yaml").write_text(lexicon(NOUNS))
    return folder


# The rule whose shards a step joins, and what it writes.
SHARDED = {
    "make_splits": ("find_contested", {"contested": ".json"}),
    "swap_adjectives": ("offer_swaps", {"offers": ".parquet", "summary": ".json"}),
    "make_variants": ("vary_prompts", {"variants": ".parquet", "summary": ".json"}),
    "audit": ("audit_block", {"audit": ".json"}),
}


def run(rule: str, folder: Path, /, shards: int = 1, **given: Any) -> None:
    """Run the script of a rule on the artifacts in ``folder``; ``given`` has further inputs and
    params.
    """
    made: list[Path] = []
    for shard in range(1, shards + 1 if rule in SHARDED and shards > 1 else 1):
        shard_rule, ends = SHARDED[rule]
        outputs = {
            name: folder / f"{shard_rule}-{shard}-of-{shards}{end}" for name, end in ends.items()
        }
        _run(shard_rule, folder, {"shard": str(shard), "shards": str(shards)}, outputs, given)
        made += outputs.values()
    shards_of = {
        "shards": made,
        "shard_tables": [path for path in made if path.suffix == ".parquet"],
        "shard_counts": [path for path in made if path.suffix == ".json"],
    }
    _run(rule, folder, {}, {}, {**given, **shards_of})


def _run(
    rule: str, folder: Path, shard: dict[str, str], of_shard: dict[str, Path], given: dict[str, Any]
) -> None:
    tables = {name: folder / f"{name}.parquet" for name in (*TABLES, "division", "variants")}
    files = {name: folder / f"{name}.json" for name in ("heldout", "audit", "accepted", "widths")}
    found = folder / "pairs.json"
    if not found.exists():
        counts = PairCounts()
        counts.add(read_table(tables["captions"], CAPTIONS), read_table(tables["pairs"], PAIRS))
        write_json(counts.summary("none"), found)
    inputs = {name: tables[name] for name in TABLES} | files | {"facts": None}
    inputs["excluded"] = folder / "splits.json"
    inputs["forms"] = found if rule in ("make_variants", "vary_prompts") else inputs["excluded"]
    inputs |= {
        "adjectives": folder / "color.yaml",
        "nouns": folder / "nouns.yaml",
        "compounds": COMMON_COMPOUNDS,
    }
    outputs = tables | files | {"csv": folder / "splits.csv", "jsonl": folder / "prompts.jsonl"}
    summary = folder / f"{SUMMARIES.get(rule, rule.rpartition('_')[2])}.json"
    outputs = of_shard or outputs | {"folder": folder / "export", "summary": summary}
    params = DEFAULTS | {name: value for name, value in given.items() if name in DEFAULTS}
    inputs |= {name: value for name, value in given.items() if name not in DEFAULTS}
    import_module(f"workflow_scripts.split.{rule}").main(
        job(inputs, outputs, wildcards={"composition": "color", **shard}, **params)
    )


def run_all(folder: Path, shards: int = 1, **division: Any) -> Path:
    """Run the stage in ``folder``, with a division by divergence if its settings are given."""
    divided = {"division": folder / "division.parquet"} if division else {}
    if division:
        run("divide_images", folder, divergence=division)
    run("sample_heldout", folder, **divided)
    run("make_splits", folder, shards, **divided)
    run("swap_adjectives", folder, shards)
    run("make_prompts", folder)
    run("make_variants", folder, shards)
    run("audit", folder, shards)
    run("accept_split", folder)
    run("export", folder)
    return folder
