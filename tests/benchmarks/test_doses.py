"""Held-out pairs get their doses and nothing more, and the curve recovers a known law."""

from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from benchmarks import doses, dosing
from compclip.core.artifacts.files import read_json
from compclip.core.artifacts.heldout import split_pair
from compclip.core.errors import UserError
from compclip.core.identity.code import ROOT
from compclip.core.seeds import rng
from compclip.dataset.sketch.world import SKETCH_COLORS, Dice, draw_scene, make_world
from compclip.dataset.sources.sketch import Settings
from compclip.stats.composed import SEEN, JudgeChoices, Scale
from tests.project import SMALL, Project
from workflow_scripts.workflow.config import read_config

LEVELS = (0, 1, 3, 10, 30, 100)
SKETCH = Settings(images=100, species=20, captions=4, size=32)


@pytest.fixture(scope="module")
def pairs() -> list[str]:
    """Sixteen pairs of eight adjectives and eight nouns."""
    nouns = ("belly", "bill", "breast", "crown", "head", "nape", "tail", "wing")
    return [
        f"{SKETCH_COLORS[(number + more) % 8]}_{noun}"
        for number, noun in enumerate(nouns)
        for more in (0, 3)
    ]


def test_doses_are_balanced_over_pairs_and_seeded(pairs: list[str]) -> None:
    chosen = dosing.choose_doses(pairs, LEVELS, 0)
    assert list(chosen) == sorted(pairs)
    counts = Counter(chosen.values())
    assert set(counts) == set(LEVELS) and max(counts.values()) - min(counts.values()) == 1
    assert dosing.choose_doses(pairs[::-1], LEVELS, 0) == chosen
    assert dosing.choose_doses(pairs, LEVELS, 1) != chosen


def test_pairs_that_share_a_word_have_different_doses(pairs: list[str]) -> None:
    chosen = dosing.choose_doses(pairs, LEVELS, 0)
    words = [
        (side, word, dose)
        for pair, dose in chosen.items()
        for side, word in enumerate(split_pair(pair))
    ]
    assert max(Counter(words).values()) == 1


def test_fewer_pairs_than_doses_are_refused() -> None:
    with pytest.raises(UserError, match="2 held-out pairs for 3 doses"):
        dosing.choose_doses(["red_bill", "tan_wing"], [0, 1, 2], 0)


@pytest.fixture(scope="module")
def chosen(pairs: list[str]) -> dict[str, int]:
    return dict(zip(pairs, [0, 1, 3, 5] * 4, strict=True))


@pytest.fixture(scope="module")
def birds(chosen: dict[str, int]) -> list[dosing.DosedBird]:
    return list(dosing.further_birds(SKETCH, 0, chosen, "color"))


def captions_of(birds: list[dosing.DosedBird]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {"image_id": bird.image_id, "text": of.text}
            for bird in birds
            for of in bird.bird.captions
        ]
    )


def test_each_pair_gets_its_dose_of_new_birds(
    birds: list[dosing.DosedBird], chosen: dict[str, int]
) -> None:
    assert Counter(bird.pair for bird in birds) == +Counter(chosen)
    numbers = [int(bird.image_id) for bird in birds]
    assert len(set(numbers)) == len(birds) and min(numbers) >= SKETCH.images
    for bird in birds:
        adjective, noun = split_pair(bird.pair)
        assert bird.bird.scene[f"{noun}:color"] == adjective


def test_the_audit_counts_the_doses(birds: list[dosing.DosedBird], chosen: dict[str, int]) -> None:
    captions = captions_of(birds)
    assert dosing.count_stated(captions, chosen, "color", "birds") == dict(sorted(chosen.items()))
    dosing.check_doses(captions, chosen, "color", "birds")


def test_an_image_too_many_is_refused(
    birds: list[dosing.DosedBird], chosen: dict[str, int]
) -> None:
    none = next(pair for pair, dose in chosen.items() if dose == 0)
    more = pd.DataFrame([{"image_id": "x", "text": f"a bird with a {none.replace('_', ' ')}"}])
    with pytest.raises(UserError, match=f"the audit reads {none} in 1 images instead of 0"):
        dosing.check_doses(pd.concat([captions_of(birds), more]), chosen, "color", "birds")


def test_birds_are_written_with_their_captions(
    birds: list[dosing.DosedBird], tmp_path: Path
) -> None:
    table = dosing.write_birds(iter(birds[:3]), SKETCH.size, tmp_path / "images")
    assert len(table) == 3 * SKETCH.captions and table["file_name"].nunique() == 3
    assert sorted(path.name for path in (tmp_path / "images").iterdir()) == sorted(
        set(table["file_name"])
    )


def choices_of(prompts: pd.DataFrame, shown: np.ndarray, seed: int) -> JudgeChoices:
    """Return what three judges read in scenes that show the pair, or another color of its noun.

    A judge takes one part in six for another color.
    """
    dice, world = Dice(rng(seed, "scenes")), make_world(0, 20)
    random = rng(seed, "judges")
    first, chosen = np.zeros((len(prompts), 3)), np.empty((len(prompts), 3), object)
    for row, (pair, is_shown) in enumerate(zip(prompts["pair"], shown, strict=True)):
        adjective, noun = split_pair(pair)
        scene = draw_scene(world, row % 20, dice)
        usual = next(value for value in world.values[f"{noun}:color"] if value != adjective)
        scene[f"{noun}:color"] = adjective if is_shown else usual
        read = [
            scene[f"{noun}:color"] if random.random() > 1 / 6 else dice.pick(SKETCH_COLORS)
            for _ in range(3)
        ]
        first[row], chosen[row] = [color == adjective for color in read], read
    return JudgeChoices(first, chosen)


def test_the_curve_recovers_a_known_law(pairs: list[str]) -> None:
    chosen = dosing.choose_doses(pairs, LEVELS, 0)
    seen = [
        f"{color}_{noun}"
        for color in SKETCH_COLORS[8:]
        for noun in ("belly", "bill", "crown", "tail", "wing")
    ]
    images = {pair: [12, 40, 120][number % 3] for number, pair in enumerate(seen)}
    tables = [pd.DataFrame({"split": SEEN, "pair": np.repeat(seen, 60)})]
    tables += [pd.DataFrame({"split": "test_unseen", "pair": np.repeat(pairs, 150)})]
    prompts = pd.concat(tables, ignore_index=True).assign(matched=True, eligible=True)
    prompts["cluster"] = prompts.index.astype(str)
    everything = np.ones(len(prompts), bool)
    scale = Scale(prompts, choices_of(prompts, everything, 1), choices_of(prompts, ~everything, 2))
    counts = prompts["pair"].map(chosen | images)
    shown = rng(0, "law").random(len(prompts)) < doses.drawn_by_law(counts.to_numpy())
    curve = doses.curve_of(scale, choices_of(prompts, shown, 3), chosen, images, LEVELS)
    means = curve[curve["pair"].isna()]
    assert [*means.loc[means["curve"] == doses.HELD_OUT, "level"]] == [*LEVELS]
    assert [*means.loc[means["curve"] == doses.SEEN, "level"]] == [10, 30, 100]
    truth = doses.drawn_by_law(means["images"].to_numpy())
    # Nine intervals of 95 %: one may miss, by little.
    covered = (means["low"] <= truth) & (truth <= means["high"])
    assert covered.sum() >= len(means) - 1
    assert np.abs(means["drawn"] - truth).max() < 0.08
    of_pairs = curve.dropna(subset="pair")
    assert len(of_pairs) == len(pairs) + len(seen)
    assert (of_pairs["low"] <= doses.drawn_by_law(of_pairs["images"].to_numpy(float))).mean() > 0.85


@pytest.fixture
def command(tmp_path: Path) -> doses.Doses:
    (tmp_path / "learned.md").write_text(
        f"before\n\n{doses.BEGIN}\n\nold\n\n{doses.END}\n\nafter\n"
    )
    return doses.Doses(docs=tmp_path)


def fraction(value: float, low: float, high: float) -> doses.Fraction:
    return doses.Fraction(value, low, high, n_prompts=10, n_pairs=2)


def test_figure_numbers_and_table_are_written(command: doses.Doses) -> None:
    rows = [
        (doses.HELD_OUT, 0, None, 0.0),
        (doses.HELD_OUT, 0, "red_bill", 0.0),
        (doses.SEEN, 10, None, 12.5),
    ]
    curve = pd.DataFrame(rows, columns=["curve", "level", "pair", "images"])
    curve = curve.assign(pairs=1, prompts=10, drawn=0.25, low=0.1, high=0.5)
    for _ in range(2):
        doses.write_documents(curve, fraction(0.5, 0.25, 0.75), command)
        text = (command.docs / "learned.md").read_text()
        assert text.startswith("before") and text.endswith("after\n") and "old" not in text
        assert "| 0 | 1 | 25.0 [10.0, 50.0] | – | – |" in text
        assert "| 10 | – | – | 1 | 25.0 [10.0, 50.0] |" in text
        assert "s = 50.0 % [25.0, 75.0]: the model draws matched seen pairs." in text
    assert (command.docs / "pictures" / "doses.svg").read_text().count("<svg") == 1
    assert len(pd.read_csv(command.docs / "results" / "doses.csv")) == 3


def test_a_model_that_draws_no_seen_pair_has_no_conclusion() -> None:
    assert "does not tell" in doses.conclusion(fraction(0.07, 0.02, 0.14))
    assert "recognize no matched seen pair" in doses.conclusion(None)


def test_a_generator_said_to_be_of_the_split_is_refused(tmp_path: Path) -> None:
    config = {
        "generate": {
            "generators": [
                {"name": "a", "kind": "diffusers", "model": "m", "training_data": "split"}
            ]
        }
    }
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(config | {"compositions": ["color"]}))
    with pytest.raises(UserError, match="training_data of a is split"):
        doses.place_of(read_config(tmp_path / "c.yaml"), tmp_path / "c.yaml")


def test_the_preset_holds_out_the_pairs_of_the_default_run() -> None:
    preset, default = (
        read_config(ROOT / "presets" / "doses.yaml"),
        read_config(ROOT / "config.yaml"),
    )
    assert preset.split.heldout == default.split.heldout and preset.seeds == default.seeds
    assert preset.dataset == default.dataset and preset.pairs == default.pairs


@pytest.mark.slow
def test_the_whole_chain_and_a_second_call(first_run: Project, tmp_path: Path) -> None:
    pytest.importorskip("diffusers")
    project = first_run.fork(tmp_path / "project")
    config = yaml.safe_load(SMALL.format(results="results", cache=".cache"))
    del config["specs"], config["compun"], config["human"]
    model = {
        "name": "doses",
        "kind": "diffusers",
        "model": "results/doses/model",
        "training_data": "other",
    }
    config["generate"]["generators"].append(
        model | {"steps": 2, "guidance": 3, "batch": 16, "device": "cpu"}
    )
    (project.root / "doses.yaml").write_text(yaml.safe_dump(config))
    sizes = ["--size", "8", "--channels", "32,32", "--steps", "4", "--every", "2", "--batch", "4"]
    words = [
        "python",
        "-m",
        "benchmarks.doses",
        "--config",
        "doses.yaml",
        "--doses",
        "0,2",
        "--cores",
        "2",
        *sizes,
    ]
    project.call(*words)

    training, docs = project.root / "results" / "doses" / "training", project.root / "docs"
    chosen = read_json(training / "doses.json")
    assert set(chosen.values()) == {0, 2}
    lists = [
        training / "train.jsonl",
        project.root / "results" / "sketch" / "color" / "export" / "train.jsonl",
    ]
    more, export = (pd.read_json(path, lines=True, dtype={"image_id": str}) for path in lists)
    assert set(more["image_id"]) >= set(export["image_id"])
    assert more["image_id"].nunique() - export["image_id"].nunique() == sum(chosen.values())
    assert all((project.root / "results" / name).is_file() for name in more["file_name"])
    assert dosing.count_stated(more, chosen, "color", "birds") == chosen
    assert "8 x 8 pixels" in (docs / "learned.md").read_text()
    assert (docs / "pictures" / "doses.svg").is_file() and (
        docs / "results" / "doses.csv"
    ).is_file()

    files = [
        path
        for path in (project.root / "results").rglob("*")
        if path.is_file() and "logs" not in path.parts
    ]
    before = {path: path.stat().st_mtime_ns for path in files}
    printed = project.call(*words)
    assert {path: path.stat().st_mtime_ns for path in files} == before
    assert "step 4 of 4" not in printed.stdout
    other = project.call(*words, "--seed", "1", check=False)
    assert other.returncode == 1 and "made with other settings" in other.stderr
