"""The swapped captions."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from compclip.core.artifacts.files import read_json
from compclip.core.artifacts.heldout import pair_names
from compclip.core.artifacts.parquet import check_table
from compclip.core.tables import SWAPPED
from compclip.pairs.counts import nouns_of
from compclip.split.config import SwapRule
from compclip.split.swap_adjectives import (
    REPEATED,
    apply,
    candidates_of,
    choose_changes,
    swap_adjectives,
)
from compclip.split.wording import article, cased, contradicts
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

ARTICLE = re.compile(r"(?i)(?<![^\W_])an?(?=\s+$)")


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.integers(0, 10**6), st.sampled_from(["distinct", "published"]))
def test_what_a_swap_promises(seed: int, other: int, rule: SwapRule) -> None:
    data = world(seed, images=20, captions=3)
    generator = np.random.default_rng(other)
    names = [f"{a}_{n}" for a in sorted(set(COLORS.values())) for n in sorted(set(NOUNS.values()))]
    heldout = [str(p) for p in generator.choice(names, 5, replace=False)]
    # test_seen holds no held-out pair, in any relation.
    bad = data.pairs.loc[pair_names(data.pairs).isin(heldout), "image_id"]
    seen = data.captions[~data.captions["image_id"].isin(bad)]
    splits = seen[["image_id"]].drop_duplicates().assign(split="test_seen")
    swapped, _ = swap_adjectives(
        data.captions, data.pairs, splits, heldout, *LEXICONS, rule=rule, seed=other
    )
    check_table(swapped, SWAPPED, "swapped")
    original = seen.set_index(["image_id", "caption_id"])["text"]
    fixed = data.pairs[data.pairs["relation"].isin(["shared", "disputed"])]
    never = set(zip(fixed["image_id"], fixed["caption_id"], fixed["adjective_start"], strict=True))
    counts = Counter(
        pair
        for changes in swapped["changes"]
        for pair in {f"{c['new_adj']}_{c['noun']}" for c in changes}
    )
    for row in swapped.itertuples(index=False):
        assert row.text == original[row.image_id, row.caption_id]
        pairs = {f"{c['new_adj']}_{c['noun']}" for c in row.changes}
        assert pairs <= set(heldout)
        assert row.pair == min(pairs, key=lambda p: (counts[p], p))
        back, copied = "", 0
        for change in row.changes:
            assert change["new_adj"] != change["original_adj"]
            assert (row.image_id, row.caption_id, change["start"]) not in never
            assert (
                row.swapped_text[change["new_start"] : change["new_end"]].lower()
                == change["new_adj"]
            )
            assert (
                COLORS[row.text[change["start"] : change["end"]].lower()] == change["original_adj"]
            )
            gap, old = (
                row.swapped_text[copied : change["new_start"]],
                row.text[len(back) : change["start"]],
            )
            assert ARTICLE.sub("a", gap) == ARTICLE.sub("a", old)
            if ARTICLE.search(gap):
                assert ARTICLE.search(gap).group().lower() == article(change["new_adj"])
            back = row.text[: change["end"]]
            copied = change["new_end"]
        assert row.swapped_text[copied:] == row.text[len(back) :]
    shuffled = (
        data.captions.sample(frac=1, random_state=1),
        data.pairs.sample(frac=1, random_state=2),
    )
    again, _ = swap_adjectives(*shuffled, splits, heldout, *LEXICONS, rule=rule, seed=other)
    pd.testing.assert_frame_equal(swapped, again)


def test_articles_capitals_and_contradictions() -> None:
    text = "Red wings, a RED bill and an orange belly"
    held = {"wing": ["orange"], "bill": ["orange"], "belly": ["blue"]}
    said = (
        mention(text, "Red", "wings"),
        mention(text, "RED", "bill"),
        mention(text, "orange", "belly"),
    )
    found = candidates_of(text, said, held, COLORS, NOUNS, Counter())
    swapped, changes = apply(text, found)
    assert swapped == "Orange wings, an ORANGE bill and a blue belly"
    assert [(c["noun"], c["original_adj"], c["new_adj"]) for c in changes] == [
        ("wing", "red", "orange"),
        ("bill", "red", "orange"),
        ("belly", "orange", "blue"),
    ]
    assert (changes[1]["start"], changes[1]["end"]) == (13, 16)
    assert (changes[1]["new_start"], changes[1]["new_end"]) == (17, 23)
    assert [cased("blue", w) for w in ("RED", "Red", "red", "R")] == [
        "BLUE",
        "Blue",
        "blue",
        "Blue",
    ]
    assert [article(w) for w in ("orange", "elongated", "blue", "uniform")] == [
        "an",
        "an",
        "a",
        "a",
    ]
    assert contradicts("long", "short") and not contradicts("long", "thin")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a bird with jet black wings", "black wings"),  # part of a phrase
        ("a bird with off black wings", "black wings"),
        ("a bird with brownish black wings", "black wings"),
        ("a bird with gray black wings", "black wings"),  # half of a color
        ("a bird with black gray wings", "black wings"),
        ("a bird with golden black wings", "black wings"),
        ("a bird with red and black wings", "black wings"),  # would be red and red
        ("its black wings are darker than its bill", "black wings"),  # a comparison
        ("with black wings in relation to its bill", "black wings"),
        ("a bird with black wings for its size", "black wings"),
        ("its bill is black and wings", "black wings"),  # may be the bill's
        ("black wings and belly", "black wings"),  # may be the belly's too
        ("black wings, belly", "black wings"),
        ("black striped wings", "black wings"),  # the stripes are black
        ("black and white speckled wings", "black wings"),
        ("wings that are black speckled", "black wings"),
        ("shades of black and wings", "black wings"),  # black is a noun
        ("black under its wings", "black wings"),
        ("black wings and upper belly", "black wings"),  # may be the upper belly's too
        (
            "black wings flank and belly",
            "black wings",
        ),  # flank is in no lexicon, but known as a noun
        ("black wings flank", "black wings"),
        ("black wings inner and outer feathers", "black wings"),
        ("black wings edged in white", "black wings"),
        ("a black belly and darker black wings", "black wings 1"),
        ("an all black bird with black wings", "black wings 1"),
        ("a bird that is black all over with black wings", "black wings 1"),
        ("a bill that is black and black and gray wings", "black wings 1"),
        ("gray to black wings", "black wings"),
        ("a bill as long as its wings", "long bill"),
        ("a bill too long", "long bill"),
        ("a long bill compared to its wings", "long bill"),
        ("a medium to large bill", "large bill"),
        ("a sharply pointed bill", "pointed bill"),
        ("a downward curved bill", "curved bill"),
        ("a stick thin bill", "thin bill"),
        ("a round shaped belly", "round belly"),
        ("a bill that is round in shape", "round bill"),
        ("a small bill for body", "small bill"),
        ("a small bill and a belly that is smaller", "small bill"),
        ("a small bill though the wings are long", "small bill"),
        ("a large wing spanned bird", "large wing"),
        ("a large bill size", "large bill"),
        ("a large wing white span", "large wing"),
        ("long spanned wings", "long wings"),
        ("a bill almost long as its wings", "long bill"),
        ("a wing tip and a long spread wing", "long wing"),
        ("a small white bellied bird", "small bellied"),
    ],
)
def test_wordings_that_no_swap_touches(text: str, said: str) -> None:
    (at,) = mentions(text, said)
    forms, held = (COLORS, ["red"]) if at.adjective == "black" else (SHAPES, ["flat", "straight"])
    assert candidates_of(text, [at], {at.noun: held}, forms, [*NOUNS, "flank"], Counter()) == []


@pytest.mark.parametrize(
    ("text", "color", "held", "possible"),
    [
        ("a bird with light red wings", "red", ["black", "blue"], {"blue_wing"}),
        ("a bird with bright red wings", "red", ["gray", "orange"], {"orange_wing"}),
        ("a bird with dark black wings", "black", ["red"], {"red_wing"}),
        # What is darker elsewhere, or excepted, is no new color.
        ("black wings and a darker gray belly", "black", ["gray", "red"], {"red_wing"}),
        ("a gray bird except for its black wings", "black", ["gray", "red"], {"red_wing"}),
        # A coordinated noun with its own predicate does not forbid.
        ("black wings and belly that is blue", "black", ["red"], {"red_wing"}),
        # A color as a noun; a predicate that may be about the bird or a place; a plain one.
        ("wings that are blue with red on its bill", "red", ["black"], set()),
        ("a bird with long wings is blue", "blue", ["black"], set()),
        ("its wings are blue colored on top", "blue", ["black"], set()),
        ("a bird with wings that are blue in color", "blue", ["red"], {"red_wing"}),
    ],
)
def test_which_colors_are_possible(
    text: str, color: str, held: list[str], possible: set[str]
) -> None:
    found = candidates_of(
        text, [mention(text, color, "wings")], {"wing": held}, COLORS, NOUNS, Counter()
    )
    new = {candidate.pair: apply(text, [candidate])[0] for candidate in found}
    assert new == {pair: text.replace(color, pair.partition("_")[0]) for pair in possible}


MORE = {
    **NOUNS,
    **{noun: noun for noun in ("bird", "body", "feathers", "flower", "petals", "eye", "ring")},
}


@pytest.mark.parametrize(
    ("text", "said", "held", "swapped"),
    [
        ("a red belly medium length beak", ["red beak"], ["blue_bill"], None),  # a nearer noun
        # Shared and disputed adjectives; one that two readings give to two nouns.
        (
            "red wings with a belly",
            ["red wings", "red belly shared"],
            ["blue_wing", "blue_belly"],
            None,
        ),
        ("red wings", ["red wings disputed"], ["blue_wing"], None),
        ("wings red belly", ["red belly", "red wings"], ["blue_wing", "blue_belly"], None),
        # A noun that is named twice changes in both places, or not at all.
        (
            "red wings with red wings",
            ["red wings", "red wings 1"],
            ["blue_wing"],
            "blue wings with blue wings",
        ),
        ("red wings with gray wings", ["red wings", "gray wings"], ["blue_wing"], None),
        # What is said of the whole bird counts for its body: it would be red and black, or large
        # and short.
        ("a large bird, round body", ["large bird", "round body"], ["short_body"], None),
        (
            "a large bird, round body",
            ["large bird", "round body"],
            ["curved_body"],
            "a large bird, curved body",
        ),
        ("black bird, black feathers", ["black bird", "black feathers 1"], ["red_feather"], None),
        (
            "black bird, black bill",
            ["black bird", "black bill 1"],
            ["red_bill"],
            "black bird, red bill",
        ),
        # `a pointed beak. Feathers are gray`: a beak's, not the feathers'.
        ("a pointed beak feathers are gray", ["pointed feathers"], ["thin_feather"], None),
        ("pointed belly feathers", ["pointed feathers"], ["thin_feather"], "thin belly feathers"),
        # `red` is not a participle, and `belly` not an adverb.
        ("a red belly long wings", ["long wings"], ["thin_wing"], "a red belly thin wings"),
        ("a long bill red wings", ["long bill"], ["thin_bill"], "a thin bill red wings"),
        # Not round beside sharp, nor large beside small; shapes stand in a row without making one.
        ("a small sharp bill", ["small bill", "sharp bill"], ["large_bill"], "a large sharp bill"),
        ("a small sharp bill", ["small bill", "sharp bill"], ["round_bill"], "a small round bill"),
        ("a long pointed bill", ["long bill"], ["thin_bill"], "a thin pointed bill"),
        # A flower has the color of its petals.
        ("a red flower, red petals", ["red flower", "red petals 1"], ["blue_flower"], None),
        ("a red flower, old petals", ["red flower"], ["blue_flower"], "a blue flower, old petals"),
        ("a red eye ring patch", ["red patch"], ["blue_patch"], "a blue eye ring patch"),
    ],
)
def test_what_other_words_forbid(
    text: str, said: list[str], held: list[str], swapped: str | None
) -> None:
    by_noun = {noun: [adjective] for adjective, noun in (pair.split("_") for pair in held)}
    forms = COLORS if held[0].split("_")[0] in COLORS else SHAPES
    found = candidates_of(text, mentions(text, *said), by_noun, forms, MORE, Counter())
    assert [apply(text, [candidate])[0] for candidate in found] == ([swapped] if swapped else [])


def test_nouns_are_known_without_a_lexicon() -> None:
    captions = captions_table([("i", 0, "A mottled Flank and red red")])
    rows = [
        ("i", 0, "mottled", "flank", 2, 9, 10, 15, "adjacent"),
        ("i", 0, "red", "red", 20, 23, 24, 27, "disputed"),  # as often the one as the other
        ("j", 0, "red", "cat", 0, 3, 4, 7, "adjacent"),  # of no caption given
    ]
    assert nouns_of(captions, pairs_table(rows), ["i"]) == {"flank"}
    captions = captions_table([("i", 0, "a bird")])
    splits = pd.DataFrame({"image_id": ["i"], "split": ["test_seen"]})
    swapped, summary = swap_adjectives(captions, pairs_table([]), splits, ["red_wing"], *LEXICONS)
    check_table(swapped, SWAPPED, "swapped")
    counts = {"captions": 1, "swapped": 0, "exclusive": 0}
    assert summary == {**counts, "pairs": {"red_wing": 0}, "excluded": {}, "seed": 0}


GROUPED = Lexicon("shape", SHAPES, (("long", "short"), ("small", "large"), ("round", "pointed")))


def shape_swaps(
    texts: list[str], heldout: list[str], shapes: Lexicon, rule: SwapRule = "distinct"
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Swaps of captions whose listed words `adjective noun` are all pairs."""
    captions = captions_table([(f"{n:02d}", 0, text) for n, text in enumerate(texts)])
    occurrences = []
    for n, text in enumerate(texts):
        for match in re.finditer(r"\b(\w+) (wings|belly|bill)", text):
            noun = NOUNS[match[2]]
            offsets = *match.span(1), *match.span(2)
            occurrences.append((f"{n:02d}", 0, match[1], noun, *offsets, "adjacent"))
    splits = captions[["image_id"]].assign(split="test_seen")
    return swap_adjectives(
        captions, pairs_table(occurrences), splits, heldout, shapes, LEXICONS[1], rule=rule
    )


COLOR_LEXICON = LEXICONS[0]


def test_a_swap_gives_no_noun_the_adjective_of_another() -> None:
    texts = ["red wings and a blue belly"] * 8
    swapped, summary = shape_swaps(texts, ["blue_wing", "orange_belly"], COLOR_LEXICON)
    assert set(swapped["swapped_text"]) == {"red wings and an orange belly"}
    assert summary["excluded"] == {REPEATED: 8}


def test_a_caption_whose_only_swap_repeats_an_adjective_is_skipped() -> None:
    texts = ["red wings and a blue belly", "red wings and a gray belly"]
    swapped, summary = shape_swaps(texts, ["blue_wing"], COLOR_LEXICON)
    assert swapped["swapped_text"].tolist() == ["blue wings and a gray belly"]
    assert (summary["swapped"], summary["excluded"]) == (1, {REPEATED: 1})


def test_an_adjective_that_may_be_of_another_noun_is_not_repeated() -> None:
    text = "red wings with a blue belly"
    (option,) = candidates_of(
        text, mentions(text, "red wings"), {"wing": ["blue"]}, COLORS, NOUNS, Counter()
    )
    assert option.repeats(mentions(text, "red wings", "blue belly disputed"))
    assert not option.repeats(mentions(text, "red wings"))


def test_a_noun_that_is_named_twice_gets_one_adjective_in_both_places() -> None:
    text = "red wings, red wings and a gray belly"
    swapped, _ = shape_swaps([text], ["blue_wing"], COLOR_LEXICON)
    assert swapped["swapped_text"].tolist() == ["blue wings, blue wings and a gray belly"]


def test_the_published_rule_may_repeat_an_adjective() -> None:
    swapped, summary = shape_swaps(
        ["red wings and a blue belly"], ["blue_wing"], COLOR_LEXICON, "published"
    )
    assert swapped["swapped_text"].tolist() == ["blue wings and a blue belly"]
    assert summary["excluded"] == {}


def test_a_swap_changes_one_noun_though_several_have_candidates() -> None:
    texts = [*["red wings"] * 4, "red wings and a gray belly and a black bill"]
    heldout = ["blue_wing", "orange_belly", "red_bill"]
    numbers = {}
    for rule in ("distinct", "published"):
        swapped, _ = shape_swaps(texts, heldout, COLOR_LEXICON, rule)
        numbers[rule] = len(swapped["changes"].iloc[-1])
    assert numbers == {"distinct": 1, "published": 2}


def test_an_adjective_that_excludes_the_original_one_is_preferred() -> None:
    texts = ["a bird with short wings and a small belly"] * 12
    heldout = ["long_wing", "pointed_wing", "curved_belly"]
    swapped, summary = shape_swaps(texts, heldout, GROUPED)
    # Only `long` excludes the original adjective; another change would make the swap uncertain.
    assert set(swapped["swapped_text"]) == {"a bird with long wings and a small belly"}
    assert summary["exclusive"] == 12
    # Without groups, all words exclude each other, and no pair dominates.
    swapped, summary = shape_swaps(texts, heldout, Lexicon("shape", SHAPES))
    assert set(swapped["pair"]) == set(heldout)
    assert summary["exclusive"] == 12


def test_other_swaps_are_made_where_no_adjective_excludes_the_original_one() -> None:
    texts = ["a bird with curved wings", "a bird with short wings", "a bird with a large bill"]
    swapped, summary = shape_swaps(texts, ["long_wing", "small_bill"], GROUPED)
    assert swapped["pair"].tolist() == ["long_wing", "long_wing", "small_bill"]
    assert swapped["exclusive"].tolist() == [False, True, True]
    assert (summary["swapped"], summary["exclusive"]) == (3, 2)


def test_each_noun_with_an_exclusive_adjective_is_changed() -> None:
    # Counts of other captions leave room for a second change.
    texts = [
        *["a bird with short wings"] * 4,
        "a bird with short wings and a small belly and a large bill",
    ]
    swapped, _ = shape_swaps(
        texts, ["long_wing", "large_belly", "round_bill"], GROUPED, "published"
    )
    assert (
        swapped["swapped_text"].iloc[-1]
        == "a bird with short wings and a large belly and a large bill"
    )
    texts[-1] = "a bird with curved wings and a small belly and a pointed bill"
    swapped, _ = shape_swaps(
        texts, ["long_wing", "large_belly", "round_bill"], GROUPED, "published"
    )
    assert (
        swapped["swapped_text"].iloc[-1]
        == "a bird with curved wings and a large belly and a round bill"
    )


def test_the_step_of_a_source_with_one_value_ignores_groups(tmp_path: Path) -> None:
    folder = inputs(tmp_path)
    for rule in ("sample_heldout", "make_splits"):
        run(rule, folder)
    grouped = {"groups": [["red", "blue"]], **yaml.safe_load((folder / "color.yaml").read_text())}
    (folder / "grouped.yaml").write_text(yaml.safe_dump(grouped))
    contents, exclusive = {}, {}
    for one_value, lexicon in ((False, "color"), (True, "grouped"), (False, "grouped")):
        run("swap_adjectives", folder, one_value=one_value, adjectives=folder / f"{lexicon}.yaml")
        contents[one_value, lexicon] = (folder / "swapped.parquet").read_bytes()
        summary = read_json(folder / "swapped.json")
        exclusive[one_value, lexicon] = summary["exclusive"] / summary["swapped"]
    assert contents[True, "grouped"] == contents[False, "color"]
    assert (
        exclusive[True, "grouped"] == exclusive[False, "color"] == 1 > exclusive[False, "grouped"]
    )


def chosen_pairs(rows: list[list[str]], seed: int = 0) -> list[list[str]]:
    preferred = [range(len(row)) for row in rows]
    chosen = choose_changes(rows, preferred, np.random.default_rng(seed), "published")
    return [[row[place] for place in places] for row, places in zip(rows, chosen, strict=True)]


def test_dominant_pairs_are_avoided() -> None:
    # 60 captions offer a and b, 20 only a: a perfect choice gives each 40.
    chosen = chosen_pairs([["a_x", "b_y"]] * 60 + [["a_x"]] * 20)
    assert Counter(pairs[0] for pairs in chosen) == {"a_x": 40, "b_y": 40}
    # Further nouns are changed only up to the most frequent pair.
    assert Counter(pair for pairs in chosen for pair in pairs) == {"a_x": 40, "b_y": 40}
    assert set(chosen_pairs([["a_x"]] * 5 + [["b_y", "c_z"]])[5]) == {"b_y", "c_z"}
    # In about every sixth of these, the first choice of some caption must be changed again.
    generator = np.random.default_rng(0)
    for seed in range(100):
        rows = [generator.choice(6, generator.integers(1, 5), replace=False) for _ in range(12)]
        offered = [[f"a{i}_n{i}" for i in row] for row in rows]
        chosen = chosen_pairs(offered, seed)
        first = Counter(pairs[0] for pairs in chosen)
        for row, pairs in zip(offered, chosen, strict=True):
            assert min(first[pair] for pair in row) + 1 >= first[pairs[0]]
            assert len(set(pairs)) == len(pairs)
        total = Counter(pair for pairs in chosen for pair in pairs)
        assert max(total.values()) == max(first.values())
