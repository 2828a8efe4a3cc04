"""Whatever a user's file contains, a reader returns or raises an error of one line."""

import csv
import io
import json
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as arrow
import pyarrow.parquet as pq
import pytest

from compclip.clip.weights import read_renames
from compclip.compun.load_compounds import read_list
from compclip.compun.prompts import read_texts
from compclip.core.artifacts.heldout import read_heldout
from compclip.core.errors import UserError, one_line
from compclip.core.reading import published_files
from compclip.dataset.archive import contents
from compclip.dataset.load_dataset import check_captions
from compclip.divergence.samples import read_samples
from compclip.generate.generators.folder import check_texts
from compclip.human.answers import collect
from compclip.specs.data import check_examples, read_source
from compclip.specs.score import read_image_texts
from compclip.text.lexicon import load_lexicon
from tests.dataset.conftest import load_table
from workflow_scripts.workflow.config import read_config

VALUES = [
    None,
    True,
    -1,
    10**50,
    1e300,
    "",
    " ",
    "\0",
    "../x",
    "x" * 300,
    "\ud800",
    "é",
    [],
    [[]],
    {},
    {"a": None},
]
ARRAYS = [
    arrow.array([1, 2**63 - 1]),
    arrow.array([float("nan"), float("inf")]),
    arrow.array([1e300, None]),
    arrow.array([b"\xff", b""]),
    arrow.array([[1], None]),
    arrow.array([{"a": 1}, None]),
    arrow.array([None, None]),
    arrow.array([True, False]),
    arrow.array([0, 1], arrow.timestamp("s")),
    arrow.array(["a", "a"]).dictionary_encode(),
    arrow.array(["\0", "../x"]),
    arrow.array([1, 2], arrow.decimal128(12, 2)),
]
TABLES = (".csv", ".tsv", ".jsonl", ".parquet")


def captions(path: Path) -> pd.DataFrame:
    return load_table(path, path.parent).captions


# Good rows and entries.
ANSWER = {"task_id": "t", "annotator": "w", "choice": "yes", "lead_time": 3}
SAMPLE = {"id": 1, "atoms": ["a"], "compounds": [{"name": "b", "atoms": [0], "edges": []}]}
LONG = {"image": "a.png", "text": "b", "conversations": [{"from": "gpt", "value": "x"}]}
CHANGE = {"noun": "n", "original_adj": "o", "new_adj": "m"}
SWAPPED = {"text": "b", "swapped_text": "c", "changes_made": CHANGE}
SPLIT = {"train": ["a"], "test_seen": ["b"], "test_unseen": ["c"], "heldout_pairs": ["red_wing"]}
MADE = {"file_name": "a/0.png", "text": "red"}
# By name: the endings of its files, what it calls, and the fields of a good row or entry.
READERS: dict[str, tuple[tuple[str, ...], Callable[[Path], Any], dict[str, Any]]] = {
    "captions": (
        TABLES,
        lambda p: [*check_captions(captions(p), "x", [], {})],
        {"image_id": "a", "caption": "red"},
    ),
    "numbered captions": (
        TABLES,
        captions,
        {"image_id": "a", "caption_id": 3, "caption": "red", "class_id": 1},
    ),
    "manifest": ((".csv",), lambda p: check_texts(p, pd.DataFrame([MADE])), MADE),
    "answers": ((".csv",), lambda p: collect([p], {"t": "match"}), ANSWER),
    "compounds": (TABLES, read_list, {"compound": "snow ball", "first": "snow", "second": "ball"}),
    "texts": ((".csv",), read_texts, {"compound": "a b", "text": "c"}),
    "texts of compounds": ((".json",), read_texts, {"a b": ["c"]}),
    "held-out pairs": ((".json",), read_heldout, {"pairs": ["red_wing"]}),
    "renames": ((".yaml",), read_renames, {"a": "b"}),
    "lexicon": ((".yaml",), load_lexicon, {"red": ["scarlet"]}),
    "config": (
        (".yaml",),
        read_config,
        {"seed": 3, "dataset": {"limit": 3}, "seeds": {"world": 1}},
    ),
    "samples": ((".jsonl",), read_samples, SAMPLE),
    "long captions": (TABLES, lambda p: check_examples(read_source(p), p.parent), LONG),
    "pairs to score": ((".csv",), read_image_texts, {"image": "a.png", "text": "b"}),
    "archive": ((".zip", ".tgz"), contents, {}),
    "published data": ((".pkl",), published_files.read_data, {"a": {0: SWAPPED}}),
    "published split": ((".pkl",), published_files.read_split, SPLIT),
    "predictions": ((".pkl",), published_files.read_predictions, {}),
}


def variants(value: Any) -> Iterator[Any]:
    """Yield a value with each part replaced by strange ones, or removed."""
    yield from VALUES
    if isinstance(value, dict):
        for name, inner in value.items():
            yield {key: other for key, other in value.items() if key != name}
            for strange in variants(inner):
                yield value | {name: strange}
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            for strange in variants(inner):
                yield [*value[:place], strange, *value[place + 1 :]]


def files(suffix: str, good: dict[str, Any]) -> Iterator[bytes]:
    header = ",".join(good).encode()
    yield from (
        b"",
        b"\0",
        b"\n\n",
        bytes(range(256)) * 9,
        b"\xff\xfea\0,\0b\0",
        "é".encode("latin-1"),
    )
    yield from (
        header,
        header + b"\n",
        header + b"\r\n" + b"x," * 40,
        header.replace(b",", b";"),
        header + b'\n"',
    )
    yield from (
        header + b"\n" + b"x" * (1 << 20),
        b"[" * 999,
        b"{" * 999,
        b"[{}]",
        b"{}",
        b"null",
        b"3",
        b'"',
    )
    yield from (
        b'{"a": 1, "a": 2}',
        b"a: 1\na: 2",
        b"? [1]\n: 2",
        b"<<: 3",
        b"&a [*a]",
        b"compositions: &a [*a]",
    )
    yield from (b"a: &a {b: *a}", b"!!python/object:os.system x", b"2: 1e400")
    for row in variants(good):
        rows = [good, row, good]
        if suffix == ".parquet":
            continue
        if suffix in (".json", ".yaml"):
            # JSON is YAML.
            yield from (json.dumps(content, ensure_ascii=True).encode() for content in (row, rows))
        elif suffix == ".jsonl":
            yield "\n".join(map(json.dumps, rows)).encode()
        elif suffix == ".pkl":
            yield from (
                pickle.dumps(content, protocol=2) for content in (row, [row, (row, row, row, row)])
            )
        elif suffix in (".csv", ".tsv") and isinstance(row, dict):
            buffer = io.StringIO()
            writer = csv.writer(buffer, delimiter="\t" if suffix == ".tsv" else ",")
            writer.writerows([good, *([*row.values()] for row in rows)])
            yield buffer.getvalue().encode(errors="replace")

    for name in good if suffix == ".parquet" else ():
        for strange in ARRAYS:
            columns = {key: arrow.array([str(value)] * 2) for key, value in good.items()} | {
                name: strange
            }
            buffer = io.BytesIO()
            pq.write_table(arrow.table(columns), buffer)
            yield buffer.getvalue()


@pytest.mark.parametrize("every", [13, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", READERS)
def test_readers(name: str, every: int, tmp_path: Path) -> None:
    suffixes, read, good = READERS[name]
    surprises = []
    for suffix in suffixes:
        file = tmp_path / f"file{suffix}"
        for raw in [*files(suffix, good)][::every] + [None]:
            if raw is None:
                file.unlink(missing_ok=True)
                file.mkdir()
            else:
                file.write_bytes(raw)
            try:
                read(file)
            except (UserError, OSError) as error:
                # A config may have several errors, a line each.
                lines = one_line(error).split("\n")
                if (len(lines) > 1 and name != "config") or any(
                    len(x) > 1200 or not x.isprintable() for x in lines
                ):
                    surprises.append((suffix, raw, one_line(error)[:300]))
            except Exception as error:
                surprises.append((suffix, raw and raw[:200], repr(error)[:300]))
    assert not surprises, (len(surprises), surprises[:5])
