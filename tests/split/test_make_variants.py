"""The copies of a prompt with every other ranked adjective of its noun."""

from collections import Counter

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.split.split_worlds import COLORS, NOUNS, SHAPES, mention, world
from workflow_scripts.core.heldout import pair_names
from workflow_scripts.core.io import check_table
from workflow_scripts.core.tables import VARIANTS
from workflow_scripts.split.make_variants import make_variants, variants_of
from workflow_scripts.split.swap_adjectives import Candidate, apply, swap_adjectives
from workflow_scripts.split.wording import Mention

COLORS_RANKED = ["black", "blue", "gray", "orange", "red"]


def offered(
    text: str, pair: str, *mentions: Mention, swap: dict[str, str] | None = None, forms: dict[str, str] = COLORS
) -> tuple[dict[str, str], Counter[str]]:
    """The variants of a prompt by their adjectives, and the reasons for those that are missing.

    ``swap``: the new adjective of each noun that was swapped.
    """
    changed = [Candidate(m.noun, swap[m.noun], (m,)) for m in mentions if swap and m.noun in swap]
    ranked, reasons = sorted(set(forms.values())), Counter()
    changes = apply(text, changed)[1]
    found = variants_of(text, pair, mentions, changes, ranked, forms, NOUNS, reasons)
    return {adjective: variant for adjective, variant, _ in found}, reasons


def test_every_other_ranked_adjective_with_its_article() -> None:
    text = "an orange bill and a red belly"
    found, reasons = offered(text, "orange_bill", mention(text, "orange", "bill"), mention(text, "red", "belly"))
    assert found == {new: f"a {new} bill and a red belly" for new in COLORS_RANKED if new != "orange"}
    found, _ = offered(text, "red_belly", mention(text, "orange", "bill"), mention(text, "red", "belly"))
    assert found["orange"] == "an orange bill and an orange belly" and "red" not in found
    assert not reasons


def test_what_describes_the_noun_elsewhere_is_no_variant() -> None:
    text = "a red bill and a bill that is black"
    said = mention(text, "red", "bill"), mention(text, "black", "bill", relation="predicative")
    found, reasons = offered(text, "red_bill", *said)
    assert found.keys() == {"blue", "gray", "orange"} and reasons == {"describes the noun elsewhere": 1}


def test_what_contradicts_is_no_variant() -> None:
    text = "a small bill that is pointed"
    said = mention(text, "small", "bill"), mention(text, "pointed", "bill", relation="predicative")
    found, reasons = offered(text, "small_bill", *said, forms=SHAPES)
    assert "round" not in found and reasons["contradiction"] == 1
    assert found["long"] == "a long bill that is pointed"


def test_a_swapped_prompt_keeps_its_other_changes() -> None:
    text = "a red bill, a gray belly and black wings"
    said = mention(text, "red", "bill"), mention(text, "gray", "belly"), mention(text, "black", "wings")
    found, _ = offered(text, "blue_bill", *said, swap={"bill": "blue", "wing": "orange"})
    # Among them what the caption said before.
    assert found == {
        new: f"{'an' if new == 'orange' else 'a'} {new} bill, a gray belly and orange wings"
        for new in ("black", "gray", "orange", "red")
    }


def test_a_pair_that_is_said_twice_is_replaced_twice() -> None:
    text = "red wings, and wings that are red"
    said = mention(text, "red", "wings"), mention(text, "red", "wings", relation="predicative", n=1)
    assert offered(text, "red_wing", *said)[0]["blue"] == "blue wings, and wings that are blue"


@pytest.mark.parametrize(
    ("relation", "pair", "reason"),
    [("shared", "red_bill", "shared or disputed"), ("adjacent", "blue_bill", "no pair")],
)
def test_prompts_without_variants(relation: str, pair: str, reason: str) -> None:
    text = "a red bill"
    assert offered(text, pair, mention(text, "red", "bill", relation=relation)) == ({}, {reason: 1})


@settings(max_examples=15)
@given(st.integers(0, 10**6))
def test_variants_differ_from_their_prompt_in_one_adjective_alone(seed: int) -> None:
    data = world(seed, images=20)
    heldout = pair_names(data.ranking).tolist()[5:9]
    swapped, _ = swap_adjectives(data.captions, data.pairs, heldout, COLORS, NOUNS, seed, "d", "color")
    named = data.pairs.assign(pair=pair_names(data.pairs))
    seen = named[named["relation"] == "adjacent"].drop_duplicates(["image_id", "caption_id"]).assign(split="test_seen")
    columns = ["split", "image_id", "caption_id", "pair"]
    prompts = pd.concat([seen[columns], swapped.assign(split="test_swapped")[columns]], ignore_index=True)
    table, _ = make_variants(prompts, data.captions, data.pairs, swapped, data.ranking, COLORS, NOUNS)
    check_table(table, VARIANTS, "variants")
    assert len(table)
    key = ["image_id", "caption_id"]
    shown = {
        "test_seen": data.captions.set_index(key)["text"], "test_swapped": swapped.set_index(key)["swapped_text"],
    }  # fmt: skip
    asked = prompts.set_index(["split", *key])["pair"]
    ranked = set(pair_names(data.ranking))
    for row in table.itertuples():
        own, noun = asked[row.split, row.image_id, row.caption_id].rsplit("_", 1)
        assert row.adjective != own and f"{row.adjective}_{noun}" in ranked
        before, after = (
            [COLORS.get(word, "a" if word == "an" else word) for word in text.lower().replace(".", " ").split()]
            for text in (shown[row.split][row.image_id, row.caption_id], row.text)
        )
        assert {(a, b) for a, b in zip(before, after, strict=True) if a != b} == {(own, row.adjective)}
    assert table.equals(table.drop_duplicates(["split", *key, "adjective"]))
