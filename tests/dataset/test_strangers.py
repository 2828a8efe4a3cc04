"""Five data sets as strangers have them, made up: each goes through the first steps, from its files
to held-out pairs.

All have the same captions, two of an image, so that what is read can be compared.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as arrow
import pyarrow.parquet as pq
import pytest

from compclip.core.artifacts.files import read_json
from compclip.core.artifacts.parquet import read_table
from compclip.core.errors import UserError
from compclip.core.reading.records import record_blocks
from compclip.core.tables import CAPTIONS, IMAGES
from compclip.dataset.sources.table import Settings
from compclip.pairs.config import Selection
from compclip.pairs.extract_pairs import extract_pairs
from compclip.pairs.rank_pairs import rank_pairs
from compclip.split.choose_draw import TrialData, choose_draw
from compclip.split.composition import Lexicons, Seeding
from compclip.split.config import DrawConfig
from tests.dataset.conftest import jpeg, load_job, load_table
from tests.everyday import captions
from workflow_scripts.dataset.load_dataset import main

IMAGES_MADE = 60
TEXTS = captions(2 * IMAGES_MADE)["text"].tolist()
NAMES = [f"img_{number:03d}.jpg" for number in range(IMAGES_MADE)]
# File name and caption, as most data sets have them: a row for each caption.
ROWS = [
    (name, text) for number, name in enumerate(NAMES) for text in TEXTS[2 * number : 2 * number + 2]
]
LISTS = [TEXTS[2 * number : 2 * number + 2] for number in range(IMAGES_MADE)]
Given = dict[str, Any]  # the keys of dataset.table


def pictures(folder: Path) -> Path:
    folder.mkdir(parents=True)
    for number, name in enumerate(NAMES):
        (folder / name).write_bytes(jpeg(number, (24, 16)))
    return folder


def flickr(folder: Path) -> Given:
    """Lines ``id#n<TAB>caption``, whose ids are file names, beside a folder of images."""
    lines = [f"{name}#{place % 2}\t{text} ." for place, (name, text) in enumerate(ROWS)]
    (folder / "results.token.txt").write_text("\n".join(lines) + "\n")
    return {"file": folder / "results.token.txt", "images": pictures(folder / "flickr-images")}


def image_folder(folder: Path) -> Given:
    """``metadata.jsonl`` in the folder of images that it describes, with a column that is not
    used.
    """
    images = pictures(folder / "train")
    lines = [json.dumps({"file_name": name, "text": text, "license": 3}) for name, text in ROWS]
    (images / "metadata.jsonl").write_text("\n".join(lines))
    return {"file": images / "metadata.jsonl", "images": images}


def odd_columns(folder: Path) -> Given:
    """A CSV file with column names of another language, quotes, and a byte order mark as Excel
    writes it.
    """
    table = pd.DataFrame(ROWS, columns=["Bilddatei", "Beschreibung"]).assign(
        Nr=range(len(ROWS)), caption="unbenutzt"
    )
    table.to_csv(folder / "bilder.csv", index=False, encoding="utf-8-sig", quoting=1)
    columns = {"image_id": "Bilddatei", "caption": "Beschreibung"}
    return {
        "file": folder / "bilder.csv",
        "columns": columns,
        "images": pictures(folder / "bilder"),
    }


def stream(path: Path, table: arrow.Table) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with arrow.OSFile(str(path), "wb") as file, arrow.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=7)


def saved_to_disk(folder: Path) -> Given:
    """What ``DatasetDict.save_to_disk`` writes: a folder for each split, shards, images inside, a
    cache of a map.
    """
    cells = [{"bytes": jpeg(number, (24, 16)), "path": None} for number in range(IMAGES_MADE)]
    table = arrow.table({"image": cells, "captions": LISTS})
    for split, begin, end in (("test", 0, 20), ("train", 20, IMAGES_MADE)):
        place, middle = folder / "dataset" / split, (begin + end) // 2
        stream(place / "data-00000-of-00002.arrow", table.slice(begin, middle - begin))
        stream(place / "data-00001-of-00002.arrow", table.slice(middle, end - middle))
        stream(place / "cache-0123456789abcdef.arrow", table)
        (place / "state.json").write_text('{"_data_files": []}')
    (folder / "dataset" / "dataset_dict.json").write_text('{"splits": ["test", "train"]}')
    return {"file": folder / "dataset"}


def hub_repository(folder: Path) -> Given:
    """Shards of Parquet with several captions a row, an image's bytes and path, and columns that
    are not used.
    """
    cells = [{"bytes": jpeg(number, (24, 16)), "path": name} for number, name in enumerate(NAMES)]
    table = arrow.table(
        {
            "image": cells,
            "caption": LISTS,
            "sentids": [[1, 2]] * IMAGES_MADE,
            "thumb": [b"x"] * IMAGES_MADE,
        }
    )
    (folder / "repository" / "data").mkdir(parents=True)
    for shard in range(3):
        rows = table.slice(20 * shard, 20)
        pq.write_table(rows, folder / "repository" / "data" / f"train-0000{shard}-of-00003.parquet")
    return {"file": folder / "repository", "images": pictures(folder / "unpacked")}


@pytest.mark.parametrize(
    "write", [flickr, image_folder, odd_columns, saved_to_disk, hub_repository]
)
def test_goes_through_the_first_steps(tmp_path: Path, write: Callable[[Path], Given]) -> None:
    given = {
        key: str(value) if isinstance(value, Path) else value
        for key, value in write(tmp_path).items()
    }
    main(load_job(tmp_path, "table", None, **given))
    folder = tmp_path / "results" / "mine"
    texts, images = (
        read_table(folder / "captions.parquet", CAPTIONS),
        read_table(folder / "images.parquet", IMAGES),
    )
    assert [text.removesuffix(" .") for text in texts["text"]] == TEXTS
    assert texts["caption_id"].tolist() == [0, 1] * IMAGES_MADE
    ids = [name.removesuffix(".jpg") for name in NAMES]
    if write is saved_to_disk:  # without paths, images are named by their places
        rows = (("test", 0, 10), ("test", 1, 10), ("train", 0, 20), ("train", 1, 20))
        ids = [
            f"{split}/data-0000{shard}-of-00002_{n:06d}"
            for split, shard, end in rows
            for n in range(end)
        ]
    assert images["image_id"].tolist() == ids and images["path"].notna().all() == (
        "images" in given
    )
    summary = read_json(folder / "dataset.json")
    assert summary["rows_unreadable"]["count"] == summary["rows_duplicate"]["count"] == 0
    pairs = extract_pairs(texts, ["color"])
    ranking = rank_pairs(pairs, "color", None, Selection(min_count=1))
    config = DrawConfig(fraction=0.2, window=(0, 100))
    seeding = Seeding(dataset="mine")
    trials = TrialData(texts, pairs, ranking, Lexicons("color"), seeding)
    draw, result = choose_draw(trials, config, 99)
    assert draw.fraction == 0.2 and result["chosen"]["test_unseen"]["pairs"] > 5


def test_an_empty_list_is_an_empty_caption(tmp_path: Path) -> None:
    pq.write_table(
        arrow.table({"image_id": ["a", "b"], "caption": [["one", "two"], []]}),
        tmp_path / "t.parquet",
    )
    assert load_table(tmp_path / "t.parquet", tmp_path).captions["text"].tolist() == [
        "one",
        "two",
        "",
    ]


def test_columns_that_the_file_does_not_have_are_refused(tmp_path: Path) -> None:
    given = odd_columns(tmp_path)
    for columns, message in (
        ({}, "no column 'image_id'; its columns: 'Bilddatei', 'Beschreibung', 'Nr', 'caption'"),
        (given["columns"] | {"class_id": "Klase"}, "no column 'Klase'; "),
        ({"image_id": "Biltdatei"}, "no column 'Biltdatei'; did you mean Bilddatei"),
    ):
        with pytest.raises(UserError, match=message):
            load_table(given["file"], tmp_path, columns=columns)
    with pytest.raises(ValueError, match="caption"):
        Settings(file="x.csv", columns={"captoin": "Beschreibung"})


def test_damaged_and_other_folders_get_one_line(tmp_path: Path) -> None:
    (tmp_path / "dataset").mkdir()
    with pytest.raises(
        UserError, match="dataset: a folder without data-.*; give a file, or a folder that Hugging"
    ):
        load_table(tmp_path / "dataset", tmp_path)
    file = tmp_path / "dataset" / "data-00000-of-00001.arrow"
    stream(file, arrow.table({"image_id": ["a"], "caption": ["a red bird"]}))
    whole = file.read_bytes()
    assert load_table(tmp_path / "dataset", tmp_path).captions["text"].tolist() == ["a red bird"]
    for damaged in (whole[:100], b"", b"ARROW1" + whole):
        file.write_bytes(damaged)
        with pytest.raises(
            UserError,
            match="data-00000-of-00001.arrow: not a readable Arrow file .*; write it again",
        ):
            load_table(tmp_path / "dataset", tmp_path)


PRINTED_NESTED = (
    "[['a red chair'], ['b']]",
    "[{'raw': 'a red chair', 'tokens': ['a', 'red', 'chair']}]",
    '[{"raw": "a red chair", "id": null}]',
    "{'raw': 'a red chair'}",
    "['a red chair', ..., 'a chair']",
    "['a red chair' 'b' ...\n 'a chair']",
    "[array(['a red chair'], dtype=object)]",
    "(['a red chair'], ['b'])",
)


@pytest.mark.parametrize("cell", PRINTED_NESTED)
def test_a_cell_with_more_than_a_list_of_texts_is_no_caption(tmp_path: Path, cell: str) -> None:
    table = pd.DataFrame({"image_id": ["1", "2"], "caption": [cell, "[a] red ['chair'] ..."]})
    table.to_csv(tmp_path / "t.csv", index=False)
    rows, bad = next(record_blocks(tmp_path / "t.csv", ["image_id", "caption"], several="caption"))
    assert rows["caption"].tolist() == ["[a] red ['chair'] ..."]
    assert len(bad) == 1 and bad[0].startswith("line 2: ") and "neither a text nor" in bad[0]
