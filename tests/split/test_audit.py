"""The audit must find what is planted, and nothing else."""

import json
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from compclip.core.artifacts.files import write_json
from compclip.core.artifacts.heldout import pair_names
from compclip.core.artifacts.parquet import empty_table
from compclip.core.errors import UserError
from compclip.core.identity.code import reached
from compclip.core.seeds import rng
from compclip.core.tables import PAIRS, SWAPPED
from compclip.dataset.sketch.captions import caption_scene
from compclip.dataset.sketch.world import Dice, draw_scene, make_world
from compclip.pairs.extract_pairs import extract_pairs
from compclip.pairs.rank_pairs import rank_pairs
from compclip.split.audit import audit
from compclip.split.composition import Seeding
from compclip.split.disagreement import DRAFT_NOUNS, MAX_LOST, REMEDIES
from compclip.split.make_prompts import make_prompts
from compclip.split.make_splits import drawn_splits, make_splits, pairs_of_images
from compclip.split.make_variants import make_variants
from compclip.split.reading import Reader, reader_of, stated_pairs, word_pairs
from compclip.split.swap_adjectives import swap_adjectives
from compclip.text.lexicon import Lexicon
from tests.split.planted import SEEMING, STATING
from tests.split.stage import run, write_tables
from tests.split.worlds import COLORS, LEXICONS, NOUNS, SHAPES, captions_table, said, world

MORE_NOUNS = NOUNS | {
    "patch": "patch",
    "patches": "patch",
    "primary": "primary",
    "headed": "head",
    "winged": "wing",
}


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("a bird with black wings", {"black wing"}),
        ("A Bird With GREY Wings.", {"gray wing"}),
        ("black and red wings", {"black wing", "red wing"}),
        ("black, red, and blue wings", {"black wing", "red wing", "blue wing"}),
        ("red belly and wings", {"red belly", "red wing"}),
        ("red belly, wings and beak", {"red belly", "red wing", "red bill"}),
        ("a black eye ring", {"black eyering"}),
        ("a red-headed bird", {"red head"}),
        ("the bill is red and black", {"red bill", "black bill"}),
        ("its wings are red", {"red wing"}),
        ("wings that are red", {"red wing"}),
        ("a belly and wings that are red", {"red belly", "red wing"}),
        ("a bird with a beak and wings which are red", {"red bill", "red wing"}),
        ("the belly down to the wings are red", {"red belly", "red wing"}),
        ("black with red spotted wings", {"black wing"}),
        ("a red belly and wings that is fluffy", {"red belly", "red wing"}),
        # Beside adjectives of another lexicon.
        ("a long red bill", {"red bill"}),
        ("a red long bill", {"red bill"}),
        ("short and red wings", {"red wing"}),
        ("wings that are short and red", {"red wing"}),
        ("its long wings are red", {"red wing"}),
        ("red wings long bill", {"red wing"}),
        ("a small red headed bird", {"red head"}),
        ("this red long winged bird", set()),
        # What only looks like a pair.
        ("the bill is black with red spotted wings", {"black bill"}),
        ("a red bill and belly and wings that are blue", {"red bill", "red belly", "blue wing"}),
        ("black wing tips", set()),
        ("black belly patch", {"black patch"}),
        ("black primary wings", {"black wing"}),
        ("red belly and wings that are blue", {"red belly", "blue wing"}),
        ("a red belly. wings", {"red belly"}),
        ("a bird that is red. wings", set()),
        ("the top of the wings is red", set()),
        ("this bird with a black belly is red", {"black belly"}),
        ("the belly is red wings", {"red wing"}),
        ("a red belly patch is here", set()),
        ("a tail that is large and red, and blue wings", {"blue wing"}),
        ("the bill is red wings and belly are blue", set()),
        ("a red headed and winged bird", {"red head"}),
        ("a bird with wings", set()),
    ],
)
def test_how_words_are_read(text: str, pairs: set[str]) -> None:
    found = word_pairs(stated_pairs(text, Reader(COLORS, MORE_NOUNS, SHAPES).read(text)))
    assert set(map(" ".join, found)) == pairs


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("a bird with no red bill", set()),
        ("a bird with neither red wings nor a blue bill", set()),
        ("the bill is not red", set()),
        ("the bill isn’t red or blue", set()),
        ("its wings aren't red", set()),
        ("a bird without red wings or a blue bill", set()),
        ("it does not have a red bill", set()),
        ("a bird lacking red wings", set()),
        ("if the bill is red", set()),
        ("it might have a red bill", set()),
        ("perhaps a red bill", set()),
        ("no bill is red", set()),
        ("a blue bill and not a red bill", {"blue bill"}),
        ("larger than a red bill", set()),
        ("a tail like a red bill", set()),
        ("everything but a red bill", set()),
        ("either a red bill or a blue bill", set()),
        ("is it a red bill?", set()),
        # What is asserted beside it.
        ("a red bill and no blue wings", {"red bill"}),
        ("no bill and red wings", {"red wing"}),
        ("with no bill, a red wing", {"red wing"}),
        ("a bird with no bill red wings", {"red wing"}),
        ("no red bill but a blue wing", {"blue wing"}),
        ("not only a red bill", {"red bill"}),
        ("no spots on its red wings", {"red wing"}),
        ("larger than its red bill", {"red bill"}),
        ("nothing but a red bill", {"red bill"}),
        ("a bird without a bill has red wings", {"red wing"}),
        ("black except for a red bill", {"red bill"}),
        ("is it large? a red bill", {"red bill"}),
        # Exceptions, places, doubts, comparisons, losses, suppositions and lists.
        ("everything barring a red bill", set()),
        ("blue wings in place of a red bill", {"blue wing"}),
        ("blue wings in lieu of a red bill", {"blue wing"}),
        ("everything with the exception of a red bill", set()),
        ("a red bill is nowhere to be seen", set()),
        ("not with a red bill", set()),
        ("nowhere is there a red bill", set()),
        ("the red bill was not found", set()),
        ("I don't think the bill is red", set()),
        ("I doubt it has a red bill", set()),
        ("hardly a red bill", set()),
        ("allegedly a red bill", set()),
        ("a so-called red bill", set()),
        ("less red than the bill", set()),
        ("had it a red bill", set()),
        ("had the bill been red", set()),
        ("were the bill red", set()),
        ("it lost its red bill", set()),
        ("stripped of its red wings", set()),
        ("red bill: none", set()),
        ("red bill omitted", set()),
        ("minus its red bill", set()),
        ("larger than any red bill", set()),
        ("red; bill", set()),
        ("red;bill", set()),
        ("red•bill", set()),
        ("the bill appears to be red", {"red bill"}),
        ("the bill seems red", {"red bill"}),
        ("the wings have turned red", {"red wing"}),
        ("wings that became red", {"red wing"}),
        ("the wings are painted red", {"red wing"}),
        ("wings painted red", {"red wing"}),
        ("it had a red bill", {"red bill"}),
        ("a lost red bill", {"red bill"}),
        ("a red bill: old", {"red bill"}),
        ("a red bill;blue wings", {"red bill", "blue wing"}),
        ("a red bill • blue wings", {"red bill", "blue wing"}),
        ("the bill does not appear to be red", set()),
        ("no doubt the bill is red", {"red bill"}),
        ("this unknown bird has a red bill", {"red bill"}),
    ],
)
def test_word_order_reads_no_pair_that_the_text_denies(text: str, pairs: set[str]) -> None:
    reader = Reader(COLORS, NOUNS, SHAPES)
    assert {" ".join(pair) for pair in word_pairs(reader.pairs(text)[1])} == pairs


def found_in_train(rows: dict[str, list[tuple[str, str]]]) -> set[str]:
    """The captions in which the audit finds the pair that they are listed with, if all are in
    train.
    """
    pair_of = {text: pair for of_form in rows.values() for pair, text in of_form}
    captions = captions_table([(f"{n:02d}", 0, text) for n, text in enumerate(pair_of)])
    splits = captions[["image_id"]].assign(split="train")
    nothing = empty_table(PAIRS), splits, empty_table(SWAPPED)
    violations = audit(captions, *nothing, sorted({*pair_of.values()}), "color", "birds")[
        "violations"
    ]
    return {
        violation["text"]
        for violation in violations
        if violation["pair"] == pair_of[violation["text"]]
    }


def test_word_order_finds_planted_captions() -> None:
    planted = {text for of_form in STATING.values() for _, text in of_form}
    assert len(STATING) == 10 and len(planted) == 60
    # `nape turned` could be half of a compound, as `wing tips` is.
    assert planted - found_in_train(STATING) == {"a bird with its grey nape turned to the camera"}


def test_word_order_finds_no_pair_in_captions_that_only_seem_to_state_it() -> None:
    assert {*SEEMING} == {*STATING}
    assert len({text for of_form in SEEMING.values() for _, text in of_form}) == 60
    assert found_in_train(SEEMING) == set()


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("a bird whose wings are mostly red and very long", {"red wing"}),
        ("a bird whose belly is black and wings are red", {"black belly"}),
        ("the bill is a deep red color", {"red bill"}),
        ("the bill is colored red", {"red bill"}),
        ("its bill looks red", {"red bill"}),
        ("the bird's bill is red", {"red bill"}),
        ("the upper wings are red", {"red wing"}),
        ("wings in red and black color", {"red wing", "black wing"}),
        ("a black bill and wings of red color", {"black bill", "red wing"}),
        ("a red-colored bill and belly", {"red bill", "red belly"}),
        ("red and black colored wings", {"red wing", "black wing"}),
        ("a red colored bird with wings", set()),
        ("a bill of the red bird", set()),
        ("without a red colored bill", set()),
        ("a bill of no red color", set()),
    ],
)
def test_words_around_an_adjective_that_add_nothing(text: str, pairs: set[str]) -> None:
    found = word_pairs(stated_pairs(text, Reader(COLORS, MORE_NOUNS, SHAPES).read(text)))
    assert set(map(" ".join, found)) == pairs


DENIED = "a photo of a yard with no blue plate"


def test_a_denied_held_out_pair_is_in_no_prompt_and_does_not_train() -> None:
    stated = [
        f"a photo of a {a} {noun}"
        for a, noun in product(("red", "blue", "black"), ("plate", "cup", "box"))
    ]
    captions = captions_table(
        [(f"{n:03d}", 0, text) for n, text in enumerate([*stated * 12, *[DENIED] * 5])]
    )
    pairs = extract_pairs(captions, ["color"])
    ranking = rank_pairs(pairs, "color")
    heldout = ["blue_plate"]
    splits, _ = make_splits(captions, pairs, ranking, heldout, "color")
    swapped, _ = swap_adjectives(captions, pairs, splits, heldout, "color")
    prompts = make_prompts(captions, pairs, ranking, heldout, splits, swapped)
    variants, _ = make_variants(prompts, captions, pairs, ranking, "color", swapped=swapped)
    denying = captions.loc[captions["text"] == DENIED, "image_id"]
    assert set(splits.set_index("image_id").loc[denying, "split"]) == {"test_unseen"}
    assert (prompts["pair"] == "blue_plate").any()
    for table in (prompts, variants, swapped):
        assert not table["image_id"].isin(denying).any()
    result = audit(captions, pairs, splits, swapped, heldout, "color")
    assert result["violations"] == []
    assert result["disagreement"]["total"]["fraction"] == 0
    assert result["disagreement"]["pairs"]["blue_plate"]["only_disputed"] == 5


def test_an_audit_without_held_out_pairs_has_no_warnings() -> None:
    captions = captions_table([("a", 0, "a red plate")])
    splits = pd.DataFrame({"image_id": ["a"], "split": ["train"]})
    result = audit(captions, empty_table(PAIRS), splits, empty_table(SWAPPED), [], "color")
    assert result["violations"] == []
    assert result["disagreement"]["warnings"] == []


def test_the_audit_notices_a_denied_pair_that_was_extracted() -> None:
    """If the extraction took it for stated, and so for a prompt."""
    captions = captions_table([("a", 0, DENIED), ("b", 0, "a red plate")])
    splits = pd.DataFrame({"image_id": ["a", "b"], "split": ["test_unseen", "train"]})
    pairs = said("a blue plate", "b red plate", captions=captions)
    result = audit(captions, pairs, splits, empty_table(SWAPPED), ["blue_plate"], "color")
    assert result["disagreement"]["pairs"]["blue_plate"]["only_parse"] == 1
    assert result["disagreement"]["pairs"]["blue_plate"]["captions"]["parse"][0]["text"] == DENIED
    # Both captions are used, so nothing is lost.
    assert result["disagreement"]["warnings"] == []


def audited(
    rows: list[tuple[str, str]], heldout: list[str], swapped: pd.DataFrame | None = None
) -> dict:
    """An audit of captions given as (split, text), image ids i0, i1, ..."""
    captions = captions_table([(f"i{n}", 0, text) for n, (_, text) in enumerate(rows)])
    splits = pd.DataFrame({"image_id": captions["image_id"], "split": [split for split, _ in rows]})
    swapped = empty_table(SWAPPED) if swapped is None else swapped
    pairs = empty_table(PAIRS)
    return audit(
        captions, pairs, splits, swapped, heldout, LEXICONS[0], Lexicon("parts", MORE_NOUNS)
    )


def test_finds_planted_pairs_and_counts_suspicions() -> None:
    for split in ("train", "test_seen"):
        rows = [
            ("train", "blue wings"),
            (split, "it has a blue and RED wing"),
            ("test_unseen", "red wings"),
        ]
        violations = audited(rows, ["red_wing"])["violations"]
        assert [(v["image_id"], v["pair"], v["split"]) for v in violations] == [
            ("i1", "red_wing", split)
        ]
    of_train = ["red bill with wings", "wings of a red", "red bird that has big and old wings"]
    rows = [*(("train", text) for text in of_train), ("test_unseen", "wings of a red")]
    result = audited(rows, ["red_wing"])
    assert result["violations"] == []
    suspicion = result["suspicions"]["red_wing"]
    assert (suspicion["captions"], suspicion["unexplained"]) == (2, 1)
    assert suspicion["examples"][0]["text"] == "wings of a red"
    assert result["counts"]["captions"] == {"train": 3, "test_seen": 0, "test_unseen": 1}


CHANGE = {
    "noun": "bill",
    "original_adj": "red",
    "new_adj": "orange",
    "start": 2,
    "end": 5,
    "new_start": 3,
    "new_end": 9,
}
GOOD = {
    "image_id": "i0",
    "caption_id": 0,
    "text": "a red bill and blue wings",
    "swapped_text": "an orange bill and blue wings",
    "changes": [CHANGE],
    "pair": "orange_bill",
    "exclusive": True,
}


def audit_swap(**changes) -> list[str]:
    rows = [(changes.pop("split", "test_seen"), GOOD["text"]), ("train", "red wings")]
    result = audited(rows, ["orange_bill", "orange_wing"], pd.DataFrame([GOOD | changes]))
    return [v["fault"] for v in result["violations"]]


def change(**changes) -> list[dict]:
    return [CHANGE | changes]


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"changes": change(noun="belly")}, "orange_belly is not held out"),
        (
            {"swapped_text": "an orange bill and blue wing"},
            "more than the adjective changed at the end",
        ),
        (
            {
                "swapped_text": "the orange bill and blue wings",
                "changes": change(new_start=4, new_end=10),
            },
            "more than the adjective changed before orange",
        ),
        (
            {"swapped_text": "an orange bill and black wings"},
            "it also says black_wing, which is not held out",
        ),
        ({"changes": change(new_start=2, new_end=8)}, "new_adj orange is not at its offsets"),
        ({"changes": change(original_adj="blue")}, "original_adj blue is not at its offsets"),
        ({"changes": []}, "nothing is changed"),
        ({"text": "a red bill"}, "its text is not the caption's"),
        ({"image_id": "i9"}, "its text is not the caption's"),
        ({"split": "train"}, "its image is in train"),
        ({"pair": "orange_wing"}, "its pair orange_wing is not one of its changed pairs"),
    ],
)
def test_finds_a_planted_fault(changes: dict, fault: str) -> None:
    assert audit_swap() == []
    assert fault in audit_swap(**changes)


def test_finds_an_adjective_that_two_nouns_share() -> None:
    text, changes = "red bill and wings", change(start=0, end=3, new_start=0, new_end=6)
    entry = GOOD | {"text": text, "swapped_text": "orange bill and wings", "changes": changes}
    result = audited([("test_seen", text)], ["orange_bill"], pd.DataFrame([entry]))
    faults = {v["fault"] for v in result["violations"]}
    assert faults == {
        "it also says orange_wing, which is not held out",
        "the adjective is also about another noun",
    }


@settings(max_examples=25)
@example(273, 177)  # `eye ring that is red and a very black and grey bill`
@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_never_fires_on_true_output(seed: int, other: int) -> None:
    data = world(seed, images=40, captions=3)
    names = pair_names(data.ranking).tolist()
    heldout = [names[other % len(names)]]
    of_images = pairs_of_images(data.pairs, data.ranking, heldout)
    try:
        splits, _ = drawn_splits(
            data.captions["image_id"], of_images, heldout, 6, Seeding(other, "d", "c")
        )
    except UserError:
        return
    swapped, _ = swap_adjectives(data.captions, data.pairs, splits, heldout, *LEXICONS, seed=other)
    result = audit(data.captions, data.pairs, splits, swapped, heldout, *LEXICONS)
    assert result["violations"] == []
    # One image moved by hand from test_unseen to train is found, if its pair stands at the surface.
    at_surface = data.pairs["relation"].isin(["adjacent", "predicative"])
    surface = data.pairs[(pair_names(data.pairs) == heldout[0]) & at_surface]
    if len(surface):
        image = surface["image_id"].iloc[0]
        moved = splits.assign(split=splits["split"].mask(splits["image_id"] == image, "train"))
        found = audit(data.captions, data.pairs, moved, swapped, heldout, *LEXICONS)["violations"]
        assert {v["image_id"] for v in found} == {image}


def test_the_reader_shares_no_code_with_pairs_and_needs_no_noun_lexicon() -> None:
    modules = reached("workflow_scripts.split.audit")
    assert not [m for m in modules if m.startswith("compclip.pairs")]
    # Without a noun lexicon, nouns in a row are a compound.
    for text, pairs in (
        ("one blue and one green water slide", set()),
        ("a green water. slide", {"green water"}),
        ("a red traffic light", {"red traffic light"}),
    ):
        heldout = ["green_water", "green_slide", "red_light"]
        compounds = Lexicon("compounds", {"traffic light": "traffic light"})
        reader = reader_of(heldout, {c: c for c in ("green", "blue", "red")}, None, compounds)
        assert {
            " ".join(pair) for pair in word_pairs(stated_pairs(text, reader.read(text)))
        } == pairs
        # Regular plurals are known.
        assert stated_pairs("red lights", reader.read("red lights"))


@pytest.mark.parametrize(
    ("noun", "forms", "others"),
    [
        ("goose", "goose geese", "goods"),
        ("vas", "vas vase vases", "vast"),
        ("cooky", "cooky cookie cookies", "cook"),
        ("leaf", "leaf leaves leafs", "leave left"),
        ("axis", "axis axes", "axe"),
        ("people", "people person peoples", "pupil"),
        ("cactus", "cactus cacti cactuses", "caps"),
        ("kiwi", "kiwi kiwis", "kite"),
        ("t-shirt", "t-shirt t-shirts", "shirt t"),
        ("water slide", "water slide|water slides", "slide|slides"),
        ("toe", "toe toes", "to"),
        ("shorts", "shorts", "short"),
        ("cape", "cape capes", "cap caps"),
        ("cafe", "cafe cafes", "caves cave"),
        ("news", "news", "now"),
    ],
)
def test_forms_that_may_be_of_a_held_out_noun_by_their_endings(
    noun: str, forms: str, others: str
) -> None:
    reader = reader_of([f"red_{noun}"], {"red": "red"}, None, None)

    def read(words: str) -> list[set[tuple[str, str]]]:
        texts = [f"the red {word}" for word in (words.split("|") if " " in noun else words.split())]
        return [word_pairs(reader.pairs(text)[1]) for text in texts]

    assert all(pairs == {("red", noun)} for pairs in read(forms))
    assert not any(read(others))


def test_a_split_with_a_violation_is_refused_and_its_audit_kept(tmp_path: Path) -> None:
    captions = captions_table([("i0", 0, "red wings"), ("i1", 0, "blue wings")])
    splits = pd.DataFrame({"image_id": ["i0", "i1"], "split": ["train", "test_seen"]})
    empty = {"swapped": empty_table(SWAPPED), "pairs": empty_table(PAIRS)}
    write_tables(tmp_path, captions=captions, splits=splits, **empty)
    write_json({"pairs": ["red_wing"]}, tmp_path / "heldout.json")
    write_json({"excluded_images": {}}, tmp_path / "splits.json")
    (tmp_path / "color.yaml").write_text("red: []\nblue: []\n")
    run("audit", tmp_path, nouns=None)
    with pytest.raises(
        UserError,
        match=r"^d/color: 1 audit violations, listed in .*red_wing.*text red wings.*rerun",
    ):
        run("accept_split", tmp_path)
    assert json.loads((tmp_path / "audit.json").read_text())["violations"][0]["pair"] == "red_wing"
    assert not (tmp_path / "accepted.json").exists()
    run("audit", tmp_path, nouns=None, on_violation="warn")
    run("accept_split", tmp_path)
    assert json.loads((tmp_path / "audit.json").read_text())["counts"]["violations"] == 1


def test_counts_images_on_which_the_readers_disagree() -> None:
    texts = ["red wings", "red wings", "wings of a red", "wings so red", "blue wings", "red bill"]
    captions = captions_table([(f"i{n}", 0, text) for n, text in enumerate(texts)])
    pairs = said(
        "i0 red wing",
        "i2 red wing shared",
        "i3 red wing disputed",
        "i0 red wing disputed",
        "i5 red bill",
        captions=captions,
    )
    splits = pd.DataFrame({"image_id": captions["image_id"], "split": "test_unseen"})
    facts = [
        ("i0", "wing", "red"),
        ("i1", "wing", "red"),
        ("i3", "wing", "red"),
        ("i5", "bill", "red"),
    ]
    facts = pd.DataFrame(facts, columns=["image_id", "part", "value"])
    heldout = ["red_bill", "red_wing"]
    result = audit(captions, pairs, splits, empty_table(SWAPPED), heldout, *LEXICONS, facts=facts)
    assert result["violations"] == []
    result = result["disagreement"]
    wing = result["pairs"]["red_wing"]
    listed = {
        reader: [row["image_id"] for row in rows] for reader, rows in wing.pop("captions").items()
    }
    assert listed == {"parse": ["i2"], "word_order": ["i1"]}
    counts = {
        "images": 3,
        "only_parse": 1,
        "only_word_order": 1,
        "only_disputed": 1,
        "drawn": 3,
        "fraction": 0.666667,
    }
    errors = {
        "parse_misses": 2,
        "parse_invents": 1,
        "word_order_misses": 1,
        "word_order_invents": 0,
    }
    assert wing == counts | errors
    assert (
        result["pairs"]["red_bill"]["images"] == 1 and not result["pairs"]["red_bill"]["only_parse"]
    )
    assert result["total"] == counts | errors | {"images": 4, "drawn": 4, "fraction": 0.5}


def losses(
    missed: int, disputed: int, stated: int, nouns: Lexicon | None = LEXICONS[1]
) -> dict[str, Any]:
    """The disagreement of images whose pair only word order finds, that is only disputed, and that
    both readers state.
    """
    texts = ["red wings"] * missed + ["wings so red"] * disputed + ["red wings"] * stated
    captions = captions_table([(f"i{n}", 0, text) for n, text in enumerate(texts)])
    occurrences = [f"i{n} red wing disputed" for n in range(missed, missed + disputed)]
    occurrences += [f"i{n} red wing" for n in range(missed + disputed, len(texts))]
    # make_splits puts the first in no split.
    image_ids = captions["image_id"]
    splits = pd.DataFrame({"image_id": image_ids.iloc[missed:], "split": "test_unseen"})
    pairs = said(*occurrences, captions=captions)
    tables = (captions, pairs, splits, empty_table(SWAPPED), ["red_wing"])
    return audit(*tables, LEXICONS[0], nouns, excluded=list(image_ids.iloc[:missed]))[
        "disagreement"
    ]


def test_counts_what_is_lost_by_cause() -> None:
    lost = losses(missed=2, disputed=3, stated=5)["lost"]
    images = {"images": 10, "images_missed": 2, "images_disputed": 3}
    # A caption whose pair is only disputed states none by both other readings.
    captions = {"captions": 7, "captions_missed": 2, "captions_disputed": 0}
    assert lost == images | captions


def test_warns_above_a_tenth_of_images_or_captions() -> None:
    assert MAX_LOST == 0.1
    assert losses(missed=1, disputed=0, stated=9)["warnings"] == []
    assert losses(missed=1, disputed=0, stated=8)["warnings"]


@pytest.mark.parametrize(
    ("missed", "disputed", "nouns", "cause", "remedy"),
    [
        (3, 1, LEXICONS[1], "word order states a pair", REMEDIES["missed"]),
        (1, 3, LEXICONS[1], "the extraction contradicts itself", REMEDIES["disputed"]),
        (3, 1, None, "word order states a pair", DRAFT_NOUNS),
        (1, 3, None, "the extraction contradicts itself", REMEDIES["disputed"]),
    ],
)
def test_the_warning_names_the_main_cause_with_its_remedy(
    missed: int, disputed: int, nouns: Lexicon | None, cause: str, remedy: str
) -> None:
    (warning,) = losses(missed, disputed, 4, nouns)["warnings"]
    assert warning.startswith("4 of 8 images (50.0%) and ")
    assert f"mostly because {cause}" in warning
    assert warning.endswith(f"(most often red_wing); {remedy}")


def test_images_that_train_lose_nothing() -> None:
    captions = captions_table([("a", 0, "red wings")])
    splits = pd.DataFrame({"image_id": ["a"], "split": ["train"]})
    result = audit(
        captions, empty_table(PAIRS), splits, empty_table(SWAPPED), ["red_wing"], *LEXICONS
    )
    assert result["disagreement"]["total"]["fraction"] == 1
    assert result["disagreement"]["lost"]["images_missed"] == 0


def test_readers_of_drawn_captions_against_what_was_drawn() -> None:
    """Captions of 150 drawn birds, the facts that they state, and their pairs."""
    birds, rows, stated_facts = make_world(0, 80), list[tuple](), list[tuple]()
    for n in range(150):
        dice = Dice(rng(0, "sketch", "image", n))
        scene = draw_scene(birds, n % 80, dice)
        for number in range(10):
            caption = caption_scene(scene, dice)
            rows.append((f"{n:03d}", number, caption.text))
            stated_facts += [(f"{n:03d}", fact.part, fact.value) for fact in caption.facts]
    captions, facts = (
        captions_table(rows),
        pd.DataFrame(stated_facts, columns=["image_id", "part", "value"]),
    )
    pairs = extract_pairs(captions, ["color", "shape"], "birds")
    splits = pd.DataFrame({"image_id": captions["image_id"].unique(), "split": "test_unseen"})
    for composition in ("color", "shape"):
        heldout = pair_names(rank_pairs(pairs, composition, "birds")).tolist()[::6]
        result = audit(
            captions,
            pairs,
            splits,
            empty_table(SWAPPED),
            heldout,
            composition,
            "birds",
            facts=facts,
        )
        total = result["disagreement"]["total"]
        true = facts.loc[(facts["value"] + "_" + facts["part"]).isin(heldout), "image_id"]
        assert total["drawn"] == true.nunique() > 60
        errors = [
            f"{reader}_{error}"
            for reader, error in product(("parse", "word_order"), ("misses", "invents"))
        ]
        assert [total[error] for error in errors] == [0, 0, 0, 0]
