"""The published formats and the train list."""

import json
import pickle
from pathlib import Path

import pandas as pd

from compclip.core.tables import CAPTIONS, SPLIT, SWAPPED
from compclip.io import read_json, read_table
from compclip.split.export import export, split_dict
from tests.project import COMPOSITION, DATASET
from tests.split.split_worlds import captions_table, images_table


def test_published_formats(results: Path) -> None:
    place = results / DATASET / COMPOSITION
    names = [path.name for path in sorted((place / "export").glob("[!.]*"))]
    assert names == ["data.pkl", "split.pkl", "train.csv", "train.jsonl"]
    images = read_table(place / "splits.parquet", SPLIT).groupby("split")["image_id"].agg(list).to_dict()
    split, data = (pickle.loads((place / "export" / f"{name}.pkl").read_bytes()) for name in ("split", "data"))
    assert split == images | {"heldout_pairs": sorted(read_json(place / "heldout.json")["pairs"])}
    expected: dict[str, dict[int, dict]] = {}
    for row in read_table(place.parent / "captions.parquet", CAPTIONS).itertuples():
        expected.setdefault(row.image_id, {})[row.caption_id] = {"text": row.text}
    swapped = read_table(place / "swapped.parquet", SWAPPED)
    for row in swapped.itertuples():
        (made,) = (change for change in row.changes if f"{change['new_adj']}_{change['noun']}" == row.pair)
        made = {key: made[key] for key in ("noun", "original_adj", "new_adj")}
        expected[row.image_id][row.caption_id] |= {"swapped_text": row.swapped_text, "changes_made": made}
    assert data == expected and (swapped["changes"].map(len) > 1).any()
    assert {type(key) for captions in data.values() for key in captions} == {int}


def test_rows_in_any_order_an_image_without_a_file_and_splits_without_images() -> None:
    captions = captions_table([("b/1", 1, 'a "red" bill'), ("b/1", 0, "wings"), ("a/2", 0, "a tail")])
    splits = pd.DataFrame({"image_id": ["b/1", "a/2"], "split": "train"})
    swapped = pd.DataFrame(columns=["image_id", "caption_id", "swapped_text", "changes", "pair"])
    files = export(captions, images_table(["b/1", "a/2"], ["d/1.png", None]), splits, swapped, [])
    assert [list(json.loads(line).values()) for line in files["train.jsonl"].splitlines()] == [
        ["a/2", 0, None, "a tail"], ["b/1", 0, "d/1.png", "wings"], ["b/1", 1, "d/1.png", 'a "red" bill'],
    ]  # fmt: skip
    header, _, *lines = files["train.csv"].decode().splitlines()
    assert header == "image_id,caption_id,file_name,text"  # as imagefolder of Hugging Face datasets names it
    assert lines == ["b/1,0,d/1.png,wings", 'b/1,1,d/1.png,"a ""red"" bill"']
    assert split_dict(splits, ["red_wing", "blue_bill"]) == {
        "train": ["a/2", "b/1"], "test_seen": [], "test_unseen": [], "heldout_pairs": ["blue_bill", "red_wing"],
    }  # fmt: skip
