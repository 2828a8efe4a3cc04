"""What any judge is asked, and what its answers count: in a world whose truth is known."""

import json
import logging
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import compclip
from compclip.judge.chooser import JudgedImage
from tests.judge.drawn_world import NamedColors, Silent, world


def accuracy(choices: pd.DataFrame, generator: str, split: str) -> float:
    is_chosen = (choices["generator"] == generator) & (choices["split"] == split)
    return float(choices.loc[is_chosen, "adjective_first"].mean())


def test_adjective_accuracy_is_what_the_images_show() -> None:
    entries, variants = world({"half": 0.5})
    choices = compclip.choose(NamedColors(), entries, variants)
    asked = entries["pair"].str.split("_").str[0]
    drawn = entries["path"].str.extract(r"-(\w+)\.png$")[0]
    assert (choices["adjective_first"] == (asked == drawn)).all()
    assert (choices["adjective_chosen"] == drawn).all()
    assert (choices["adjectives"] == 4).all() and choices["answered"].all()


def test_the_order_of_texts_does_not_favor_the_own_one() -> None:
    entries, variants = world({}, n=1000)
    choices = compclip.choose(NamedColors(first_place=1), entries, variants)
    # Chance is 1 / 4, with a standard error of .01 over 2,000 images of each generator.
    assert accuracy(choices, "faithful", "test_unseen") == pytest.approx(0.25, abs=0.05)


def test_another_seed_draws_another_order() -> None:
    entries, variants = world({}, n=50)
    first, again, other = (
        compclip.choose(NamedColors(first_place=1), entries, variants, seed=seed)
        for seed in (0, 0, 1)
    )
    assert first.equals(again)
    assert not first.equals(other)


def test_a_missing_image_is_wrong() -> None:
    entries, variants = world({})
    entries.loc[:99, "path"] = None
    choices = compclip.choose(NamedColors(), entries, variants)
    assert (choices["adjective_first"][:100] == 0).all()
    assert (choices["adjectives"][:100] == 4).all()
    assert choices["adjective_chosen"][:100].isna().all()


def test_an_unanswered_image_is_wrong_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    entries, variants = world({"half": 0.5})
    with caplog.at_level(logging.WARNING):
        choices = compclip.choose(Silent(), entries, variants)
    of_half = choices[choices["generator"] == "half"]
    assert (of_half["adjective_first"] == 0).all()
    assert not of_half["answered"].any()
    assert "named: 400 of 1200 choices without a usable answer count as wrong" in caplog.text


def test_a_prompt_without_variants_is_not_asked() -> None:
    entries, variants = world({})
    of_seen = variants[variants["split"] == "test_seen"]
    choices = compclip.choose(NamedColors(), entries, of_seen)
    is_seen = choices["split"] == "test_seen"
    assert choices["adjective_first"].notna().eq(is_seen).all()
    assert (choices["adjectives"][~is_seen] == 1).all()


def test_another_tool_answers_the_listed_options(tmp_path: Path) -> None:
    """The answers of a judge, asked through ``options.jsonl``, give the same choices."""
    entries, variants = world({"half": 0.5}, n=60)
    judge = NamedColors(error=0.3)
    number = compclip.list_options(entries, variants, tmp_path / "options.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "options.jsonl").read_text().splitlines()]
    assert len(lines) == number == len(entries)
    images = [JudgedImage(Path(line["image"]), line["id"]) for line in lines]
    answers = judge.choose(images, [line["texts"] for line in lines])
    rows = []
    for line, chances in zip(lines, answers, strict=True):
        rows.append({"id": line["id"], "number": int(np.argmax(chances)) + 1})
    pd.DataFrame(rows).to_csv(tmp_path / "answers.csv", index=False)
    table = compclip.open_judge("table", file=str(tmp_path / "answers.csv"))
    from_table = compclip.choose(table, entries, variants)
    by_id = {row["id"]: row["number"] for row in rows}
    assert len(by_id) == number
    # The same answers, asked directly: the judge's errors are drawn by the number of images.
    for split in ("test_seen", "test_unseen"):
        assert 0 < accuracy(from_table, "half", split) < 1
    assert from_table["adjective_first"].isin([0, 1]).all()
    chosen = {line["id"]: line["texts"][by_id[line["id"]] - 1] for line in lines}
    ids = from_table[["generator", "split", "image_id", "caption_id", "draw"]].astype(str)
    texts = ids.agg("/".join, axis=1).map(chosen)
    assert (from_table["adjective_first"] == (texts == entries["text"])).all()


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"image_id": None}, "entries"),
        ({"split": "train"}, "split .'train'.; expected one of"),
        ({"generator": "faithful", "draw": 0}, "duplicate"),
        ({"pair": "red wing"}, "column pair: row 0: expected adjective_noun, got 'red wing'"),
        ({"path": 3}, "column path: row 0: expected a path, got 3"),
        ({"caption_id": "first"}, "column caption_id: "),
    ],
)
def test_entries_that_cannot_be_asked_are_refused(change: dict[str, object], fault: str) -> None:
    entries, variants = world({"half": 0.5}, n=10)
    with pytest.raises(compclip.UserError, match=fault):
        compclip.choose(NamedColors(), entries.assign(**change), variants)


def test_ids_may_be_texts_in_both_tables() -> None:
    entries, variants = world({}, n=10)
    choices = compclip.choose(NamedColors(), entries, variants)
    as_texts = [
        table.assign(caption_id=table["caption_id"].astype(str)) for table in (entries, variants)
    ]
    assert compclip.choose(NamedColors(), *as_texts).equals(choices)


def test_a_variant_equal_to_the_prompt_is_refused() -> None:
    entries, variants = world({}, n=10)
    own = variants.drop_duplicates(["split", "image_id"]).merge(
        entries[["split", "image_id", "text"]].drop_duplicates(),
        on=["split", "image_id"],
        suffixes=("_variant", ""),
    )
    own["adjective"] = "own"
    doubled = pd.concat([variants, own[[*variants]]], ignore_index=True)
    with pytest.raises(compclip.UserError, match="two equal texts among"):
        compclip.choose(NamedColors(), entries, doubled)


def test_options_without_a_question_are_refused(tmp_path: Path) -> None:
    entries, variants = world({}, n=10)
    with pytest.raises(compclip.UserError, match="no image whose prompt has variants"):
        compclip.list_options(entries.assign(path=None), variants, tmp_path / "options.jsonl")


def test_a_judge_without_choose_is_refused() -> None:
    entries, variants = world({}, n=10)
    with pytest.raises(compclip.UserError, match="^judge: Input should be an instance of Chooser"):
        compclip.choose(object(), entries, variants)
