"""The copies of a prompt with every other ranked adjective of its noun."""

from collections import Counter

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compclip.core.heldout import pair_names
from compclip.core.tables import VARIANTS
from compclip.io import check_table
from compclip.split.make_variants import make_variants, variants_of
from compclip.split.swap_adjectives import Candidate, apply, make_swaps
from tests.split.split_worlds import COLORS, LEXICONS, NOUNS, SHAPES, mentions, world


@pytest.mark.parametrize(
    ("text", "pair", "said", "swap", "variants", "missing"),
    [
        # Every other ranked adjective, with its article.
        (
            "an orange bill, a red belly", "orange_bill", ["orange bill", "red belly"], {},
            {new: f"a {new} bill, a red belly" for new in ("black", "blue", "gray", "red")}, {},
        ),
        (
            "an orange bill, a red belly", "red_belly", ["orange bill", "red belly"], {},
            {new: f"an orange bill, a {new} belly" for new in ("black", "blue", "gray")}
            | {"orange": "an orange bill, an orange belly"}, {},
        ),
        # None that describes the noun elsewhere.
        (
            "red bill that is black", "red_bill", ["red bill", "black bill predicative"], {},
            {new: f"{new} bill that is black" for new in ("blue", "gray", "orange")},
            {"describes the noun elsewhere": 1},
        ),
        # A swapped prompt keeps its other changes; among its variants is what the caption said before.
        (
            "a red bill, black wings", "blue_bill", ["red bill", "black wings"], {"bill": "blue", "wing": "orange"},
            {new: f"a {new} bill, orange wings" for new in ("black", "gray", "red")}
            | {"orange": "an orange bill, orange wings"}, {},
        ),
        # A pair that is said twice is replaced twice.
        (
            "red wings, wings that are red", "red_wing", ["red wings", "red wings predicative 1"], {},
            {new: f"{new} wings, wings that are {new}" for new in ("black", "blue", "gray", "orange")}, {},
        ),
        ("a red bill", "red_bill", ["red bill shared"], {}, {}, {"shared or disputed": 1}),
        ("a red bill", "blue_bill", ["red bill"], {}, {}, {"no pair": 1}),
        # None that contradicts what is said of the noun: not round and pointed.
        (
            "a small bill that is pointed", "small_bill", ["small bill", "pointed bill predicative"], {},
            {new: f"a {new} bill that is pointed" for new in ("curved", "large", "long", "sharp", "short", "thin")},
            {"contradiction": 1, "describes the noun elsewhere": 1},
        ),
    ],
)  # fmt: skip
def test_variants_of_a_prompt(
    text: str, pair: str, said: list[str], swap: dict[str, str], variants: dict[str, str], missing: dict[str, int]
) -> None:
    """swap: the new adjective of each noun that was swapped; missing: the reasons for variants that are not there."""
    found, reasons = mentions(text, *said), Counter()
    changes = apply(text, [Candidate(m.noun, swap[m.noun], (m,)) for m in found if m.noun in swap])[1]
    forms = SHAPES if pair == "small_bill" else COLORS
    made = variants_of(text, pair, found, changes, sorted(set(forms.values())), forms, NOUNS, reasons)
    assert {adjective: variant for adjective, variant, _ in made} == variants and reasons == missing


@settings(max_examples=15)
@given(st.integers(0, 10**6))
def test_variants_differ_from_their_prompt_in_one_adjective_alone(seed: int) -> None:
    data = world(seed, images=20)
    heldout = pair_names(data.ranking).tolist()[5:9]
    swapped, _ = make_swaps(data.captions, data.pairs, heldout, COLORS, NOUNS, seed, "d", "color")
    named = data.pairs.assign(pair=pair_names(data.pairs))
    seen = named[named["relation"] == "adjacent"].drop_duplicates(["image_id", "caption_id"]).assign(split="test_seen")
    columns = ["split", "image_id", "caption_id", "pair"]
    prompts = pd.concat([seen[columns], swapped.assign(split="test_swapped")[columns]], ignore_index=True)
    table = make_variants(prompts, data.captions, data.pairs, data.ranking, *LEXICONS, swapped)
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
