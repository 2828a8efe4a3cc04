"""Certificates tell judges apart that see, guess, prefer places or read texts alone.

Tables are read as documented, and made from captions.
"""

import itertools
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from scipy import stats

from compclip.core.errors import UserError
from compclip.judge.certificate_tables import check_certificate_table, read_certificate_table
from compclip.judge.certify import certify, compare_certificates, passes
from compclip.judge.chooser import JudgedImage, chances_of_scores
from compclip.judge.make_certificate import make_certificate
from compclip.split.make_variants import make_variants
from compclip.text.lexicon import Lexicon
from tests.split.worlds import captions_table, rank, said

IMAGES = 40
GRAY = "gray.png"
Choice = Callable[[JudgedImage, Sequence[str]], Sequence[float]]


class Judge:
    """A judge that scores the texts of an image by a function; it keeps what it was asked."""

    def __init__(self, score: Choice, name: str = "judge") -> None:
        self.score = score
        self.name = name
        self.hash = name
        self.asked: list[tuple[JudgedImage, list[str]]] = []

    def choose(
        self, images: Sequence[JudgedImage], options: Sequence[Sequence[str]]
    ) -> list[np.ndarray]:
        chances = []
        for image, texts in zip(images, options, strict=True):
            self.asked.append((image, list(texts)))
            chances.append(chances_of_scores(np.array(self.score(image, texts), float)))
        return chances


def balanced_table(kinds: Sequence[str] = ("adjective", "binding")) -> pd.DataFrame:
    """Texts of which none is right more often than others."""
    rows = []
    for image, kind in itertools.product(range(IMAGES), kinds):
        right, wrong = ("a red bill", "a blue bill")[:: 1 if image % 2 else -1]
        rows.append((f"{image}.jpg", f"{kind}: {right}", f"{kind}: {wrong}", kind))
    return pd.DataFrame(rows, columns=["image", "right", "wrong", "kind"])


def biased_table() -> pd.DataFrame:
    """Texts of which the right one always reads alike."""
    table = balanced_table()
    return table.assign(right=table["kind"] + " fluent", wrong=table["kind"] + " odd")


def oracle(table: pd.DataFrame) -> Judge:
    right = set()
    for row in check_certificate_table(table).itertuples():
        right.update((row.image, text) for text in row.right)
    return Judge(lambda image, texts: [(image.path.name, text) in right for text in texts])


def coin(seed: int = 0) -> Judge:
    generator = np.random.default_rng(seed)
    return Judge(lambda _, texts: generator.random(len(texts)).tolist())


def first_place() -> Judge:
    return Judge(lambda _, texts: [-place for place in range(len(texts))])


def reader() -> Judge:
    """A judge that does not look at the image."""
    return Judge(lambda _, texts: [text.endswith("fluent") for text in texts])


def without_gray(judge: Judge) -> Judge:
    def score(image: JudgedImage, texts: Sequence[str]) -> Sequence[float]:
        is_gray = image.path.name == GRAY
        return [math.nan] * len(texts) if is_gray else judge.score(image, texts)

    return Judge(score)


def test_an_oracle_passes() -> None:
    table = balanced_table()
    certificate = certify(oracle(table), table)
    for result in certificate.kinds.values():
        assert result.accuracy.value == 1 and result.accuracy.low > 0.8
        assert result.text_only.value == result.chance == 0.5
        assert result.order_effect.value == result.unanswered == 0
        assert result.n == result.images == IMAGES
    assert list(certificate.kinds) == ["adjective", "binding"]
    assert passes(certificate, 0.5) and not passes(certificate, 0.999)


@pytest.mark.parametrize("seed", range(3))
def test_a_coin_fails_at_chance(seed: int) -> None:
    certificate = certify(coin(seed), balanced_table())
    accuracy = certificate.kinds["adjective"].accuracy
    assert accuracy.low < 0.5 < accuracy.high
    assert not passes(certificate, 0)


def test_preferring_a_place_gives_chance_and_the_largest_effect_of_order() -> None:
    certificate = certify(first_place(), biased_table())
    result = certificate.kinds["adjective"]
    assert (result.right_first.value, result.right_last.value) == (1, 0)
    assert result.accuracy.value == 0.5 and result.order_effect.value == 1
    assert not passes(certificate, 0)


def test_reading_texts_alone_is_as_good_without_images() -> None:
    certificate = certify(reader(), biased_table())
    result = certificate.kinds["adjective"]
    assert result.accuracy.value == result.text_only.value == 1
    assert result.image_gain.value == result.order_effect.value == 0
    assert not passes(certificate, 0)


def test_reading_texts_alone_does_not_help_on_a_balanced_table() -> None:
    table = balanced_table()
    judge = Judge(lambda _, texts: ["red" in text for text in texts])
    assert certify(judge, table).kinds["adjective"].accuracy.value == 0.5


def test_adjectives_decide() -> None:
    table = balanced_table()
    knows = oracle(table)
    bag = Judge(
        lambda image, texts: [
            "binding" not in text and score
            for text, score in zip(texts, knows.score(image, texts), strict=True)
        ]
    )
    is_adjective = table["kind"] == "adjective"
    assert passes(certify(bag, table), 0.5)
    assert passes(certify(bag, table[is_adjective]), 0.5)
    assert not passes(certify(knows, table[~is_adjective]), 0.5)


def test_unanswered_items_are_wrong_and_counted() -> None:
    table = balanced_table()
    knows = oracle(table)
    judge = Judge(
        lambda image, texts: (
            [math.nan] * 2 if image.path.name in ("0.jpg", "1.jpg") else knows.score(image, texts)
        )
    )
    result = certify(judge, table).kinds["binding"]
    assert result.unanswered == 2 and result.text_only_unanswered == 0
    assert result.accuracy.value == (IMAGES - 2) / IMAGES


def test_no_answer_without_an_image_is_no_control() -> None:
    table = balanced_table()
    certificate = certify(without_gray(oracle(table)), table)
    result = certificate.kinds["adjective"]
    assert result.text_only is None and result.image_gain is None
    assert result.text_only_unanswered == IMAGES and result.unanswered == 0
    assert not passes(certificate, 0)


def test_a_single_image_does_not_pass() -> None:
    table = balanced_table()[:1]
    assert not passes(certify(oracle(table), table), 0)


def test_the_judge_sees_each_image_and_a_gray_one_in_both_orders(tmp_path: Path) -> None:
    rows = {"image": ["a/b.jpg"], "right": ["r"], "wrong": [["x", "y", "z"]], "kind": ["noun"]}
    colors = []

    def score(image: JudgedImage, texts: Sequence[str]) -> Sequence[float]:
        if image.path.name == GRAY:
            colors.append(Image.open(image.path).getcolors())
        return [0.0] * len(texts)

    judge = Judge(score)
    certify(judge, pd.DataFrame(rows).assign(box=[[1, 2, 3, 4]]), folder=tmp_path)
    images = [image for image, _ in judge.asked]
    assert [image.path for image in images[:2]] == [tmp_path / "a" / "b.jpg"] * 2
    assert [image.box for image in images] == [(1, 2, 3, 4)] * 2 + [None] * 2
    assert len({image.id for image in images}) == 4
    assert colors[0] == colors[1] and len(colors[0]) == 1
    first, last = (texts for _, texts in judge.asked[:2])
    assert first[0] == "r" and last == first[::-1]
    assert [texts for _, texts in judge.asked[2:]] == [first, last]


def test_the_order_of_wrong_texts_depends_on_seed_and_row_alone() -> None:
    table = pd.DataFrame(
        {
            "image": [f"{n}.jpg" for n in range(9)],
            "right": "r",
            "wrong": [list("abcdef")] * 9,
            "kind": "adjective",
        }
    )

    def orders(rows: pd.DataFrame, seed: int) -> list[list[str]]:
        judge = coin()
        certify(judge, rows, seed)
        return [texts for _, texts in judge.asked[: len(rows)]]

    assert orders(table, 0) == orders(table, 0) != orders(table, 1)
    assert orders(table[:4], 0) == orders(table, 0)[:4]
    assert len(set(map(tuple, orders(table, 0)))) > 1


def winoground(images: int) -> pd.DataFrame:
    rows = []
    for item in range(images):
        for side, other in ((0, 1), (1, 0)):
            texts = (f"{side} of {item}", f"{other} of {item}")
            rows.append((str(item), f"{item}_{side}.png", *texts, "binding"))
    return pd.DataFrame(rows, columns=["item", "image", "right", "wrong", "kind"])


def test_text_score_needs_both_images() -> None:
    table = winoground(10)
    # Right for the first image of each item, and for both of item 3.
    judge = Judge(
        lambda image, texts: [
            text == ("0 of 3" if image.path.name == "3_0.png" else text)
            and (text.startswith("0") if "3_1" not in image.path.name else text.startswith("1"))
            for text in texts
        ]
    )
    result = certify(judge, table).kinds["binding"]
    assert result.accuracy.value == 0.1 and result.n == 10 and result.chance == 0.25


def test_both_right_texts_must_beat_the_wrong_one() -> None:
    table = pd.DataFrame(
        {"image": ["a", "b"], "right": [["r", "s"]] * 2, "wrong": "w", "kind": "adjective"}
    )
    scores = {"r": 2, "w": 1, "s": 0}
    judge = Judge(lambda image, texts: [scores[text] for text in texts])
    result = certify(judge, table).kinds["adjective"]
    assert result.accuracy.value == 0 and result.chance == pytest.approx(1 / 3)
    scores["s"] = 3
    assert certify(judge, table).kinds["adjective"].accuracy.value == 1


@pytest.mark.parametrize(("scores", "accuracy"), [("rsw", 1), ("wrs", 1), ("rws", 0), ("swr", 0)])
def test_synonyms_must_give_one_choice(scores: str, accuracy: float) -> None:
    """``scores``: the texts from the best to the worst."""
    table = pd.DataFrame(
        {"image": ["a", "b"], "right": [["r", "s"]] * 2, "wrong": "w", "kind": "synonym"}
    )
    judge = Judge(lambda image, texts: [-scores.index(text) for text in texts])
    assert certify(judge, table).kinds["synonym"].accuracy.value == accuracy


@pytest.mark.parametrize("kind", ["adjective", "synonym"])
@pytest.mark.parametrize(("n_right", "n_wrong"), [(1, 1), (1, 3), (2, 1), (2, 3)])
def test_chance_is_the_mean_over_all_orders_of_scores(
    kind: str, n_right: int, n_wrong: int
) -> None:
    if kind == "synonym" and n_right == 1:
        return
    right = [f"r{n}" for n in range(n_right)]
    wrong = [f"w{n}" for n in range(n_wrong)]
    rows = []
    order_by_image = {}
    for number, order in enumerate(itertools.permutations(right + wrong)):
        rows.append((str(number), right, wrong, kind))
        order_by_image[str(number)] = order
    table = pd.DataFrame(rows, columns=["image", "right", "wrong", "kind"])
    judge = Judge(
        lambda image, texts: [
            -order_by_image.get(image.path.name, right + wrong).index(text) for text in texts
        ]
    )
    result = certify(judge, table).kinds[kind]
    assert result.accuracy.value == pytest.approx(result.chance)


def test_intervals_are_over_images() -> None:
    """Rows of one image that agree add nothing, so that the interval stays."""
    table = balanced_table(["adjective"])
    knows = oracle(table)
    judge = Judge(
        lambda image, texts: (
            knows.score(image, [text.removesuffix(" again") for text in texts])
            if int(image.path.stem.replace("gray", "0")) % 3
            else [0.0] * len(texts)
        )
    )
    again = table.assign(right=table["right"] + " again", wrong=table["wrong"] + " again")
    once = certify(judge, table).kinds["adjective"]
    twice = certify(judge, pd.concat([table, again])).kinds["adjective"]
    assert twice.n == 2 * once.n and twice.images == once.images
    assert twice.accuracy.low == pytest.approx(once.accuracy.low, abs=1e-9)


def test_faulty_answers_of_a_judge_are_named() -> None:
    judge = coin()
    judge.choose = lambda images, options: [np.ones(2)] * len(images)
    with pytest.raises(UserError, match="judge: choice 0: chances"):
        certify(judge, balanced_table())


def wrong_for_each(knows: Judge, modulus: int) -> Judge:
    """A judge that is wrong for each image whose number ``modulus`` divides."""

    def score(image: JudgedImage, texts: Sequence[str]) -> Sequence[float]:
        if image.path.name == GRAY:
            return [0.0] * len(texts)
        is_wrong = int(image.path.stem) % modulus == 0
        return [value * (-1 if is_wrong else 1) for value in knows.score(image, texts)]

    return Judge(score)


def certificates() -> dict[str, pd.DataFrame]:
    table = balanced_table()
    knows = oracle(table)
    moduli = {"good": 8, "fair": 2, "poor": 1}
    return {name: certify(wrong_for_each(knows, n), table).items for name, n in moduli.items()}


def test_judges_are_compared_by_mcnemars_test() -> None:
    results = certificates()
    table = compare_certificates(results)
    assert table["kind"].tolist() == ["adjective"] * 3 + ["binding"] * 3
    row = table[(table["a"] == "good") & (table["b"] == "fair")].iloc[0]
    # The first is wrong for each eighth image, the second for each second one.
    assert (row["only_a"], row["only_b"], row["n"]) == (15, 0, IMAGES)
    assert row["p"] == pytest.approx(stats.binomtest(15, 15).pvalue)
    assert row["difference"] == pytest.approx(15 / IMAGES)
    assert row["low"] < row["difference"] < row["high"]


def test_p_values_are_adjusted_over_kinds_and_judges() -> None:
    table = compare_certificates(certificates())
    p = np.sort(table["p"])
    adjusted = np.minimum(1, np.maximum.accumulate(p * np.arange(len(p), 0, -1)))
    assert np.sort(table["p_holm"]) == pytest.approx(adjusted)


def test_members_of_a_judge_are_averaged() -> None:
    items = certificates()
    both = pd.concat([items["good"].assign(member="0"), items["poor"].assign(member="1")])
    table = compare_certificates({"good": items["good"], "both": both})
    row = table[table["kind"] == "adjective"].iloc[0]
    # The second member has no item right, so the mean is half of the first one's.
    assert row["difference"] == pytest.approx(
        items["good"].query("kind == 'adjective'")["accuracy"].mean() / 2
    )
    assert row["only_b"] == 0


def test_certificates_of_different_items_are_not_compared() -> None:
    table = balanced_table()
    ours = certify(oracle(table), table).items
    other = certify(oracle(table), table[:-1]).items
    with pytest.raises(UserError, match="b: certificates of different items"):
        compare_certificates({"a": ours, "b": other})
    with pytest.raises(UserError, match="fewer than two judges"):
        compare_certificates({"a": ours})


@pytest.mark.parametrize(
    "changes", [{"kind": "noun"}, {"image": "other.jpg"}, {"chance": 0.25}], ids=str
)
def test_certificates_of_other_tables_are_not_compared(changes: dict[str, Any]) -> None:
    table = balanced_table()
    ours = certify(oracle(table), table).items
    with pytest.raises(UserError, match="b: certificates of different items"):
        compare_certificates({"a": ours, "b": ours.assign(**changes)})


def test_certify_refuses_what_is_not_a_judge() -> None:
    with pytest.raises(UserError, match="^chooser: Input should be an instance of Chooser"):
        certify("table", balanced_table())  # type: ignore[arg-type]


def test_certify_refuses_a_seed_that_is_not_a_number() -> None:
    with pytest.raises(UserError, match="^seed: expected a number"):
        certify(coin(), balanced_table(), seed="x")  # type: ignore[arg-type]


def test_kinds_are_read_without_white_space_and_capitals() -> None:
    kinds = [" Adjective", "NOUN ", "binding", " swap_Att "]
    table = balanced_table()[:4].assign(kind=kinds)
    expected = ["adjective", "noun", "binding", "swap_Att"]
    assert check_certificate_table(table)["kind"].tolist() == expected


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"right": math.nan}, "row 0: expected a text, got nan"),
        ({"wrong": " "}, "row 0: blank text"),
        ({"image": None}, "row 0: expected a text"),
        ({"kind": 3}, "row 0: expected a text"),
        ({"right": "a  Bill", "wrong": "a bill"}, "row 0: two equal texts"),
        ({"kind": "synonym"}, "row 0: a synonym needs two right texts"),
        ({"image": "a.jpg", "right": "r", "wrong": "w"}, "row 1: duplicate"),
        ({"item": "one"}, "item 'one' has several kinds"),
    ],
)
def test_a_faulty_table_is_one_line(changes: dict[str, Any], fault: str) -> None:
    table = balanced_table().assign(**changes)
    if "image" in changes:
        table["kind"] = "adjective"
    with pytest.raises(UserError, match=fault) as error:
        certify(coin(), table)
    assert "\n" not in str(error.value)


def test_missing_columns_rows_and_texts_are_named() -> None:
    with pytest.raises(UserError, match="no column wrong"):
        certify(coin(), balanced_table().drop(columns="wrong"))
    with pytest.raises(UserError, match="no rows"):
        certify(coin(), balanced_table()[:0])
    rows = {"image": ["a"], "right": [[]], "wrong": [["w"]], "kind": ["noun"]}
    with pytest.raises(UserError, match="row 0: no right or no wrong text"):
        check_certificate_table(pd.DataFrame(rows))


@pytest.mark.parametrize(
    "box", [[1, 2, 3], [1, 2, 3, math.inf], [1, 2, 0, 4], [1, 2, 3, 0], "large", 5]
)
def test_a_faulty_box_is_named(box: Any) -> None:
    rows = {"image": ["a"], "right": ["r"], "wrong": ["w"], "kind": ["noun"], "box": [box]}
    with pytest.raises(UserError, match="row 0: box"):
        check_certificate_table(pd.DataFrame(rows))


def test_a_checked_table_stays_as_it_is() -> None:
    table = check_certificate_table(winoground(2))
    pd.testing.assert_frame_equal(check_certificate_table(table), table)


SUGARCREPE = {"filename": "1.jpg", "caption": "a red cup", "negative_caption": "a blue cup"}
ARO = {
    "image_id": 1,
    "image_path": "1.jpg",
    "true_caption": "a cup on a plate",
    "false_caption": "a plate on a cup",
    "relation_name": "on",
    "bbox_x": 1,
    "bbox_y": 2,
    "bbox_w": 30,
    "bbox_h": 40,
}
WINOGROUND = {
    "id": 0,
    "image_0": "ex_0_img_0",
    "image_1": "ex_0_img_1",
    "caption_0": "an old person kisses a young person",
    "caption_1": "a young person kisses an old person",
    "num_main_preds": 1,
}


def write(folder: Path, name: str, content: Any) -> Path:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_sugarcrepe_is_read(tmp_path: Path) -> None:
    content = {"0": SUGARCREPE, "1": SUGARCREPE | {"caption": "a green cup"}}
    table = read_certificate_table(write(tmp_path, "swap_att.json", content), "binding")
    assert table["right"].tolist() == [("a red cup",), ("a green cup",)]
    assert table["wrong"].tolist() == [("a blue cup",)] * 2
    assert table["image"].tolist() == ["1.jpg"] * 2 and set(table["kind"]) == {"binding"}


def test_sugarcrepe_pp_has_two_right_texts(tmp_path: Path) -> None:
    record = {"id": 0, "caption2": "a cup that is red", **SUGARCREPE}
    table = read_certificate_table(write(tmp_path, "pp.json", [record]), "adjective")
    assert table["right"].tolist() == [("a red cup", "a cup that is red")]


def test_aro_is_read_with_its_box(tmp_path: Path) -> None:
    table = read_certificate_table(write(tmp_path, "relation.json", [ARO]), "relation")
    assert table["box"].tolist() == [(1, 2, 30, 40)]
    assert table["right"].tolist() == [("a cup on a plate",)]


def test_winoground_is_an_item_of_two_images(tmp_path: Path) -> None:
    records = [WINOGROUND, WINOGROUND | {"image_0": "ex_1_img_0", "image_1": "ex_1_img_1"}]
    path = write(tmp_path, "examples.jsonl", "\n".join(map(json.dumps, records)))
    table = read_certificate_table(path, "binding")
    assert table["item"].tolist() == ["0", "0", "1", "1"]
    assert table["image"].tolist()[:2] == ["ex_0_img_0.png", "ex_0_img_1.png"]
    assert table["right"].tolist()[1] == table["wrong"].tolist()[0]


def test_tables_are_read_from_csv_and_json(tmp_path: Path) -> None:
    csv = "image,right,wrong,kind\n1.jpg,a red cup,a blue cup,adjective\n"
    table = read_certificate_table(write(tmp_path, "table.csv", csv))
    rows = [{"image": "1.jpg", "right": ["a red cup"], "wrong": ["a blue cup"]}]
    path = write(tmp_path, "table.json", [row | {"kind": "adjective"} for row in rows])
    pd.testing.assert_frame_equal(read_certificate_table(path), table)


def test_faulty_items_of_a_published_file_are_skipped(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    equal = WINOGROUND | {"image_0": "c", "image_1": "d", "caption_0": "x", "caption_1": "X"}
    repeated = WINOGROUND | {"image_1": "e"}
    records = [WINOGROUND, equal, repeated]
    path = write(tmp_path, "examples.jsonl", "\n".join(map(json.dumps, records)))
    assert read_certificate_table(path, "binding")["item"].tolist() == ["0", "0"]
    assert "two equal texts" in caplog.text and "duplicate" in caplog.text


@pytest.mark.parametrize(
    ("name", "content", "kind", "fault"),
    [
        ("a.json", [{"text": "a"}], "binding", "unknown layout with the keys text"),
        ("a.csv", "path,text\n1,2\n", "binding", "unknown layout"),
        ("a.json", [SUGARCREPE], "", "no kind for its rows"),
        ("a.json", [{**SUGARCREPE, "caption": None}], "binding", "row 0: expected a text"),
        ("a.json", [], "binding", "expected a list of objects"),
        ("a.json", [1], "binding", "expected a list of objects"),
        ("a.json", "3", "binding", "expected a list of objects"),
        ("a.json", "{", "binding", "not valid JSON"),
        ("a.csv", "image,right,wrong,kind\n1.jpg,r\n", "", "line 2"),
        ("a.csv", "image,right,wrong,kind\n", "", "no rows"),
        ("a.csv", "image,right,wrong,kind\n1.jpg,r,r,k\n", "", "row 0: two equal texts"),
        ("a.xml", "<a/>", "", "unknown format"),
    ],
)
def test_a_faulty_file_is_one_line(
    tmp_path: Path, name: str, content: Any, kind: str, fault: str
) -> None:
    path = write(tmp_path, name, content)
    with pytest.raises(UserError, match=fault) as error:
        read_certificate_table(path, kind)
    assert "\n" not in str(error.value) and str(error.value).startswith(str(path))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file"):
        read_certificate_table(tmp_path / "a.json")


COLORS = ("red", "blue", "gray", "orange", "black")
LEXICON = Lexicon("color", {**{color: color for color in COLORS}, "grey": "gray"})
TEXTS = [
    ("a", "a red bill and a black wing"),
    ("b", "a gray bill"),
    ("c", "a grey bill"),
    ("d", "an orange crown"),
    ("e", "red wings that are black"),
    ("f", "a red crown"),
    ("g", "black bills"),
]


def made(texts: Sequence[tuple[str, str]] = TEXTS, seed: int = 0, **changes: Any) -> pd.DataFrame:
    """The certificate of captions, each of its own image; its first pair is the target."""
    captions = captions_table([(image, 0, text) for image, text in texts])
    stated = []
    for image, text in texts:
        words = text.replace("wings that are", "wing").split()
        colors = [position for position, word in enumerate(words) if word in LEXICON.forms]
        for position in colors:
            noun = words[min(position + 1, len(words) - 1)].rstrip("s")
            noun = "wing" if noun in COLORS else noun
            stated.append(f"{image} {words[position]} {noun}")
    pairs = said(*stated, captions=captions)
    pairs["adjective"] = pairs["adjective"].replace("grey", "gray")
    first = pairs.drop_duplicates("image_id")
    prompts = first[["image_id", "caption_id"]].assign(
        split="test_seen", pair=first["adjective"] + "_" + first["noun"], draw=0
    )
    images = pd.DataFrame({"image_id": captions["image_id"], "path": captions["image_id"] + ".jpg"})
    variants, _ = make_variants(prompts, captions, pairs, rank(pairs), LEXICON)
    arguments = {"prompts": prompts, "images": images, "variants": variants} | changes
    return make_certificate(
        captions=captions, pairs=pairs, adjectives=LEXICON, seed=seed, **arguments
    )


def texts_of(table: pd.DataFrame, kind: str) -> dict[str, tuple]:
    """The right and wrong texts of a kind by image."""
    rows = table[table["kind"] == kind]
    images = rows["image"].str.removesuffix(".jpg")
    return dict(zip(images, zip(rows["right"], rows["wrong"], strict=True), strict=True))


def test_wrong_adjectives_are_the_variants() -> None:
    right, wrong = texts_of(made(), "adjective")["b"]
    assert right == ("a gray bill",) and set(wrong) == {"a red bill", "a black bill"}


def test_adjectives_of_two_nouns_are_exchanged() -> None:
    exchanged = texts_of(made(), "binding")
    assert exchanged == {
        "a": (("a red bill and a black wing",), ("a black bill and a red wing",)),
    }


def test_adjectives_that_a_caption_states_are_not_exchanged() -> None:
    texts = [("a", "a red bill and a black wing"), ("b", "a red bill and a red wing")]
    assert set(texts_of(made(texts), "binding")) == {"a"}


def test_synonyms_are_forms_of_the_lexicon() -> None:
    synonyms = texts_of(made(), "synonym")
    assert {image: right for image, (right, _) in synonyms.items()} == {
        "b": ("a gray bill", "a grey bill"),
        "c": ("a grey bill", "a gray bill"),
    }


def test_other_nouns_occur_with_the_adjective_and_in_no_caption_of_the_image() -> None:
    nouns = texts_of(made(), "noun")
    assert nouns["a"] == ((TEXTS[0][1],), ("a red crown and a black wing",))
    assert nouns["f"][1][0] in ("a red bill", "a red wing")
    # Only the crown is orange.
    assert "d" not in nouns
    # Plurals stay plurals.
    assert "g" not in nouns or nouns["g"][1] == ("black wings",)


@settings(max_examples=10)
@given(st.integers(0, 10**6))
def test_a_made_table_can_be_certified(seed: int) -> None:
    table = made(seed=seed)
    assert set(table["item"].str.split("/").str[0]) == set(table["kind"])
    certificate = certify(oracle(table), table, seed)
    accuracies = {kind: result.accuracy.value for kind, result in certificate.kinds.items()}
    assert accuracies == dict.fromkeys(["adjective", "noun", "binding", "synonym"], 1)


def test_the_seed_alone_decides_what_is_made() -> None:
    pd.testing.assert_frame_equal(made(seed=1), made(seed=1))


def test_prompts_without_an_image_are_left_out() -> None:
    images = pd.DataFrame({"image_id": ["a", "b"], "path": ["x.jpg", None]})
    assert set(made(images=images)["image"]) == {"x.jpg"}
    with pytest.raises(UserError, match="no prompt of a real image has a wrong text"):
        made(images=images.assign(path=None))


def test_boxes_of_images_are_kept() -> None:
    images = pd.DataFrame({"image_id": ["a", "b"], "path": ["a.jpg", "b.jpg"]})
    sizes = dict.fromkeys(["bbox_x", "bbox_y", "bbox_w", "bbox_h"], [1.0, math.nan])
    table = made(images=images.assign(**sizes)).set_index("image")
    assert table.loc["a.jpg", "box"].tolist()[0] == (1, 1, 1, 1)
    assert set(table.loc["b.jpg", "box"]) == {None}


def test_variants_need_their_split() -> None:
    variants = pd.DataFrame({"image_id": ["a"], "caption_id": [0], "text": ["a blue bill"]})
    with pytest.raises(UserError, match="variants: no column split"):
        made(variants=variants)
