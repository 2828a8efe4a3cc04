"""Tasks are balanced, seeded and checked; their names and projects reveal nothing."""

import base64
import shutil
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from compclip.core.artifacts.files import read_json
from compclip.core.artifacts.parquet import read_table
from compclip.core.errors import UserError
from compclip.core.tables import PAIRS, PROMPTS, SWAPPED
from compclip.human.sample_tasks import allot, in_turns
from compclip.human.task_entries import make_trials
from compclip.human.task_pictures import TILES, broken, read_picture
from compclip.human.tasks import ALL_KINDS, KINDS, shown_columns
from compclip.plot.page import render
from compclip.text.lexicon import load_lexicon
from tests.conftest import ROOT
from tests.human.conftest import CONSENT, SETTINGS, Study, make_study
from tests.project import COMPOSITION, DATASET, GENERATORS
from tests.split.worlds import pairs_table

COLORS = ROOT / "lexicons" / "adjectives" / "color.yaml"


@given(st.lists(st.integers(0, 30), min_size=1, max_size=8), st.integers(0, 120), st.integers(0, 5))
def test_allot_is_fair(sizes: list[int], total: int, seed: int) -> None:
    numbers = allot(sizes, total, np.random.default_rng(seed))
    assert sum(numbers) == min(total, sum(sizes)) and all(
        n <= size for n, size in zip(numbers, sizes, strict=True)
    )
    open_cells = [n for n, size in zip(numbers, sizes, strict=True) if n < size]
    assert not open_cells or max(numbers) - min(open_cells) <= 1


@given(
    st.lists(
        st.tuples(st.sampled_from("abcde"), st.sampled_from(["a", "b", None])),
        min_size=1,
        max_size=30,
    )
)
def test_every_image_comes_once_before_any_comes_twice(rows: list[tuple[str, str | None]]) -> None:
    order = in_turns(pd.DataFrame(rows, columns=["image_id", "pair"]), np.random.default_rng(0))
    assert sorted(order.index) == list(range(len(rows)))
    assert order.groupby("image_id").cumcount().is_monotonic_increasing


@pytest.mark.parametrize("sampled", ["study", "large"])
def test_cells_and_sides_are_balanced(request: pytest.FixtureRequest, sampled: str) -> None:
    study: Study = request.getfixturevalue(sampled)
    tasks = study.tasks[study.tasks["check"] == "none"]
    names = tasks[["generator_1", "generator_2"]].apply(
        lambda row: " ".join(sorted(filter(None, row))), axis=1
    )
    tasks = tasks.assign(cell=names, first=tasks["generator_1"] < tasks["generator_2"].fillna(""))
    assert tasks.groupby("kind").size().to_dict() == (
        SETTINGS if sampled == "study" else dict.fromkeys(KINDS, 120)
    )
    counts = tasks.groupby(["kind", "split", "cell"]).size()
    for kind, cells in pd.DataFrame(study.summary["cells"]).groupby("kind"):
        # Photographs serve no swapped captions, `usual` serves seen ones alone.
        assert len(cells) == (10 if kind == "perceptual" else 9)
        for cell in cells.itertuples():
            assert (
                cell.tasks
                == counts.get((kind, cell.split, " ".join(cell.generators)), 0)
                <= cell.of
            )
        assert cells["tasks"].max() <= 1 + cells.loc[cells["tasks"] < cells["of"], "tasks"].min()
    prompts = read_table(study.results / DATASET / COMPOSITION / "prompts.parquet", PROMPTS)
    images = prompts.groupby("split")["image_id"].nunique()
    for (kind, split, _), of_cell in tasks.groupby(["kind", "split", "cell"]):
        # Each image once before any comes twice; a few have no task.
        most = of_cell["image_id"].value_counts().max()
        assert most == 1 or of_cell["image_id"].nunique() >= images[split] - 4
        sides = {"perceptual": of_cell["first"], "caption": of_cell["right"] == "1"}.get(kind)
        assert sides is None or abs(2 * sides.sum() - len(of_cell)) <= 1


def test_pages_have_their_checks_and_what_is_skipped_is_counted(study: Study) -> None:
    for (kind, _), page in study.tasks.groupby(["kind", "batch"]):
        page = page.sort_values("place")
        assert page["place"].tolist() == list(range(1, len(page) + 1))
        assert Counter(page["check"]) == {"none": SETTINGS[kind] // 2, "gold": 2, "repeat": 2}
        assert page["check"].iloc[0] != "gold"
        by_id = page.set_index("task_id")
        for row in page[page["check"] == "repeat"].itertuples():
            first = by_id.loc[row.of]
            assert first["check"] == "none" and first["place"] < row.place
            sides = ["picture", "text", "generator"] if row.kind != "match" else []
            for side in sides:
                if first[f"{side}_2"] is not None:
                    assert getattr(row, f"{side}_1") == first[f"{side}_2"]
                    assert getattr(row, f"{side}_2") == first[f"{side}_1"]
            if row.kind == "caption":
                assert {row.right, first["right"]} == {"1", "2"}
    gold = study.tasks[study.tasks["check"] == "gold"]
    assert gold["right"].notna().all() and gold[["split", "image_id", "generator_1"]].isna().all(
        axis=None
    )
    skipped = study.summary["excluded"]
    assert skipped["no image"] == skipped["not scored"] == 1 and skipped["no other caption"] >= 2
    assert skipped["two generators' images are the same"] > 20
    assert skipped["seen caption that was not swapped"] >= len(GENERATORS)
    twins = study.tasks[(study.tasks["kind"] == "perceptual") & (study.tasks["check"] == "none")]
    assert (twins["picture_1"] != twins["picture_2"]).all()


def test_captions_have_their_counterpart_and_projects_reveal_nothing(study: Study) -> None:
    """Projects have all tasks with gold and repeats, in the order of pages, and nothing that
    reveals what they are.
    """
    ours = study.results / DATASET / COMPOSITION
    keys = ["image_id", "caption_id"]
    swapped = read_table(ours / "swapped.parquet", SWAPPED).set_index(keys)
    pairs, forms = read_table(ours.parent / "pairs.parquet", PAIRS), load_lexicon(COLORS).forms
    unseen = (
        read_table(ours / "prompts.parquet", PROMPTS)
        .query("split == 'test_unseen'")
        .set_index(keys)["pair"]
    )
    for row in study.tasks[
        (study.tasks["kind"] == "caption") & (study.tasks["check"] == "none")
    ].itertuples():
        texts = [row.text_1, row.text_2] if row.right == "1" else [row.text_2, row.text_1]
        if row.split == "test_unseen":
            adjective, _, noun = unseen[row.image_id, row.caption_id].partition("_")
            words = (text.replace(",", "").split() for text in texts)
            changes = {pair for pair in zip(*words, strict=True) if pair[0] != pair[1]} - {
                ("a", "an"),
                ("an", "a"),
            }
            ((old, new),) = {(forms[old], forms[new]) for old, new in changes}
            said = pairs[(pairs["image_id"] == row.image_id) & (pairs["noun"] == noun)]["adjective"]
            assert old == adjective and new not in set(said)
        else:
            pair = swapped.loc[(row.image_id, row.caption_id), ["text", "swapped_text"]].tolist()
            assert texts == (pair if row.split == "test_seen" else pair[::-1])
    for kind in KINDS:
        rows = (
            study.tasks[study.tasks["kind"] == kind]
            .sort_values(["batch", "place"])
            .to_dict("records")
        )
        data = [task["data"] for task in read_json(study.folder / "label_studio" / f"{kind}.json")]
        assert [shown["task_id"] for shown in data] == [row["task_id"] for row in rows]
        for shown, row in zip(data, rows, strict=True):
            assert (
                set(shown) == {"task_id", "consent", *shown_columns(kind)}
                and shown["consent"] == CONSENT
            )
            assert all(shown[name] == row[name] for name in shown if name.startswith("text"))
            raw = base64.b64decode(shown["picture_1"].partition("base64,")[2])
            assert raw == (study.folder / "pictures" / row["picture_1"]).read_bytes()


def test_tasks_depend_on_the_seed_the_pictures_and_the_settings(
    study: Study, run: Path, tmp_path: Path
) -> None:
    again = make_study(run, tmp_path / "again")
    other = make_study(run, tmp_path / "other", seed=1)
    files = sorted(p.relative_to(study.folder) for p in study.folder.rglob("*") if p.is_file())
    assert files == sorted(
        p.relative_to(again.folder) for p in again.folder.rglob("*") if p.is_file()
    )
    for file in files:
        assert (study.folder / file).read_bytes() == (again.folder / file).read_bytes(), file
    assert not set(study.tasks["task_id"]) & set(other.tasks["task_id"])
    shutil.copytree(run / DATASET, tmp_path / DATASET)
    made = tmp_path / DATASET / COMPOSITION / "generated" / "faithful" / "images"
    for path in made.rglob("*.png"):
        Image.new("RGB", (8, 8), "red").save(path)
    changed = make_study(tmp_path, tmp_path / "human")
    same = set(study.tasks["task_id"]) & set(changed.tasks["task_id"])
    shown = study.tasks[study.tasks["task_id"].isin(same)]
    assert "faithful" not in {*shown["generator_1"], *shown["generator_2"]} and len(same)
    two = make_study(
        run,
        tmp_path / "two",
        generators=("faithful", "memorizer"),
        splits=["test_seen", "test_swapped"],
    )
    shown = two.tasks[two.tasks["check"] == "none"]
    assert set(shown["split"]) == {"test_seen", "test_swapped"}
    assert {*shown["generator_1"], *shown["generator_2"].dropna()} == {"faithful", "memorizer"}
    assert {c["of"] for c in two.summary["cells"] if c["kind"] == "match"} != {0}
    # One generator has no perceptual task.
    alone = make_study(run, tmp_path / "alone", generators=("faithful",))
    assert (
        "perceptual" not in set(alone.tasks["kind"])
        and alone.summary["kinds"]["perceptual"]["none"] == 0
    )
    with pytest.raises(UserError, match="no tasks"):
        make_study(run, tmp_path / "none", **dict.fromkeys(KINDS, 0))
    assert not (tmp_path / "none" / "tasks.parquet").exists()


def test_broken_and_unreadable_pictures(tmp_path: Path) -> None:
    (tmp_path / "broken.png").write_bytes(b"\x89PNG\r\n")
    with pytest.raises(UserError, match="broken.png: not a readable image"):
        read_picture(tmp_path / "broken.png")
    random = np.random.default_rng(0)
    image = Image.fromarray(random.integers(0, 255, (16 * TILES, 16 * TILES, 3), dtype=np.uint8))
    mixed = broken(image, random)
    assert mixed.size == image.size and mixed.tobytes() != image.tobytes()
    before, after = (np.sort(np.asarray(i).reshape(-1, 3), axis=0) for i in (image, mixed))
    assert (before == after).all()


@pytest.mark.parametrize("kind", list(ALL_KINDS))
def test_labeling_config_is_consistent(kind: str) -> None:
    """As Label Studio requires: unique names, a toName that exists, and variables of the tasks'
    data.
    """
    view = ElementTree.fromstring(
        render("label_studio.xml.j2", {"kind": ALL_KINDS[kind], "consent": True})
    )
    objects = {
        tag.get("name"): tag.get("value") for tag in [*view.iter("Image"), *view.iter("Text")]
    }
    assert objects == {name: f"${name}" for name in ["consent", *shown_columns(kind)]}
    (control,) = view.iter("Choices")
    assert control.attrib == {
        "name": "choice",
        "toName": "picture_1",
        "choice": "single",
        "required": "true",
        "showInline": "true",
    }
    choices = [(choice.get("alias"), choice.get("value")) for choice in control]
    assert choices == list(zip(ALL_KINDS[kind].answers, ALL_KINDS[kind].labels, strict=True))


TRIALS = {
    ("a", 0, "a red wing and a blue bill"): ["red wing", "blue bill"],
    ("a", 1, "the wing is orange or so"): ["orange wing predicative"],
    ("b", 0, "red wing and bill"): ["red wing", "red bill shared"],
    ("b", 1, "a bird with a green tail"): ["green tail"],
    ("c", 0, "an orange wing"): ["orange wing"],
}


def test_trials_by_hand_and_their_seed() -> None:
    rows = []
    for (image, caption, text), said in TRIALS.items():
        for adjective, noun, *relation in map(str.split, said):
            spans = [
                end
                for word in (adjective, noun)
                for end in (text.index(word), text.index(word) + len(word))
            ]
            rows.append((image, caption, adjective, noun, *spans, *(relation or ["adjacent"])))
    captions, pairs = (
        pd.DataFrame([*TRIALS], columns=["image_id", "caption_id", "text"]),
        pairs_table(rows),
    )
    trials = make_trials(
        captions, pairs, {"red_wing", "orange_wing"}, ["blue", "orange", "red"], seed=0
    )
    made = [
        tuple(row)
        for row in trials[["image_id", "caption_id", "adjective", "wrong", "wrong_text"]].values
    ]
    # Of image a, red and orange are said of the wing: blue is all that is left. Of b, red bears on
    # the bill as well.
    assert len(made) == 3 and made[:2] == [
        ("a", 0, "red", "blue", "a blue wing and a blue bill"),
        ("a", 1, "orange", "blue", "the wing is blue or so"),
    ]
    assert made[2][:3] == ("c", 0, "orange") and made[2][4] == f"a {made[2][3]} wing"
    assert len(make_trials(captions, pairs, {"orange_wing"}, ["orange", "red"], seed=0)) == 1
    adjectives = [f"color{i}" for i in range(30)]
    one = make_trials(captions, pairs, {"red_wing", "orange_wing"}, adjectives, 1)
    same = make_trials(
        captions.iloc[::-1], pairs.iloc[::-1], {"orange_wing", "red_wing"}, adjectives, 1
    )
    other = make_trials(captions, pairs, {"red_wing", "orange_wing"}, adjectives, 2)
    assert one.equals(same) and not one.equals(other)
