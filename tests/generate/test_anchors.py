"""Habit and stand-ins: photographs that do not show a held-out pair, and photographs that do."""

from collections import Counter

import pandas as pd
import pytest

from compclip.generate.generator import Context, Generated, Settings
from compclip.generate.generators import habit, stand_ins

NUMBER = 40
KEYS = ["image_id", "caption_id", "draw", "split"]


def prompts_of(split: str, pair: str | None, ids: list[str]) -> pd.DataFrame:
    table = pd.DataFrame({"image_id": ids, "caption_id": 0, "draw": 0, "split": split, "pair": pair})
    return table.assign(text="a bird", file_name=split + table["image_id"])


@pytest.fixture
def tables() -> dict[str, pd.DataFrame]:
    """Judged images of test_seen: thirty with a red bill, ten with a blue one; of test_unseen: with a purple bill."""
    seen, unseen = [f"s{n}" for n in range(NUMBER)], [f"u{n}" for n in range(NUMBER)]
    rows = [(image, "red" if n < 30 else "blue", "bill", "adjacent") for n, image in enumerate(seen)]
    rows += [(image, "purple", "bill", "adjacent") for image in unseen]
    rows += [
        ("s0", "green", "bill", "disputed"),
        ("s1", "green", "wing", "adjacent"),
        ("t0", "red", "bill", "adjacent"),
    ]
    prompts = [
        prompts_of("test_seen", "red_bill", seen),
        prompts_of("test_unseen", "purple_bill", unseen),
        prompts_of("test_swapped", "purple_bill", seen),
    ]
    asked = pd.concat(prompts, ignore_index=True)
    variants = pd.DataFrame({"split": "test_unseen", "image_id": unseen, "caption_id": 0})
    variants = pd.concat([variants.assign(adjective=adjective) for adjective in ("blue", "green", "red")])
    images = pd.DataFrame({"image_id": [*seen, *unseen, "t0"]})
    return {
        "pairs": pd.DataFrame(rows, columns=["image_id", "adjective", "noun", "relation"]),
        "prompts": asked,
        "variants": variants,
        "images": images.assign(path="images/" + images["image_id"]),
    }


def generate(kind: object, tables: dict[str, pd.DataFrame], seed: int = 0) -> Generated:
    asked = tables["prompts"]
    asked = asked[asked["split"].isin(kind.SPLITS)].reset_index(drop=True)
    return kind.generate(Settings(), asked, Context(tables, None, "", "color", seed))


def test_habit_shows_the_noun_with_a_usual_adjective_of_the_group(tables: dict[str, pd.DataFrame]) -> None:
    made = generate(habit, tables)
    unseen, swapped = (made.manifest[made.manifest["split"] == name] for name in ("test_unseen", "test_swapped"))
    assert (swapped["path"] == "images/" + swapped["image_id"]).all(), "the photograph before the swap"
    shown = unseen["path"].str.removeprefix("images/")
    assert shown.str.startswith("s").all(), "judged images of test_seen alone"
    colors = Counter("red" if int(image[1:]) < 30 else "blue" for image in shown)
    assert 22 <= colors["red"] <= 38 and colors["blue"] >= 2, "as frequent as the pairs are"
    uses = Counter(made.manifest["path"])
    assert made.summary["reuse"] == {"photographs": len(uses), "uses_at_most": max(uses.values())}
    assert generate(habit, tables).manifest.equals(made.manifest)
    assert not generate(habit, tables, seed=1).manifest.equals(made.manifest)
    blue = {**tables, "variants": tables["variants"].query("adjective == 'blue' and image_id != 'u3'")}
    made = generate(habit, blue).manifest.query("split == 'test_unseen'").set_index("image_id")
    assert made.loc["u3", "status"] == "skipped", "no alternatives, so nothing is measured"
    shown = made["path"].dropna().str.removeprefix("images/s").astype(int)
    assert len(shown) == NUMBER - 1 and (shown >= 30).all()


def test_stand_ins_show_the_pair(tables: dict[str, pd.DataFrame]) -> None:
    tables["images"].loc[tables["images"]["image_id"] == "u5", "path"] = None
    made = generate(stand_ins, tables)
    assert (made.manifest["split"] == "test_swapped").all() and len(made.manifest) == NUMBER
    shown = made.manifest["path"].str.removeprefix("images/")
    assert shown.str.startswith("u").all() and "u5" not in {*shown}
    rare = {**tables, "pairs": tables["pairs"].query("adjective != 'purple'")}
    assert (generate(stand_ins, rare).manifest["status"] == "skipped").all()
