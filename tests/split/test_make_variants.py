"""The variants of a prompt with other adjectives of its noun, which must be false of the image."""

from collections import Counter
from pathlib import Path

import pandas as pd
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from compclip.core.artifacts.heldout import pair_names
from compclip.core.artifacts.parquet import check_table, read_table
from compclip.core.tables import VARIANTS
from compclip.split.make_variants import CaptionPrompt, make_variants, variants_of
from compclip.split.swap_adjectives import SwapOption, apply, swap_adjectives
from compclip.text.lexicon import Lexicon
from tests.split.stage import inputs, run
from tests.split.worlds import (
    COLORS,
    LEXICONS,
    NOUNS,
    SHAPES,
    captions_table,
    mention,
    mentions,
    pairs_table,
    world,
)


@pytest.mark.parametrize(
    ("text", "pair", "said", "swap", "variants", "missing"),
    [
        # Every other ranked adjective, with its article.
        (
            "an orange bill, a red belly",
            "orange_bill",
            ["orange bill", "red belly"],
            {},
            {new: f"a {new} bill, a red belly" for new in ("black", "blue", "gray", "red")},
            {},
        ),
        (
            "an orange bill, a red belly",
            "red_belly",
            ["orange bill", "red belly"],
            {},
            {new: f"an orange bill, a {new} belly" for new in ("black", "blue", "gray")}
            | {"orange": "an orange bill, an orange belly"},
            {},
        ),
        # None that describes the noun elsewhere.
        (
            "red bill that is black",
            "red_bill",
            ["red bill", "black bill predicative"],
            {},
            {new: f"{new} bill that is black" for new in ("blue", "gray", "orange")},
            {"describes the noun elsewhere": 1},
        ),
        # A swapped prompt keeps its other changes; among its variants is what the caption said
        # before.
        (
            "a red bill, black wings",
            "blue_bill",
            ["red bill", "black wings"],
            {"bill": "blue", "wing": "orange"},
            {new: f"a {new} bill, orange wings" for new in ("black", "gray", "red")}
            | {"orange": "an orange bill, orange wings"},
            {},
        ),
        # A pair that is said twice is replaced twice.
        (
            "red wings, wings that are red",
            "red_wing",
            ["red wings", "red wings predicative 1"],
            {},
            {
                new: f"{new} wings, wings that are {new}"
                for new in ("black", "blue", "gray", "orange")
            },
            {},
        ),
        ("a red bill", "red_bill", ["red bill shared"], {}, {}, {"shared or disputed": 1}),
        ("a red bill", "blue_bill", ["red bill"], {}, {}, {"no pair": 1}),
        # None that contradicts what is said of the noun: not round and pointed.
        (
            "a small bill that is pointed",
            "small_bill",
            ["small bill", "pointed bill predicative"],
            {},
            {
                new: f"a {new} bill that is pointed"
                for new in ("curved", "large", "long", "sharp", "short", "thin")
            },
            {"contradiction": 1, "describes the noun elsewhere": 1},
        ),
    ],
)
def test_variants_of_a_prompt(
    text: str,
    pair: str,
    said: list[str],
    swap: dict[str, str],
    variants: dict[str, str],
    missing: dict[str, int],
) -> None:
    """swap: the new adjective of each noun that was swapped; missing: the reasons for variants that
    are not there.
    """
    found, reasons = mentions(text, *said), Counter()
    changes = apply(
        text, [SwapOption.of(m.noun, swap[m.noun], (m,)) for m in found if m.noun in swap]
    )[1]
    forms = SHAPES if pair == "small_bill" else COLORS
    others = sorted(set(forms.values()) - {pair.split("_")[0]})
    prompt = CaptionPrompt(text, pair, found, changes)
    made = variants_of(prompt, others, forms, NOUNS, reasons)
    assert {adjective: variant for adjective, variant, _ in made} == variants and reasons == missing


@settings(max_examples=15)
@given(st.integers(0, 10**6))
def test_variants_differ_from_their_prompt_in_one_adjective_alone(seed: int) -> None:
    data = world(seed, images=20)
    heldout = pair_names(data.ranking).tolist()[5:9]
    splits = data.images.assign(split="test_seen")
    swapped, _ = swap_adjectives(data.captions, data.pairs, splits, heldout, *LEXICONS, seed=seed)
    named = data.pairs.assign(pair=pair_names(data.pairs))
    seen = (
        named[named["relation"] == "adjacent"]
        .drop_duplicates(["image_id", "caption_id"])
        .assign(split="test_seen")
    )
    columns = ["split", "image_id", "caption_id", "pair"]
    prompts = pd.concat(
        [seen[columns], swapped.assign(split="test_swapped")[columns]], ignore_index=True
    )
    table, counts = make_variants(
        prompts, data.captions, data.pairs, data.ranking, *LEXICONS, swapped
    )
    check_table(table, VARIANTS, "variants")
    assert len(table)
    key = ["image_id", "caption_id"]
    shown = {
        "test_seen": data.captions.set_index(key)["text"],
        "test_swapped": swapped.set_index(key)["swapped_text"],
    }
    asked = prompts.set_index(["split", *key])["pair"]
    ranked = set(pair_names(data.ranking))
    for row in table.itertuples():
        own, noun = asked[row.split, row.image_id, row.caption_id].rsplit("_", 1)
        assert row.adjective != own and f"{row.adjective}_{noun}" in ranked
        before, after = (
            [
                COLORS.get(word, "a" if word == "an" else word)
                for word in text.lower().replace(".", " ").split()
            ]
            for text in (shown[row.split][row.image_id, row.caption_id], row.text)
        )
        assert {(a, b) for a, b in zip(before, after, strict=True) if a != b} == {
            (own, row.adjective)
        }
    assert table.equals(table.drop_duplicates(["split", *key, "adjective"]))
    sure = data.pairs[data.pairs["relation"] != "disputed"]
    said = {(row.image_id, row.adjective, row.noun) for row in sure.itertuples()}
    for row in table[table["split"] == "test_seen"].itertuples():
        noun = asked[row.split, row.image_id, row.caption_id].rsplit("_", 1)[1]
        assert (row.image_id, row.adjective, noun) not in said
    assert {split: of["variants"] for split, of in counts.items()} == table[
        "split"
    ].value_counts().to_dict()
    assert counts["test_swapped"]["ceiling"] == 1 > counts["test_seen"]["ceiling"]


def told(rows: dict[str, list[str]], *said: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The captions of each image, and pairs of the caption that each ``image number adjective
    noun`` names.
    """
    captions = captions_table(
        [(image, n, text) for image, texts in rows.items() for n, text in enumerate(texts)]
    )
    pairs = []
    for image, number, adjective, noun in map(str.split, said):
        found = mention(rows[image][int(number)], adjective, noun, adjective)
        pairs.append((image, int(number), *vars(found).values()))
    return captions, pairs_table(pairs)


SIZES = Lexicon(
    "size",
    dict(zip(*[["large", "small", "long", "short", "fat"]] * 2, strict=True)),
    (("large", "small"), ("long", "short")),
)


def ranking_of(*pairs: str) -> pd.DataFrame:
    adjectives, nouns = zip(*(pair.split("_") for pair in pairs), strict=True)
    return pd.DataFrame({"adjective": adjectives, "noun": nouns})


def test_alternatives_are_of_the_group_and_stated_by_no_other_caption() -> None:
    captions, pairs = told(
        {"a": ["a long bill"], "b": ["a fat bill"]}, "a 0 long bill", "b 0 fat bill"
    )
    ranking = ranking_of("fat_bill", "large_bill", "long_bill", "short_bill", "small_bill")
    prompts = captions.assign(split="test_seen", pair=["long_bill", "fat_bill"])
    table, counts = make_variants(prompts, captions, pairs, ranking, SIZES, LEXICONS[1])
    assert table["text"].tolist() == ["a short bill"]
    assert counts["test_seen"] == {
        "prompts": 2,
        "with_variants": 1,
        "variants": 1,
        "excluded": {"may both be true": 7},
        "ceiling": 1.0,
    }
    texts = {
        "a": ["a red bill", "a blue bill", "a gray bill", "a black wing"],
        "b": ["a red bill", "a gray wing"],
    }
    said = [
        "a 0 red bill",
        "a 1 blue bill",
        "a 2 gray bill",
        "a 3 black wing",
        "b 0 red bill",
        "b 1 gray wing",
    ]
    captions, pairs = told(texts, *said)
    ranking = ranking_of("black_bill", "blue_bill", "gray_bill", "red_bill")
    prompts = captions[captions["text"] == "a red bill"].assign(
        split="test_unseen", pair="red_bill"
    )
    table, counts = make_variants(prompts, captions, pairs, ranking, *LEXICONS)
    others = table.groupby("image_id")["adjective"].agg(list)
    assert others.to_dict() == {"a": ["black"], "b": ["black", "blue", "gray"]}
    assert counts["test_unseen"] == {
        "prompts": 2,
        "with_variants": 2,
        "variants": 4,
        "excluded": {"stated by another caption": 2},
        "ceiling": pytest.approx((1 / 3 + 1) / 2, abs=1e-6),
    }
    table, counts = make_variants(
        prompts.assign(split="test_swapped"), captions, pairs, ranking, *LEXICONS
    )
    assert len(table) == 6 and counts["test_swapped"]["ceiling"] == 1, (
        "the captions are of another image"
    )
    relations = [
        "disputed" if adjective == "gray" else "adjacent" for adjective in pairs["adjective"]
    ]
    table, _ = make_variants(
        prompts, captions, pairs.assign(relation=relations), ranking, *LEXICONS
    )
    assert table.groupby("image_id")["adjective"].agg(list)["a"] == ["black", "gray"], (
        "what is disputed does not count"
    )
    # What is said of a part is not an alternative.
    for noun, part in (
        ("feather", "wing"),
        ("wing", "secondary"),
        ("secondary", "wing"),
        ("bill", "wing"),
    ):
        captions, pairs = told(
            {"a": [f"a red {noun}, a blue {part}", f"a gray {part}"]},
            f"a 0 red {noun}",
            f"a 0 blue {part}",
            f"a 1 gray {part}",
        )
        ranking = ranking_of(*(f"{color}_{noun}" for color in ("black", "blue", "gray", "red")))
        prompts = captions[:1].assign(split="test_seen", pair=f"red_{noun}")
        table, counts = make_variants(prompts, captions, pairs, ranking, *LEXICONS)
        assert table["adjective"].tolist() == (
            ["black"] if noun != "bill" else ["black", "blue", "gray"]
        )
        dropped = (
            {"describes the noun elsewhere": 1, "stated by another caption": 1}
            if noun != "bill"
            else {}
        )
        assert counts["test_seen"]["excluded"] == dropped


def test_the_step_of_a_source_with_one_value_ignores_groups(tmp_path: Path) -> None:
    folder = inputs(tmp_path)
    for rule in ("sample_heldout", "make_splits", "swap_adjectives", "make_prompts"):
        run(rule, folder)
    grouped = {"groups": [["red", "blue"]], **yaml.safe_load((folder / "color.yaml").read_text())}
    (folder / "grouped.yaml").write_text(yaml.safe_dump(grouped))
    variants = {}
    for one_value, lexicon in ((False, "color"), (True, "grouped"), (False, "grouped")):
        run("make_variants", folder, one_value=one_value, adjectives=folder / f"{lexicon}.yaml")
        variants[one_value, lexicon] = read_table(folder / "variants.parquet", VARIANTS)
    assert variants[True, "grouped"].equals(variants[False, "color"])
    assert (
        set(variants[False, "grouped"]["adjective"])
        <= {"red", "blue"}
        < set(variants[False, "color"]["adjective"])
    )
