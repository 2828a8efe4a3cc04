"""Write the splits in the data layout of AttnGAN, to train its successors on train and to draw the
prompts.

``layouts/attngan.yaml`` names the files. One data folder is for training: ``train``, whose ``test``
is test_seen. Each test split has a further folder, whose names are prompts,
``<image_id>_<caption_id>``. The samplers draw a random caption of each name, so all lines of a
prompt's file are the prompt. All folders use the same word numbers, because a text encoder reads
only the numbering of its training. Images are links.
"""

import os
import pickle
import re
from collections.abc import Mapping
from pathlib import Path

import pandas as pd
import yaml

from compclip.core.errors import require
from compclip.core.log import log
from compclip.core.tables import TESTS
from compclip.io import atomic_folder, write_json

ATTNGAN_LAYOUT = Path(__file__).parent / "layouts" / "attngan.yaml"
PROTOCOL = 2  # some of the models run on Python 2
SAMPLER_BATCH = (
    100  # names are repeated up to a multiple, because the samplers drop an incomplete last batch
)


def model_words(caption: str) -> list[str]:
    """Split a caption as the models' ``load_captions`` does: lower-case ASCII letters and
    digits.
    """
    words = re.findall(r"\w+", caption.replace("\ufffd\ufffd", " ").lower())
    return [ascii_word for word in words if (ascii_word := word.encode("ascii", "ignore").decode())]


def names_of(texts: pd.DataFrame, images: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each ``name`` in ``texts`` with an image in ``images`` and a caption that is
    not empty.
    """
    texts = texts[texts["text"].map(model_words).astype(bool)].sort_values(
        ["image_id", "caption_id"]
    )
    # A line break would split the caption in two.
    texts = texts.assign(captions=texts["text"].str.split().str.join(" "))
    lists = texts.groupby("name").agg({"image_id": "first", "file_name": "first", "captions": list})
    return lists.reset_index().merge(images, on="image_id")


def write_data_folder(
    folder: Path, final: Path, lists: Mapping[str, pd.DataFrame], numbers: dict[str, int]
) -> None:
    """Fill ``folder``, which is moved to ``final`` (absolute) later: links are relative to
    ``final``.

    ``lists`` are ``train`` and ``test``, with the same number of captions for each name;
    ``numbers`` maps words.
    """
    template = yaml.safe_load(ATTNGAN_LAYOUT.read_text())
    captions = [[text for texts in names["captions"] for text in texts] for names in lists.values()]
    in_numbers = [
        [[numbers[word] for word in model_words(text)] for text in texts] for texts in captions
    ]
    pickles = {
        file: lists[part][column].tolist() for file, (part, column) in template["pickles"].items()
    }
    pickles[template["words"]] = [
        *in_numbers,
        {number: word for word, number in numbers.items()},
        numbers,
    ]
    rows = pd.concat(lists.values()).drop_duplicates("name").to_dict("records")
    texts = {
        template["captions"].format_map(row): "\n".join(row["captions"]) + "\n" for row in rows
    }
    for file, line in template["lines"].items():
        texts[file] = "".join(
            line.format(number=number, **row) + "\n" for number, row in enumerate(rows, 1)
        )
    images = {template["image"].format_map(row): row["path"] for row in rows}
    links = {
        link: os.path.relpath(path, (final / link).parent) for link, path in images.items()
    } | template["links"]
    for name in [*pickles, *texts, *links]:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
    for name, content in pickles.items():
        (folder / name).write_bytes(pickle.dumps(content, PROTOCOL))
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    for name, target in links.items():
        (folder / name).symlink_to(target)


def export_layout(
    folder: Path,
    captions: pd.DataFrame,
    images: pd.DataFrame,
    splits: pd.DataFrame,
    prompts: pd.DataFrame,
    *,
    dataset: str,
    results: str | Path = "results",
) -> None:
    """Write ``folder``, whose ``layout.json`` names its data folders.

    Args:
        captions, images, splits, prompts: columns of ``CAPTIONS``, ``IMAGES``, ``SPLIT`` and
            ``PROMPTS`` in ``tables``.
        dataset: name of the exported folder if no image has a bounding box.
        results: folder that the paths in ``images`` are relative to.
    """
    images = images.dropna(subset="path")
    captions = captions.merge(splits, on="image_id").assign(
        name=lambda table: table["image_id"], file_name=""
    )
    prompts = prompts.drop_duplicates(["split", "image_id", "caption_id"])
    prompts = prompts.assign(name=prompts["image_id"] + "_" + prompts["caption_id"].astype(str))
    blank = images.loc[images["image_id"].str.contains(r"\s"), "image_id"].tolist()
    require(
        not blank,
        "images",
        f"{blank[:1]} has a blank, at which the models split names",
        "rename it",
    )
    name = "birds" if images["bbox_x"].notna().any() else dataset
    whole = {"bbox_x": 0.0, "bbox_y": 0.0, "bbox_w": images["width"], "bbox_h": images["height"]}
    # An image without a class is its own class.
    classes = (
        captions.drop_duplicates("image_id")
        .set_index("image_id")["class_id"]
        .reindex(images["image_id"])
    )
    numbered = 1 + pd.factorize(classes.fillna(classes.index.to_series()))[0]
    images = images.fillna(pd.DataFrame(whole)).assign(**{"class": numbered})
    images["path"] = os.path.abspath(results) + "/" + images["path"]
    train, seen, unseen = (
        captions[captions["split"] == split] for split in ("train", "test_seen", "test_unseen")
    )
    lists = {"train": names_of(train, images), "test": names_of(seen, images)}
    require(
        len(lists["train"]),
        "images",
        "no image of train has a file and a caption",
        "add its photographs",
    )
    lists |= {split: names_of(prompts[prompts["split"] == split], images) for split in TESTS}
    # including all captions of test_unseen, so that the numbers do not depend on the choice of
    # prompts
    texts = [text for names in lists.values() for of_name in names["captions"] for text in of_name]
    words = dict.fromkeys(word for text in [*texts, *unseen["text"]] for word in model_words(text))
    numbers = {word: number for number, word in enumerate(["<end>", *words])}
    most = max(len(of_name) for names in lists.values() for of_name in names["captions"])
    for names in lists.values():
        names["captions"] = [
            [of_name[i % len(of_name)] for i in range(most)] for of_name in names["captions"]
        ]
    folders = {"train": {"train": lists["train"], "test": lists["test"]}}
    for split in filter(
        lambda split: len(lists[split]), TESTS
    ):  # some models fail for an empty list
        repeated = [
            i % len(lists[split])
            for i in range(-(-len(lists[split]) // SAMPLER_BATCH) * SAMPLER_BATCH)
        ]
        folders[split] = dict.fromkeys(("train", "test"), lists[split].iloc[repeated])
    longest = max(len(model_words(text)) for text in texts)
    summary = {"captions_per_image": most, "longest_caption": longest}
    with atomic_folder(folder) as begun:
        for split, both in folders.items():
            write_data_folder(
                begun / name / split, Path(os.path.abspath(folder)) / name / split, both, numbers
            )
        write_json(
            {"data_folders": [f"{name}/{split}" for split in folders], **summary},
            begun / "layout.json",
        )
    log.info("%s: %d data folders, %s", folder, len(folders), summary)
