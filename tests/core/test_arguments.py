"""What the library's public functions refuse: by their signatures, each argument with inputs that
it cannot take.
"""

import inspect
import typing
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import compclip
from compclip.core.errors import UserError
from compclip.core.identity.code import ROOT
from compclip.core.settings.arguments import AS_TEXT, as_captions, require_joined
from compclip.divergence.measure import measure_divergence
from tests.score.world import FakeJudge

N = 6
COLORS = ("red", "blue", "green", "black", "white", "brown")
SIMILARITY = np.linspace(-1, 1, N * N).reshape(N, N) + np.eye(N)
TEXTS = [f"a {color} bill" for color in COLORS]
IDS = [f"000{n}" for n in range(N)]
CAPTIONS = pd.DataFrame({"image_id": IDS, "caption_id": 0, "text": TEXTS})
ENDS = np.array([2 + len(color) for color in COLORS])
OFFSETS = {
    "adjective_start": 2,
    "adjective_end": ENDS,
    "noun_start": ENDS + 1,
    "noun_end": ENDS + 5,
}
PAIRS = CAPTIONS[["image_id", "caption_id"]].assign(
    adjective=COLORS, noun="bill", **OFFSETS, relation="attributive"
)
RANKING = pd.DataFrame(
    {
        "adjective": COLORS,
        "noun": "bill",
        "count": 1,
        "images": 1,
        "rank": range(1, N + 1),
        "percentile": 50.0,
    }
)
SPLITS = pd.DataFrame(
    {"image_id": IDS, "split": ["train", "train", "train", "test_seen", "test_seen", "test_unseen"]}
)
DIVISION = pd.DataFrame({"image_id": IDS, "side": ["train"] * 3 + ["test"] * 3})
IMAGES = pd.DataFrame({"image_id": IDS, "path": [f"{name}.png" for name in IDS]})
SWAPPED = CAPTIONS[3:5].assign(
    swapped_text="a brown bill",
    pair="brown_bill",
    exclusive=True,
    changes=[
        [
            {
                "noun": "bill",
                "original_adj": color,
                "new_adj": "brown",
                "start": 2,
                "end": 2 + len(color),
                "new_start": 2,
                "new_end": 7,
            }
        ]
        for color in COLORS[3:5]
    ],
)
PROMPTS = CAPTIONS.assign(split="test_seen", draw=0, pair="red_bill", file_name=IDS)
SAMPLES = [{"atoms": [a, b], "compounds": [a + b]} for a in "abc" for b in "xyz"]
VECTORS = torch.eye(N, 8)
LEXICONS = {"adjectives": "color", "nouns": "birds"}


class Guesses:
    """A judge that chooses the first text."""

    name = "guesses"
    hash = "0"

    def choose(self, images: Any, options: Any) -> list[np.ndarray]:
        return [np.eye(len(texts))[0] for texts in options]


@pytest.fixture
def calls(tmp_path: Path) -> dict[str, dict[str, Any]]:
    """Arguments of each public function that it takes."""
    for name, text in zip(IDS, TEXTS, strict=True):
        (tmp_path / f"{name}.png").write_text(text)
    entries = CAPTIONS.assign(path=[tmp_path / f"{name}.png" for name in IDS], pair="red_bill")
    variants = CAPTIONS.assign(text="a gray bill")
    # Twice as many images, so that each pair is also in another.
    more, more_pairs = (
        pd.concat([of, of.assign(image_id="1" + of["image_id"])]) for of in (CAPTIONS, PAIRS)
    )
    split = {"captions": CAPTIONS, "pairs": PAIRS, "heldout": ["brown_bill"], **LEXICONS}
    three = dict.fromkeys(("full", "base", "detail", "negative"), VECTORS)
    (tmp_path / "lexicon.yaml").write_text("red: [reddish]\n")
    return {
        "adjective_accuracy": {"own": np.ones(2), "of_variants": np.zeros(2), "entry": [0, 1]},
        "audit": split | {"splits": SPLITS, "swapped": SWAPPED},
        "choose": {"judge": Guesses(), "entries": entries, "variants": variants},
        "choose_compound": {"three": SIMILARITY[:, :3]},
        "compare_scores": {
            "a": np.ones(N),
            "b": np.zeros(N),
            "images": IDS,
            "pairs": None,
            "ends": None,
        },
        "divide_images": {"image_ids": IDS, "pairs": PAIRS, "ranking": RANKING},
        "divide_samples": {
            "samples": SAMPLES,
            "n_train": 4,
            "n_test": 3,
            "restarts": 1,
        },
        "estimate_score": {"values": np.eye(N)[0], "images": IDS, "pairs": ["red_bill"] * N},
        "extract_pairs": {"captions": CAPTIONS, "adjectives": ["color"], "nouns": "birds"},
        "evaluation_images": {"splits": SPLITS, "images": IMAGES, "train_on": "half", "seed": 0},
        "list_options": {
            "entries": entries,
            "variants": variants,
            "file": tmp_path / "options.jsonl",
        },
        "load_lexicon": {"path": tmp_path / "lexicon.yaml"},
        "make_prompts": {
            "captions": CAPTIONS,
            "pairs": PAIRS,
            "ranking": RANKING,
            "judged": None,
            "swapped": None,
        },
        "make_splits": split
        | {"captions": more, "pairs": more_pairs, "ranking": RANKING, "test_seen": 1},
        "make_variants": {
            "prompts": PROMPTS,
            "captions": CAPTIONS,
            "pairs": PAIRS,
            "ranking": RANKING,
            **LEXICONS,
        },
        "measure_divergence": {"train": SAMPLES[:5], "test": SAMPLES[5:]},
        "r_precision": {"similarity": SIMILARITY, "own": range(N), "images": IDS, "classes": None},
        "rank_pairs": {"pairs": PAIRS, **LEXICONS, "selection": compclip.Selection(min_count=1)},
        "sample_heldout": {
            "ranking": RANKING,
            "pairs": PAIRS,
            "listed": ["brown_bill"],
            "adjectives": "color",
            "nouns": "birds",
        },
        "score_with_judge": {
            "entries": entries,
            "judge": FakeJudge(),
            "captions": CAPTIONS,
            "variants": variants,
        },
        "specs_loss": three | {"images": VECTORS, "scale": torch.tensor(5.0)},
        "specs_score": {"images": VECTORS, "texts": VECTORS},
        "swap_adjectives": split | {"splits": SPLITS},
        "write_manifest": {"folder": tmp_path, "prompts": PROMPTS},
    }


# A judge's folder and settings are checked where they are read, and choices in tests/report; the
# others are models and an error.
OTHERS = {"load_judge", "open_judge", "fraction_composed", "Scoring", "Selection", "UserError"}
FUNCTIONS = sorted(set(compclip.__all__) - OTHERS)


# Without a division there is nothing to join with; None and NaN are no pair; the audit reports
# other captions.
ALLOWED = {
    ("rank_pairs", "pairs", "other ids"),
    ("extract_pairs", "captions", "a list"),
    ("sample_heldout", "pairs", "other ids"),
    ("estimate_score", "pairs", "with None"),
    ("estimate_score", "pairs", "with NaN"),
    ("write_manifest", "prompts", "no image_id"),
    ("audit", "swapped", "other ids"),
}


def without(array: Any, value: Any) -> np.ndarray:
    """Return floats with their first one replaced."""
    result = np.array(array, float)
    result.flat[0] = value
    return result


def spoiled(value: Any) -> dict[str, Any]:
    """Return inputs like a good one, each with one fault."""
    bad: dict[str, Any] = {
        "an object": object(),
        "a function": len,
        "bytes": b"\xff",
        "a complex number": 1j,
    }
    if isinstance(value, pd.DataFrame):
        ids = (
            {
                name: value.assign(image_id=pd.Series(column, value.index, dtype=object))
                for name, column in {
                    "missing id": [None, *value["image_id"][1:]],
                    "float ids": list(np.arange(len(value)) * 1.0),
                    "mixed ids": [0, *value["image_id"][1:]],
                    "blank id": [" ", *value["image_id"][1:]],
                    "surrogate in an id": ["\ud800", *value["image_id"][1:]],
                    "other ids": "elsewhere",
                    "list as id": [["a"], *value["image_id"][1:]],
                }.items()
            }
            if "image_id" in value and "file_name" not in value
            else {}
        )
        bad |= ids | {
            "no columns": pd.DataFrame(),
            "a list": ["a"],
            "one text": "a red bill",
            "rows": value.to_dict(),
        }
        bad |= {
            f"no {name}": value.drop(columns=name)
            for name in ("image_id", "adjective")
            if name in value
        }
        if "text" in value and "swapped_text" not in value:
            rest = value["text"].tolist()[1:]
            bad |= {
                f"text {ascii(text)}": value.assign(
                    text=pd.Series([text, *rest], value.index, dtype=object)
                )
                for text in (None, np.nan, "", " ", "\u200b", "a \ud800 bill", "a\0bill", 3, ["a"])
            }
    elif isinstance(value, np.ndarray):
        bad |= {
            "NaN": np.full(value.shape, np.nan),
            "infinite": without(value, np.inf),
            "empty": value[:0],
        }
        bad |= {
            "complex": value + 1j,
            "texts": value.astype(str),
            "objects": np.full(value.shape, None),
        }
        bad |= {
            "another dimension": np.zeros((2, 2, 2)),
            "masked": np.ma.masked_array(value, mask=True),
        }
    elif isinstance(value, torch.Tensor) and value.ndim:
        bad |= {
            "array": value.numpy(),
            "integers": value.int(),
            "one row": value[0],
            "another length": value[:2],
        }
        bad |= {"empty": value[:0], "complex": value + 0j}
    elif isinstance(value, list) and value and isinstance(value[0], str):
        bad |= {
            "one text": "red_bill",
            "with None": [None, *value[1:]],
            "with NaN": [np.nan, *value[1:]],
        }
        bad |= {"with a float": [1.5, *value[1:]], "nested": [[each] for each in value]}
    elif isinstance(value, list):
        bad |= {"one text": "a", "numbers": [1], "None in it": [None], "a mapping": {"atoms": []}}
        bad |= {
            "a text as atoms": [{"atoms": "ab", "compounds": []}],
            "no compounds": [{"atoms": ["a"]}],
        }
    elif isinstance(value, range):
        bad |= {
            "negative": [-1, *value[1:]],
            "too large": [N, *value[1:]],
            "floats": np.arange(N) * 1.0,
            "short": [0],
        }
    elif isinstance(value, int):
        bad |= {"text": "x", "negative": -1, "fraction": 1.5, "NaN": np.nan, "None": [None]}
    return bad


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_refuses_each_spoiled_argument_in_one_line(
    name: str, calls: dict[str, dict[str, Any]]
) -> None:
    function, given = getattr(compclip, name), calls[name]
    function(**given)
    hints, wrong = typing.get_type_hints(function, include_extras=True), []
    for argument, parameter in inspect.signature(function).parameters.items():
        value = given.get(argument, parameter.default)
        assert argument in hints and hints[argument] is not Any, argument
        for fault, bad in spoiled(value).items():
            if (name, argument, fault) in ALLOWED:
                continue
            try:
                function(**given | {argument: bad})
                wrong.append((argument, fault, "accepted"))
            except UserError as error:
                if "\n" in str(error) or len(str(error)) > 500:
                    wrong.append((argument, fault, str(error)))
            except Exception as error:
                wrong.append((argument, fault, repr(error)))
    assert not wrong


def test_every_public_function_has_valid_arguments_here_and_a_row_in_the_documentation(
    calls: dict[str, dict[str, Any]],
) -> None:
    """A new public function must be added, with its checks."""
    assert sorted(calls) == FUNCTIONS
    table = (ROOT / "docs" / "library.md").read_text().partition("## What is refused")[2]
    for name in FUNCTIONS:
        assert f"`{name}`" in table, name


@pytest.mark.parametrize(
    ("argument", "bad"),
    [
        ("candidates", 0),
        ("candidates", 1),
        ("candidates", -3),
        ("candidates", "10"),
        ("candidates", True),
        ("candidates", 10**9),
        ("ties", "x"),
        ("ties", None),
        ("seed", -1),
        ("own", np.arange(N) - 1),
        ("own", np.arange(N) + 1),
        ("own", np.arange(N) > 2),
        ("images", IDS[:-1]),
        ("images", [*IDS[1:], 1]),
        ("images", np.arange(N) / 2),
        ("classes", [None] * N),
        ("classes", IDS[:-1]),
        ("similarity", SIMILARITY > 0),
        ("similarity", SIMILARITY[0]),
        ("similarity", np.where(SIMILARITY > 1, -np.inf, SIMILARITY)),
    ],
)
def test_r_precision_refuses(argument: str, bad: Any) -> None:
    given = {"similarity": SIMILARITY, "own": range(N), "images": IDS} | {argument: bad}
    with pytest.raises(UserError, match=f"^{argument}: "):
        compclip.r_precision(**given)


def test_an_image_has_one_class() -> None:
    with pytest.raises(UserError, match="^classes: an image has two classes"):
        compclip.r_precision(SIMILARITY, range(N), ["a", "a", *IDS[2:]], range(N))
    with pytest.raises(UserError, match="only one image in this split"):
        compclip.r_precision(SIMILARITY, range(N), ["a"] * N)


@pytest.mark.parametrize("rows", [10, 50, 100, 200])
def test_rows_of_nan_are_named(rows: int) -> None:
    similarity = np.random.default_rng(0).normal(size=(200, 200))
    similarity[200 - rows :] = np.nan
    with pytest.raises(
        UserError,
        match=f"similarity: row {200 - rows}, column 0: expected a finite number, got nan",
    ):
        compclip.r_precision(similarity, np.arange(200), range(200))


@pytest.mark.parametrize(
    "convert",
    [
        lambda s: torch.tensor(s),
        lambda s: torch.tensor(s, requires_grad=True),
        lambda s: torch.tensor(s).bfloat16(),
        lambda s: s.astype(">f4"),
        lambda s: s.tolist(),
        lambda s: pd.DataFrame(s),
        lambda s: np.asfortranarray(s),
        lambda s: s.astype(np.float64),
        lambda s: s.astype(np.longdouble),
    ],
)
def test_numbers_of_any_kind_give_the_values_of_float32(
    convert: Callable[[np.ndarray], Any],
) -> None:
    """Multiples of 1/64 are exact in each."""
    similarity = np.random.default_rng(0).integers(-64, 65, (N, N)).astype(np.float16) / np.float16(
        64
    )
    expected = compclip.r_precision(similarity.astype(np.float32), range(N), range(N), candidates=4)
    for given in (similarity, convert(similarity.astype(np.float32))):
        found = compclip.r_precision(
            given, torch.arange(N), torch.arange(N), candidates=np.int64(4)
        )
        assert (
            found.expected.tolist() == expected.expected.tolist()
            and found.hit.tolist() == expected.hit.tolist()
        )
        own, entry = (
            given[0] if not isinstance(given, pd.DataFrame) else given.iloc[0],
            torch.arange(N),
        )
        accuracy = compclip.adjective_accuracy(own, np.zeros(N), entry).first.tolist()
        assert (
            accuracy
            == compclip.adjective_accuracy(similarity[0], np.zeros(N), entry).first.tolist()
        )


@pytest.mark.parametrize(
    ("a", "b", "more", "fault"),
    [
        ([1, 0, np.nan], [0, 0, 1], {}, "a: row 2"),
        ([1, 0, 1], [0, 0, 1], {"ends": (1, -1)}, "ends: expected the smaller"),
        ([1, 0, 1], [0, 0, 1], {"ends": (0,)}, "ends: expected the smaller"),
        ([1, 0, 1], [0, 0, 1], {"ends": (np.nan, 1)}, "ends: row 0"),
        ([1, 0, -1], [0, 0, 1], {}, "ends: required"),
        ([], [], {}, "a: expected an array of numbers"),
        ([1, 0, 1], [0, 0], {}, "b: expected one row"),
        ([1, 0, 1], [0, 0], {"b_images": range(3)}, "b_images: expected one row"),
        (np.ones((3, 2)), np.ones((3, 3)), {}, "b: expected 2 judges"),
        ([50, 80, 90], [0, 0, 1], {}, "a: row 0"),
    ],
)
def test_compare_scores_refuses(a: Any, b: Any, more: dict[str, Any], fault: str) -> None:
    with pytest.raises(UserError, match=fault):
        compclip.compare_scores(a, b, range(3), **more)


@pytest.mark.parametrize(
    "values",
    [
        [50, 80, 90],
        [np.inf, 0, 1],
        [1j, 0, 1],
        [-1, 0, 1],
        [],
        [np.nan] * 3,
        [0, 1],
        "abc",
        np.ones((3, 1, 1)),
    ],
)
def test_estimate_score_refuses(values: Any) -> None:
    with pytest.raises(UserError, match="^(values|images): "):
        compclip.estimate_score(values, range(3))


def test_entries_without_a_value_are_skipped() -> None:
    some = compclip.estimate_score([1, np.nan, 0, 1], range(4))
    assert some.value == compclip.estimate_score(torch.tensor([1, 0, 1]), [0, 2, 3]).value


def test_nan_loses_also_in_unchecked_functions() -> None:
    from compclip.score.choices import choose_adjectives
    from compclip.stats.kernels import sum_better

    nan = np.full(2, np.nan)
    assert choose_adjectives(nan, np.zeros(4), np.array([0, 0, 1, 1])).first.tolist() == [0, 0]
    better, equal = np.zeros(2), np.zeros(2)
    sum_better(np.zeros((2, 3)), nan, np.ones(3), better, equal)
    assert better.tolist() == [3, 3] and equal.tolist() == [0, 0]


def test_infinite_embeddings_do_not_lower_the_loss() -> None:
    texts = dict.fromkeys(("full", "base", "detail", "negative"), VECTORS)
    scale = torch.tensor(5.0)
    for name in texts:
        for value in (np.nan, np.inf, -np.inf):
            loss = compclip.specs_loss(
                VECTORS, **texts | {name: torch.full_like(VECTORS, value)}, scale=scale
            )
            assert loss.total.isnan()


@pytest.mark.parametrize(
    "other", [VECTORS.double(), VECTORS.half(), VECTORS.to("meta"), VECTORS.to(torch.float8_e4m3fn)]
)
def test_embeddings_of_other_kinds_are_refused(other: torch.Tensor) -> None:
    three = dict.fromkeys(("base", "detail", "negative"), VECTORS)
    with pytest.raises(UserError, match="^full: expected "):
        compclip.specs_loss(images=VECTORS, full=other, scale=torch.tensor(1.0), **three)
    if other.element_size() == 1 or other.device.type == "meta":
        with pytest.raises(UserError, match="^texts: expected "):
            compclip.specs_score(VECTORS, other)


def test_generators_of_samples_are_read() -> None:
    train, test = SAMPLES[:5], SAMPLES[5:]
    assert measure_divergence(iter(train), (each for each in test)) == measure_divergence(
        train, test
    )
    with pytest.raises(UserError, match="samples: 5.atoms: Input should be a valid list"):
        measure_divergence(train, [{"atoms": "ab", "compounds": []}])
    with pytest.raises(UserError, match="^shuffles: "):
        measure_divergence(train, test, shuffles=0)


@pytest.mark.parametrize(
    "ids",
    [[0, 1, 2, 3, 4, 5], ["0.0", "1.0", "2.0", "3.0", "4.0", "5.0"], [f"0{name}" for name in IDS]],
)
def test_ids_that_were_read_as_numbers_are_named(ids: list[Any]) -> None:
    with pytest.raises(UserError) as raised:
        compclip.make_variants(PROMPTS.assign(image_id=ids), CAPTIONS, PAIRS, RANKING, "color")
    assert "prompts: " in str(raised.value) and AS_TEXT in str(raised.value)


def test_whole_numbers_as_ids_join_each_other() -> None:
    captions, pairs = (table.assign(image_id=range(N)) for table in (CAPTIONS, PAIRS))
    assert compclip.make_prompts(captions, pairs, RANKING)["image_id"].tolist() == [
        *map(str, range(N))
    ]


def test_captions_that_are_not_in_the_table_are_named() -> None:
    with pytest.raises(
        UserError,
        match="pairs: .*'caption_id': \\[7\\].* not among the captions: 1 rows, the first 2",
    ):
        require_joined(CAPTIONS, "captions", pairs=PAIRS.assign(caption_id=[0, 0, 7, 0, 0, 0]))
    require_joined(CAPTIONS, "captions", pairs=PAIRS[:0], splits=None, blocks=iter([PAIRS]))


def test_counts_that_were_read_as_texts_are_numbers() -> None:
    table = as_captions(CAPTIONS.assign(caption_id="0"))
    assert table["caption_id"].dtype == "int64" and table["caption_id"].tolist() == [0] * N
    for bad in ("0.0", "x", "-1", None, 1.5, -1, True):
        with pytest.raises(ValueError, match="caption_id: row 0"):
            as_captions(CAPTIONS.assign(caption_id=bad))


@pytest.mark.parametrize("backend", ["numpy_nullable", "pyarrow"])
def test_nullable_and_arrow_tables_give_the_same_as_those_of_numpy(backend: Any) -> None:
    def convert(table: pd.DataFrame) -> pd.DataFrame:
        return table.convert_dtypes(dtype_backend=backend)

    given = pd.DataFrame(SIMILARITY)
    plain, other = (
        compclip.r_precision(table, range(N), IDS).expected for table in (given, convert(given))
    )
    assert np.array_equal(plain, other)
    hits = pd.Series([True, False, None, True, True, True])
    scores = [
        compclip.estimate_score(values, IDS)
        for values in (hits.astype(float), convert(hits.to_frame())[0])
    ]
    assert scores[0] == scores[1]
    prompts = [
        compclip.make_prompts(change(CAPTIONS), change(PAIRS), change(RANKING), judged=None)
        for change in (
            pd.DataFrame,
            convert,
            lambda table: table.astype({"noun" if "noun" in table else "image_id": "category"}),
        )
    ]
    for table in prompts[1:]:
        pd.testing.assert_frame_equal(prompts[0], table, check_dtype=False)


def test_missing_values_of_nullable_tables_are_named() -> None:
    missing = SIMILARITY.copy()
    missing[1, 2] = np.nan
    with pytest.raises(
        UserError, match="similarity: row 1, column 2: expected a finite number, got nan"
    ):
        compclip.r_precision(pd.DataFrame(missing).convert_dtypes(), range(N), IDS)
    captions = CAPTIONS.convert_dtypes()
    captions.loc[2, "caption_id"] = pd.NA
    with pytest.raises(
        UserError, match="captions: column caption_id: row 2: expected a whole number"
    ):
        compclip.extract_pairs(captions, ["color"])


def test_rows_of_an_image_that_should_have_one_are_named() -> None:
    split = {"captions": CAPTIONS, "pairs": PAIRS, "heldout": ["brown_bill"], **LEXICONS}
    twice = pd.concat([SPLITS, SPLITS.assign(split="train")], ignore_index=True)
    fault = "splits: row 6: duplicate of an earlier row with {'image_id': '0000'}"
    with pytest.raises(UserError, match=fault):
        compclip.swap_adjectives(splits=twice, **split)
    with pytest.raises(UserError, match=fault):
        compclip.audit(splits=twice, swapped=SWAPPED, **split)
    with pytest.raises(UserError, match="ranking: row 6: duplicate of an earlier row"):
        compclip.sample_heldout(pd.concat([RANKING, RANKING]))


def test_tables_with_a_repeated_index_are_read() -> None:
    halves = pd.concat([CAPTIONS[:3].reset_index(drop=True), CAPTIONS[3:].reset_index(drop=True)])
    pd.testing.assert_frame_equal(
        compclip.extract_pairs(halves, ["color"]), compclip.extract_pairs(CAPTIONS, ["color"])
    )


@pytest.mark.parametrize(
    ("captions", "fault"),
    [
        (
            ["a red bill", "a " * 10_001],
            "row 1: expected a text of at most 20,000 characters, got 20002",
        ),
        (np.array("a red bill"), "expected a list"),
        (torch.tensor(1), "expected a list"),
    ],
)
def test_captions_are_refused(captions: Any, fault: str) -> None:
    with pytest.raises(UserError, match=f"^captions: {fault}"):
        compclip.extract_pairs(captions, ["color"])


def test_large_numbers_as_ids_are_texts() -> None:
    captions = CAPTIONS.assign(image_id=[10**30 + number for number in range(N)])
    assert compclip.extract_pairs(captions, ["color"])["image_id"].tolist() == [
        *map(str, captions["image_id"])
    ]


def test_a_path_that_is_too_long_is_no_image() -> None:
    entries = CAPTIONS.assign(path="a" * 5000)
    with pytest.raises(UserError, match="entries: row 0: a{100}: no such image file"):
        compclip.score_with_judge(entries, FakeJudge())


@pytest.mark.parametrize(
    "blank", "\u3164 \u2800 \ufe0f \u034f \U000e0041 \u180b \u115f\u200b".split(" "), ids=ascii
)
def test_texts_of_characters_without_a_glyph_are_blank(blank: str) -> None:
    for captions in (
        ["a red bill", blank],
        pd.DataFrame({"image_id": ["1", "2"], "text": ["a red bill", blank]}),
    ):
        with pytest.raises(UserError, match="row 1: blank text"):
            compclip.extract_pairs(captions, ["color"])


TWO_COLORS = [
    f"a {one} cup beside a {other} box"
    for one, other in product(("red", "blue", "white", "tan"), repeat=2)
]


@pytest.mark.parametrize(
    "captions",
    [
        TWO_COLORS[::-1],
        TWO_COLORS[1:] + TWO_COLORS[:1],
        [text.replace("red", "tan") for text in TWO_COLORS],
        [text.replace("cup", "glass") for text in TWO_COLORS],
        [text[:5] for text in TWO_COLORS],
        ["it has " + text for text in TWO_COLORS],
    ],
)
def test_pairs_of_other_captions_are_refused(captions: list[str]) -> None:
    pairs = compclip.extract_pairs(TWO_COLORS, ["color"])
    ranking = compclip.rank_pairs(pairs, "color", None, compclip.Selection(min_count=2))
    prompts = compclip.make_prompts(TWO_COLORS, pairs, ranking)
    for call in (
        lambda: compclip.make_prompts(captions, pairs, ranking),
        lambda: compclip.make_variants(prompts, captions, pairs, ranking, "color"),
        lambda: compclip.make_splits(captions, pairs, ranking, ["red_cup"], "color"),
    ):
        with pytest.raises(
            UserError, match=r"^pairs: row \d+: '\w+' is not at .* of its caption, which has "
        ):
            call()


def test_pairs_of_texts_with_markup_are_in_their_captions() -> None:
    texts = [
        "a \\nred cup",
        "\u200bred cup\u200b",
        "a re<b>d</b> *box*",
        "a &quot;red&quot; mug",
        "Red! cup",
        "a bluish-gray lid's red",
    ]
    pairs = compclip.extract_pairs(texts, ["color"])
    ranking = compclip.rank_pairs(pairs, "color", None, compclip.Selection(min_count=1))
    assert compclip.make_prompts(texts, pairs, ranking)["pair"].notna().all()


@pytest.mark.parametrize(
    "name",
    ["blue_bellies", "blue_beak", "Blue_Belly", " blue_belly", "blue_belly\u200b", "purple_dog"],
)
@pytest.mark.parametrize("nouns", ["birds", None])
def test_heldout_names_that_match_no_pair_are_named(name: str, nouns: str | None) -> None:
    parts = ["bill", "belly", "crown", "tail", "wing"]
    texts = [
        f"a {color} {part} and a {other} head"
        for color, part, other in product(COLORS, parts, COLORS)
    ]
    pairs = compclip.extract_pairs(texts, ["color"], nouns)
    ranking = compclip.rank_pairs(pairs, "color", nouns, compclip.Selection(min_count=2))
    split = {"captions": texts, "pairs": pairs, "adjectives": "color", "nouns": nouns}
    splits, _ = compclip.make_splits(ranking=ranking, heldout=["red_bill", "blue_belly"], **split)
    swapped, _ = compclip.swap_adjectives(splits=splits, heldout=["red_bill"], **split)
    with pytest.raises(UserError, match="^heldout: .*correct or remove it$") as raised:
        compclip.make_splits(ranking=ranking, heldout=["red_bill", name], **split)
    assert ascii(name) in str(raised.value)
    with pytest.raises(UserError, match="^heldout: .*correct or remove it$"):
        compclip.audit(splits=splits, swapped=swapped, heldout=["red_bill", name], **split)
    with pytest.raises(UserError, match="^heldout: .*correct or remove it$"):
        compclip.swap_adjectives(splits=splits, heldout=["red_bill", name], **split)
