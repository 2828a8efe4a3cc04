"""The published formats and the train list."""

import csv
import json
import pickle
from pathlib import Path

import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from tests.split.split_worlds import captions_table, images_table
from tests.split.stage import run
from workflow_scripts.core.io import spreadsheet_safe, spreadsheet_texts, write_json, write_table
from workflow_scripts.core.tables import CAPTIONS, IMAGES, SPLIT, SWAPPED


def exported(folder: Path) -> Path:
    captions = captions_table(
        [("b/1", 1, 'a red, "odd" bill'), ("b/1", 0, "wings"), ("a/2", 0, "a red bill and blue wings")]
    )
    write_table(captions, folder / "captions.parquet", CAPTIONS)
    write_table(images_table(["a/2", "b/1"], [None, "d/images/1.png"]), folder / "images.parquet", IMAGES)
    splits = pd.DataFrame({"image_id": ["a/2", "b/1"], "split": ["test_seen", "train"]})
    write_table(splits, folder / "splits.parquet", SPLIT)
    keys = ("noun", "original_adj", "new_adj", "start", "end", "new_start", "new_end")
    change = dict(zip(keys, ("wing", "blue", "red", 15, 19, 16, 19), strict=True))
    other = dict(zip(keys, ("bill", "red", "blue", 2, 5, 2, 6), strict=True))
    row = "a/2", 0, "a red bill and blue wings", "a blue bill and red wings", [other, change], "red_wing"
    swapped = pd.DataFrame([row], columns=list(SWAPPED.columns))
    write_table(swapped, folder / "swapped.parquet", SWAPPED)
    write_json({"pairs": ["red_wing", "blue_bill"]}, folder / "heldout.json")
    run("export", folder)
    return folder / "export"


def test_published_formats(tmp_path: Path) -> None:
    out = exported(tmp_path)
    assert sorted(p.name for p in out.iterdir()) == ["data.pkl", "split.pkl", "train.csv", "train.jsonl"]
    split = pickle.loads((out / "split.pkl").read_bytes())
    assert split == {
        "train": ["b/1"], "test_seen": ["a/2"], "test_unseen": [], "heldout_pairs": ["blue_bill", "red_wing"],
    }  # fmt: skip
    data = pickle.loads((out / "data.pkl").read_bytes())
    made = {"noun": "wing", "original_adj": "blue", "new_adj": "red"}
    swapped = {"swapped_text": "a blue bill and red wings", "changes_made": made}
    assert data == {
        "a/2": {0: {"text": "a red bill and blue wings", **swapped}},
        "b/1": {0: {"text": "wings"}, 1: {"text": 'a red, "odd" bill'}},
    }
    assert all(type(key) is int for key in data["b/1"])


def test_train_list(tmp_path: Path) -> None:
    out = exported(tmp_path)
    with open(out / "train.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [(r["image_id"], r["caption_id"], r["path"], r["text"]) for r in rows] == [
        ("b/1", "0", "d/images/1.png", "wings"), ("b/1", "1", "d/images/1.png", 'a red, "odd" bill'),
    ]  # fmt: skip
    lines = [json.loads(line) for line in (out / "train.jsonl").read_text(encoding="utf-8").splitlines()]
    assert lines[1] == {"image_id": "b/1", "caption_id": 1, "path": "d/images/1.png", "text": 'a red, "odd" bill'}


@given(st.lists(st.text("'=+-@\t\r\n＝a, \"", max_size=4), min_size=1, max_size=5))
def test_no_text_is_a_formula_and_none_is_lost(texts: list[str]) -> None:
    table = pd.DataFrame({"text": pd.Series(texts, dtype="str"), "n": -1})
    safe = spreadsheet_safe(table)
    assert not safe["text"].str.match(r"[=+\-@\t\r\n＝]").any() and (safe["n"] == -1).all()
    assert list(spreadsheet_texts(safe)["text"]) == texts
    unchanged = [text for text in texts if not text.lstrip("'") or text.lstrip("'")[0] in 'a, "']
    assert set(unchanged) <= set(safe["text"])
