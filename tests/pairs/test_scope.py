"""Pairs that captions deny, suppose, compare with or except are disputed, and those beside them are not."""

import re
import time

import pytest

from compclip.pairs.engine import Extractor, Occurrence, decode_occurrences
from compclip.pairs.extract_pairs import extract_pairs
from compclip.pairs.scope import REACHES, RULES
from tests.pairs.conftest import MODEL

# The pairs that a caption denies.
DENIED = {
    "this bird has no red bill": "red_bill",
    "the bill is not red": "red_bill",
    "a bird without a red bill": "red_bill",
    "this bird lacks a red bill": "red_bill",
    "a bird with neither a red bill nor a blue crown": "red_bill blue_crown",
    "the bill is neither red nor blue": "red_bill blue_bill",
    "the bill isn't red": "red_bill",
    "the bill isn’t red": "red_bill",
    "the bill isnt red": "red_bill",
    "this bird never has a red bill": "red_bill",
    "the bird doesn't have a red bill": "red_bill",
    "the bird does not have a red bill": "red_bill",
    "the bird dont have a red bill": "red_bill",
    "a bird that has no red bill or blue crown": "red_bill blue_crown",
    "a photo of a yard with no blue plate": "blue_plate",
    "a photo of a yard without any blue plates": "blue_plate",
    "there is no blue plate in the yard": "blue_plate",
    "there are no blue plates": "blue_plate",
    "there isn't a blue plate": "blue_plate",
    "no bird has a red bill": "red_bill",
    "no bill is red": "red_bill",
    "none of the bills are red": "red_bill",
    "none of the red cups are on the table": "red_cup",
    "zero red bills": "red_bill",
    "0 red cups on a table": "red_cup",
    "nobody wears a red hat": "red_hat",
    "the bill cannot be red": "red_bill",
    "the bill can't be red": "red_bill",
    "the bill is no longer red": "red_bill",
    "the bill is hardly red": "red_bill",
    "the bill is barely red": "red_bill",
    "it hardly has any red feathers, with hardly any blue wings": "blue_wing",
    "a non-red bill": "red_bill",
    "a not-so-red bill": "red_bill",
    "a not red bill": "red_bill",
    "a bird lacking a red bill": "red_bill",
    "a bird missing its red bill": "red_bill",
    "the red bill is missing": "red_bill",
    "the blue plate is absent": "blue_plate",
    "the blue plate is not there": "blue_plate",
    "the blue plate isn't visible": "blue_plate",
    "a table devoid of blue plates": "blue_plate",
    "a table free of blue plates": "blue_plate",
    "the absence of a red bill": "red_bill",
    "a bird with a lack of red feathers": "red_feather",
    "the bird fails to show a red bill": "red_bill",
    "she refuses to wear a red hat": "red_hat",
    "a woman not wearing a red skirt": "red_skirt",
    "unlike a red bird, it sings": "red_bird",
    "a nose like a red ball": "red_ball",
    "as round as a red ball": "red_ball",
    "its bill is not as red as its crown": "red_bill",
    "if the bill is red, the bird is male": "red_bill",
    "the bill would be red": "red_bill",
    "the bill could be red": "red_bill",
    "the bill might be red": "red_bill",
    "it may have a red bill": "red_bill",
    "maybe a red bill": "red_bill",
    "perhaps the bill is red": "red_bill",
    "possibly a red bill": "red_bill",
    "the bill should be red": "red_bill",
    "imagine a red bill": "red_bill",
    "it looks as if it had a red bill": "red_bill",
    "it acts as though it had a red bill": "red_bill",
    "the bill is either red or blue": "red_bill blue_bill",
    "it has either a red bill or a blue bill": "red_bill blue_bill",
    "is the bill red?": "red_bill",
    "does this bird have a red bill?": "red_bill",
    "everything but a red bill": "red_bill",
    "every plate except a blue plate": "blue_plate",
    "a kitchen with everything except a blue plate": "blue_plate",
    "all but the red bird": "red_bird",
    "anything but a red bill": "red_bill",
    "the bill was formerly red": "red_bill",
    "a once red bill": "red_bill",
    "nor does it have a red bill": "red_bill",
    "not without a red bill": "red_bill",
    "neither the bill nor the crown is red": "red_bill red_crown",
    "a bird with no red, blue or green wings": "red_wing blue_wing green_wing",
    "a bird with wings that are not red": "red_wing",
    "a bird with no wings that are red": "red_wing",
    "no bird with a red bill is here": "red_bill",
    "there is no dog wearing a red collar": "red_collar",
    "not a single red bill": "red_bill",
    "not one red bill": "red_bill",
    "not even a red bill": "red_bill",
    "no other bird has a red bill": "red_bill",
    "the plates are not blue": "blue_plate",
    "the bill has never been red": "red_bill",
    "i wish it had a red bill": "red_bill",
    "she wants a red hat": "red_hat",
    "whether the bill is red is unknown": "red_bill",
    "the bird has no trace of a red bill": "red_bill",
    "there's no sign of a blue plate": "blue_plate",
    "a kitchen with not a single blue plate in sight": "blue_plate",
    "a kitchen where no blue plate can be seen": "blue_plate",
    "you won't find a blue plate here": "blue_plate",
    "you will not see any blue plates": "blue_plate",
    "the bird hasn't got a red bill": "red_bill",
    "the bird did not have red feathers": "red_feather",
    "the wings aren't blue": "blue_wing",
    "the wings weren't blue or green": "blue_wing green_wing",
    "the bill is not at all red": "red_bill",
    "the bill is by no means red": "red_bill",
    "the bill is in no way red": "red_bill",
    "a bill which is not red": "red_bill",
    "a bill that's not red": "red_bill",
    "a bill that isn't red": "red_bill",
    "not a red bill": "red_bill",
    "no red bills here": "red_bill",
    "no sharp red bill": "red_bill sharp_bill",
    "no long, red bill": "red_bill long_bill",
    "this one has no black or white stripes": "black_stripe white_stripe",
    "No blue plate, no red cup, no green bowl.": "blue_plate red_cup green_bowl",
    "without red cups or blue plates, the table looks bare": "red_cup blue_plate",
    "a table without a blue plate and a red cup": "blue_plate red_cup",
    "a man without a red hat": "red_hat",
    "a man with no red hat or blue shirt": "red_hat blue_shirt",
    "nobody has a red hat": "red_hat",
    "no one is wearing a red hat": "red_hat",
    "none of the people wears a red hat": "red_hat",
    "neither of the men wears a red hat": "red_hat",
    "neither man wears a red hat": "red_hat",
    "the man lacks a red hat": "red_hat",
    "men lacking red hats": "red_hat",
    "the table, lacking any blue plates, is bare": "blue_plate",
    "the blue plate has gone missing": "blue_plate",
    "the blue plate is nowhere to be seen": "blue_plate",
    "if there were a blue plate, it would be on the table": "blue_plate",
    "if only there were a blue plate": "blue_plate",
    "there might be a blue plate": "blue_plate",
    "there could be a blue plate in the cupboard": "blue_plate",
    "there should be a blue plate on the table": "blue_plate",
    "there may be a blue plate": "blue_plate",
    "there may or may not be a blue plate": "blue_plate",
    "one would expect a blue plate here": "blue_plate",
    "she is looking for a blue plate": "blue_plate",
    "she wishes for a blue plate": "blue_plate",
    "imagine a table with a blue plate": "blue_plate",
    "picture a red cup, perhaps with a blue plate": "blue_plate",
    "suppose the plate is blue": "blue_plate",
    "whether the plate is blue or green is unclear": "blue_plate green_plate",
    "is there a blue plate on the table?": "blue_plate",
    "Where is the blue plate?": "blue_plate",
    "who wears a red hat?": "red_hat",
    "a table with dishes of all colors except a blue plate": "blue_plate",
    "everything on the table except the blue plate": "blue_plate",
    "all the plates but the blue plate": "blue_plate",
    "everyone but the red bird": "red_bird",
    "any bird other than a red bird": "red_bird",
    "a formerly red bill": "red_bill",
    "a previously blue plate": "blue_plate",
    "the plate was never blue": "blue_plate",
    "it is anything but a red bird": "red_bird",
    "as if it were a red bird": "red_bird",
    "a cloud like a red bird": "red_bird",
    "a cloud shaped like a red bird": "red_bird",
    "a hat in the shape of a red bird": "red_bird",
    "a hat resembling a red bird": "red_bird",
    "a hat similar to a red bird": "red_bird",
    "a bird as small as a red ball": "red_ball",
    "smaller than a red ball": "red_ball",
    "the bird is larger than any red bird": "red_bird",
    "in contrast to other red birds, this one is small": "red_bird",
    "not quite a red bill": "red_bill",
    "not exactly a red bill": "red_bill",
    "not really red wings": "red_wing",
    "the wings are not really red": "red_wing",
    "the wings are not quite red": "red_wing",
    "the wings are seldom red": "red_wing",
    "the wings are rarely red": "red_wing",
    "zero blue plates": "blue_plate",
    "a table with 0 blue plates": "blue_plate",
    "a table minus the blue plate": "blue_plate",
    "a table sans blue plates": "blue_plate",
    "a table w/o blue plates": "blue_plate",
    "a table empty of blue plates": "blue_plate",
    "the red bill is not present": "red_bill",
    "the red bill isn't in the picture": "red_bill",
    "the red bill is not depicted": "red_bill",
    "the red bill cannot be seen": "red_bill",
    "a red bill is nowhere in sight": "red_bill",
    "the absence of red wings and blue crowns": "red_wing blue_crown",
    "black not red wings": "red_wing",
    "it should have a red bill": "red_bill",
    "the artist wanted a red bill": "red_bill",
    "a bird hoping for a red berry": "red_berry",
    "Neither red nor blue wings": "red_wing blue_wing",
    "the bird's bill is non red": "red_bill",
    "reddish, but not a red bill": "red_bill",
    "the petals are not red; they are white": "red_petal",
    "it isn't true that the bill is red": "red_bill",
    "it is false that the bill is red": "red_bill",
    "it is not the case that the bill is red": "red_bill",
}

# The pairs that a caption states, although a word of denial is in it.
ASSERTED = {
    "the bird has no markings and a red bill": "red_bill",
    "this is not a big bird, it has a red bill": "red_bill",
    "with no wings, a red bill": "red_bill",
    "the bill is not only red but also blue": "red_bill blue_bill",
    "not just red wings": "red_wing",
    "nothing but a red bill": "red_bill",
    "no doubt it has a red bill": "red_bill",
    "it stands not far from the red bill": "red_bill",
    "a bird with no crest has a red bill": "red_bill",
    "a bird without a crest has a red bill": "red_bill",
    "a bird with no crest and a red bill": "red_bill",
    "a bird with no crest but a red bill": "red_bill",
    "a bird without a crest but with a red bill": "red_bill",
    "a bird that is not big has a red bill": "red_bill",
    "the bill is not long and the crown is red": "red_crown",
    "the bird does not fly and has a red bill": "red_bill",
    "a not so small bird with a red bill": "red_bill",
    "it has no spots on its red wings": "red_wing",
    "the bird appears red": "red_bird",
    "the bill seems red": "red_bill",
    "the bill looks red": "red_bill",
    "the bill is red, not blue": "red_bill",
    "a bird with a long red bill, which is not curved": "red_bill",
    "a black bird except for its red bill": "red_bill black_bird",
    "the bird is all black except for a red bill": "red_bill",
    "the bird is all black other than a red bill": "red_bill",
    "besides a red bill it has blue wings": "red_bill blue_wing",
    "a small head compared to its red bill": "red_bill",
    "a head larger than its red bill": "red_bill",
    "unlike its red bill the crown is blue": "red_bill blue_crown",
    "a dagger like red bill": "red_bill",
    "it has no more than five red petals": "red_petal",
    "a red bill as well as a blue crown": "red_bill blue_crown",
    "a red bird perched on a branch with no leaves": "red_bird",
    "a red car and no people": "red_car",
    "no people, a red car": "red_car",
    "a street without people. a red car is parked": "red_car",
    "there are no people and a red car is parked": "red_car",
    "although it is not big, it has a red bill": "red_bill",
    "the bird isn't big but it has a red bill": "red_bill",
    "a bird with no visible neck red wings and a blue bill": "red_wing blue_bill",
    "white bars on either side of its red head": "red_head",
    "a flower with many red petals or leaves": "red_petal",
    "a bird seen nowhere else with a red bill": "red_bill",
    "if you look closely, a red bill is visible": "red_bill",
    "more than two red birds": "red_bird",
    "the bird, not a big one, has a red bill": "red_bill",
    "its bill, never long, is red": "red_bill",
    "no wonder the red bird is a favorite": "red_bird",
    "a bird with a red bill that could fly": "red_bill",
    "a red bird that might be a duck": "red_bird",
    "the red bird is not flying": "red_bird",
    "the red bird does not have a crest": "red_bird",
    "a man who lacks hair wears a red shirt": "red_shirt",
    "the red plate isn't empty": "red_plate",
    "the red bill of this bird is not pointed": "red_bill",
    "a bird lacking a crest with a red bill": "red_bill",
    "instead of leaves this flower has red petals": "red_petal",
    "the stamen is not visible and the petals are red": "red_petal",
    "unlike the previous photo, this one has a red cup": "red_cup",
    "no bird other than a red bird": "red_bird",
    "nothing except a red cup": "red_cup",
    "an empty table except for a red cup": "red_cup",
    "only a red cup": "red_cup",
    "none but a red cup": "red_cup",
    "it has no red on its bill, which is blue": "blue_bill",
    "the bill is blue with no red": "blue_bill",
    "a red bill, no crest, and blue wings": "red_bill blue_wing",
    "a bird with a red bill, without a crest, and with blue wings": "red_bill blue_wing",
    "no clouds. a red car.": "red_car",
    "there are no clouds above the red car": "red_car",
    "there is no snow on the red car": "red_car",
    "nobody sits in the red car": "red_car",
    "the red car has no driver": "red_car",
    "the red car is not moving": "red_car",
    "the red car isn't parked near the blue house": "red_car",
    "no one is near the red car": "red_car",
    "the red car never moves": "red_car",
    "a red car without wheels": "red_car",
    "a red car without wheels near a blue house": "red_car blue_house",
    "a red car that lacks wheels": "red_car",
    "a red car with neither wheels nor doors": "red_car",
    "a red car that might be old": "red_car",
    "a red car, perhaps old": "red_car",
    "a red car, possibly a taxi": "red_car",
    "a red car as fast as a rocket": "red_car",
    "a red car unlike any other": "red_car",
    "a red car instead": "red_car",
    "a red car if you look closely": "red_car",
    "a red car could be seen": "red_car",
    "it is not just a red car": "red_car",
    "not only does it have a red bill but also a blue crown": "red_bill blue_crown",
    "not to mention a red bill": "red_bill",
    "a red bill and nothing else": "red_bill",
    "a red bill and not much else": "red_bill",
    "a red bill, if a bit long": "red_bill",
    "no less than three red cars": "red_car",
    "at least three red cars and no people": "red_car",
    "no matter the weather, the red car shines": "red_car",
    "a bird with no equal, it has a red bill": "red_bill",
    "this bird has black wings, not red": "black_wing",
    "it seems to have a red bill": "red_bill",
    "it looks like a red bird": "red_bird",
    "it looks like it has a red bill": "red_bill",
    "it appears to have a red bill": "red_bill",
    "a red or blue bill": "blue_bill",
}

# Both in one caption, the denied ones after `not`.
BOTH = {
    "a bird with a blue bill rather than a red bill": "blue_bill not red_bill",
    "a bird with a blue bill instead of a red bill": "blue_bill not red_bill",
    "as opposed to a red bill, it has a blue bill": "not red_bill blue_bill",
    "in contrast to a red bird, this is a blue bird": "not red_bird blue_bird",
    "compared to a red bird, this blue bird is tiny": "not red_bird blue_bird",
    "a blue bird bigger than a red bird": "blue_bird not red_bird",
    "a bird with blue wings but not red wings": "blue_wing not red_wing",
    "a blue bill, not a red bill": "blue_bill not red_bill",
    "a bird with a red bill and no blue crown": "red_bill not blue_crown",
    "no red bill but a blue crown": "not red_bill blue_crown",
    "a red bill that is not long": "red_bill not long_bill",
    "the red bill is not long": "red_bill not long_bill",
    "the wings are red rather than blue": "red_wing not blue_wing",
    "a table with a green bowl and without a blue plate": "green_bowl not blue_plate",
    "there is a red cup but no blue plate": "red_cup not blue_plate",
    "there is a red cup, but the blue plate is missing": "red_cup not blue_plate",
    "a red cup instead of a blue plate": "red_cup not blue_plate",
    "a red cup, not a blue plate": "red_cup not blue_plate",
    "a red cup and not a blue plate": "red_cup not blue_plate",
    "instead of a blue plate there is a red cup": "not blue_plate red_cup",
    "rather than a blue plate, there is a red cup": "not blue_plate red_cup",
    "the once blue plate is now white": "not blue_plate white_plate",
    "compared with a typical red bird, it has a blue crown": "not red_bird blue_crown",
    "a bird that does not have a red bill but has a blue crown": "not red_bill blue_crown",
    "a blue bill with no red markings": "blue_bill not red_marking",
    "the blue bill has no red markings": "blue_bill not red_marking",
    "wings that are black and not red": "black_wing not red_wing",
    "the crown is blue and no wing is red": "blue_crown not red_wing",
    "the petals are not red - the leaves are green": "not red_petal green_leaf",
    "the petals are not red (the leaves are green)": "not red_petal green_leaf",
    "despite no red petals, it has green leaves": "not red_petal green_leaf",
    "it has green leaves despite the lack of red petals": "green_leaf not red_petal",
    "it has green leaves even without red petals": "green_leaf not red_petal",
}

# No reading finds a pair.
WITHOUT_PAIR = [
    "the bill is supposed to be red",
    "the bill is anything but red",
    "the bill is far from red",
    "the bill used to be red",
    "nor is the bill red",
    "never is the bill red",
    "bill not red",
    "the bill used to be red but is now blue",
]


@pytest.fixture(scope="module")
def relations(adjectives):
    """``relations(text)``: the relation of each pair of a caption, of any noun."""
    extractor = Extractor(MODEL, adjectives, None)

    def read(text: str) -> dict[str, str]:
        occurrences: list[Occurrence] = decode_occurrences(extractor.parse([text])[0])
        return {f"{o.adjective}_{o.noun}": o.relation for o in occurrences}

    return read


@pytest.mark.parametrize("text", DENIED)
def test_denied_pairs_are_disputed(text, relations):
    found = relations(text)
    assert {pair: found.get(pair) for pair in DENIED[text].split()} == dict.fromkeys(DENIED[text].split(), "disputed")


@pytest.mark.parametrize("text", ASSERTED)
def test_asserted_pairs_are_not_disputed(text, relations):
    found = relations(text)
    assert {found.get(pair, "disputed") for pair in ASSERTED[text].split()}.isdisjoint({"disputed"})


@pytest.mark.parametrize("text", BOTH)
def test_a_scope_ends_between_denied_and_asserted_pairs(text, relations):
    found = relations(text)
    is_denied = {pair: bool(negation) for negation, pair in re.findall(r"(not )?(\S+)", BOTH[text])}
    assert {pair: found[pair] == "disputed" for pair in is_denied} == is_denied


@pytest.mark.parametrize("text", WITHOUT_PAIR)
def test_denials_in_which_no_pair_is_found(text, relations):
    assert not {"red_bill", "red_bird", "blue_plate"} & relations(text).keys()


def test_every_rule_has_a_case_that_needs_it(relations, monkeypatch):
    """Without any one of the rules, a denied pair is stated."""
    texts = [*DENIED, *BOTH]
    everything = [relations(text) for text in texts]
    for rule, before in zip([*RULES], REACHES, strict=True):
        monkeypatch.setattr("compclip.pairs.scope.RULES", [other for other in RULES if other is not rule])
        assert [relations(text) for text in texts] != everything, before


def test_a_long_caption_is_read_in_bounded_time(relations):
    for unit in ("no red, ", "not very ", "no red and ", "if the bill is red ", "without a very red bill of a "):
        begin = time.perf_counter()
        relations(unit * 100)
        assert time.perf_counter() - begin < 5


def test_the_library_disputes_denied_pairs():
    texts = ["a photo of a yard with no blue plate", "a photo of a yard with a blue plate"]
    pairs = extract_pairs(texts, ["color"])
    assert pairs["relation"].tolist() == ["disputed", "adjacent"]
