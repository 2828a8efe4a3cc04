"""Photographs, shuffled ones, those of the usual pair and of the pair: which one a prompt gets."""

import json
from collections import Counter

import pandas as pd
import pytest

from compclip.core.errors import UserError
from compclip.core.tables import TESTS
from compclip.generate.generate_images import summarize_images
from compclip.generate.generator import PROMPT_KEYS, Context, Generated, Settings
from compclip.generate.generators import pair_photographs, usual_photographs
from compclip.generate.generators.shuffled import partners
from tests.generate.conftest import Place, make_prompts


def test_photographs(place: Place) -> None:
    manifest, summary = place.generate("photographs")
    served = place.prompts[place.prompts["split"] != "test_swapped"]
    pd.testing.assert_frame_equal(manifest[PROMPT_KEYS], served[PROMPT_KEYS].reset_index(drop=True))
    there = manifest[manifest["status"] == "ok"]
    assert (there["path"] == "mine/images/" + there["image_id"] + ".png").all()
    assert set(manifest["image_id"][manifest["status"] == "skipped"]) == {"s/none"}
    assert summary["splits"]["test_seen"] == {"ok": 6, "missing": 0, "broken": 0, "skipped": 2}
    assert list((place.target / "images").iterdir()) == []


def test_no_files_no_prompts_and_a_single_image_to_shuffle(place: Place) -> None:
    with pytest.raises(UserError, match="generator it: no image for any of 2 prompts"):
        place.generate("photographs", make_prompts({"test_seen": ["s/none"]}))
    assert not place.target.exists() or list(place.target.iterdir()) == []
    manifest, summary = place.generate("photographs", make_prompts({"test_swapped": ["s/1"]}))
    assert manifest.empty and summary["prompts"] == 0
    manifest, _ = place.generate(
        "shuffled", make_prompts({"test_seen": ["s/1"], "test_unseen": ["u/1", "u/2"]})
    )
    assert manifest.groupby("split")["status"].unique().map(list).to_dict() == {
        "test_seen": ["skipped"],
        "test_unseen": ["ok"],
    }


@pytest.mark.parametrize("seed", range(5))
def test_shuffled(place: Place, seed: int) -> None:
    manifest, _ = place.generate(
        "shuffled",
        make_prompts(
            {"test_seen": ["s/1", "s/2", "s/3"], "test_unseen": ["u/1", "u/2", "u/3"]},
            captions=3,
            draws=3,
        ),
        seed=seed,
    )
    assert (manifest["status"] == "ok").all()
    given = manifest["path"].str.removeprefix("mine/images/").str.removesuffix(".png")
    assert (given != manifest["image_id"]).all()
    # Of the same split, and every image as often as any other.
    assert (given.str[0] == manifest["image_id"].str[0]).all()
    assert set(Counter(given).values()) == {9}
    # One partner for an image and draw, another one for another draw.
    partner = manifest.assign(given=given).groupby(["image_id", "draw"])["given"].unique().map(list)
    assert (partner.map(len) == 1).all()
    assert (partner.unstack()[0] != partner.unstack()[1]).all()


def test_partners_depend_only_on_the_seed_and_the_split() -> None:
    ids = [str(n) for n in range(50)]
    first, *others = (
        partners(ids, seed, split)
        for seed, split in ((0, "test_seen"), (1, "test_seen"), (0, "other"))
    )
    assert first == partners(ids[::-1], 0, "test_seen") and first not in others
    manifest = make_prompts({"test_seen": [str(n) for n in range(60)]}).assign(
        path=None, status="missing"
    )
    summary = summarize_images(manifest)
    assert summary["missing"]["count"] == 120 and len(summary["missing"]["names"]) == 20
    assert json.dumps(summary)


NUMBER = 40


def prompts_of(split: str, pair: str | None, ids: list[str]) -> pd.DataFrame:
    table = pd.DataFrame(
        {"image_id": ids, "caption_id": 0, "draw": 0, "split": split, "pair": pair}
    )
    return table.assign(text="a bird", file_name=split + table["image_id"])


@pytest.fixture
def tables() -> dict[str, pd.DataFrame]:
    """Judged images of test_seen: thirty with a red bill, ten with a blue one; of test_unseen: with
    a purple bill.
    """
    seen, unseen = [f"s{n}" for n in range(NUMBER)], [f"u{n}" for n in range(NUMBER)]
    rows = [
        (image, "red" if n < 30 else "blue", "bill", "adjacent") for n, image in enumerate(seen)
    ]
    rows += [(image, "purple", "bill", "adjacent") for image in unseen]
    rows += [("s0", "green", "bill", "disputed"), ("s1", "green", "wing", "adjacent")]
    rows.append(("t0", "red", "bill", "adjacent"))
    asked = [("test_seen", "red_bill", seen), ("test_unseen", "purple_bill", unseen)]
    asked.append(("test_swapped", "purple_bill", seen))
    variants = pd.DataFrame({"split": "test_unseen", "image_id": unseen, "caption_id": 0})
    variants = pd.concat(
        [variants.assign(adjective=adjective) for adjective in ("blue", "green", "red")]
    )
    of_seen = pd.DataFrame(
        {"split": "test_seen", "image_id": seen, "caption_id": 0, "adjective": "blue"}
    )
    variants = pd.concat([variants, of_seen])
    images = pd.DataFrame({"image_id": [*seen, *unseen, "t0"]})
    return {
        "pairs": pd.DataFrame(rows, columns=["image_id", "adjective", "noun", "relation"]),
        "prompts": pd.concat([prompts_of(*each) for each in asked], ignore_index=True),
        "variants": variants,
        "images": images.assign(path="images/" + images["image_id"]),
    }


def generate(kind: object, tables: dict[str, pd.DataFrame], seed: int = 0) -> Generated:
    asked = tables["prompts"]
    asked = asked[asked["split"].isin(getattr(kind, "SPLITS", TESTS))].reset_index(drop=True)
    return kind.generate(Settings(), asked, Context(tables, None, "", "color", seed))


def test_usual_photographs_show_a_usual_adjective_and_pair_photographs_the_pair(
    tables: dict[str, pd.DataFrame],
) -> None:
    made = generate(usual_photographs, tables)
    unseen, swapped = (
        made.manifest[made.manifest["split"] == name] for name in ("test_unseen", "test_swapped")
    )
    assert (swapped["path"] == "images/" + swapped["image_id"]).all(), (
        "the photograph before the swap"
    )
    of_seen = (
        made.manifest[made.manifest["split"] == "test_seen"]["path"]
        .str.removeprefix("images/s")
        .astype(int)
    )
    assert (of_seen >= 30).all(), "blue ones for prompts of a red bill, also of images that show it"
    shown = unseen["path"].str.removeprefix("images/")
    assert shown.str.startswith("s").all(), "judged images of test_seen alone"
    colors = Counter("red" if int(image[1:]) < 30 else "blue" for image in shown)
    assert 22 <= colors["red"] <= 38 and colors["blue"] >= 2, "as frequent as the pairs are"
    uses = Counter(made.manifest["path"])
    assert made.summary["reuse"] == {"photographs": len(uses), "uses_at_most": max(uses.values())}
    assert generate(usual_photographs, tables).manifest.equals(made.manifest)
    assert not generate(usual_photographs, tables, seed=1).manifest.equals(made.manifest)
    blue = {
        **tables,
        "variants": tables["variants"].query("adjective == 'blue' and image_id != 'u3'"),
    }
    made = (
        generate(usual_photographs, blue)
        .manifest.query("split == 'test_unseen'")
        .set_index("image_id")
    )
    assert made.loc["u3", "status"] == "skipped", "no alternatives, so nothing is measured"
    shown = made["path"].dropna().str.removeprefix("images/s").astype(int)
    assert len(shown) == NUMBER - 1 and (shown >= 30).all()
    tables["images"].loc[tables["images"]["image_id"] == "u5", "path"] = None
    asked = generate(pair_photographs, tables).manifest
    assert (asked["split"] == "test_swapped").all() and len(asked) == NUMBER
    shown = asked["path"].str.removeprefix("images/")
    assert shown.str.startswith("u").all() and "u5" not in {*shown}
    rare = {**tables, "pairs": tables["pairs"].query("adjective != 'purple'")}
    assert (generate(pair_photographs, rare).manifest["status"] == "skipped").all()
