"""``compclip score``: the figures of the library's call, from files."""

from pathlib import Path

import pandas as pd
import pytest

import compclip
from compclip.clip.config import ModelConfig
from compclip.clip.model import build, save_judge
from compclip.core.errors import UserError
from compclip.core.seeds import rng
from compclip.core.settings.cli import parse
from compclip.dataset.sketch.draw import draw_pose, paint_scene, png
from compclip.dataset.sketch.world import Dice, draw_wild_scene
from compclip.score.score_files import ScoreFiles, as_line, main

COLORS = ["red", "blue", "green", "black", "white", "brown"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve drawn birds, with two captions and a variant of each, and a judge with random
    weights.
    """
    folder = tmp_path_factory.mktemp("files")
    (folder / "images").mkdir()
    rows, variants = [], []
    for number in range(12):
        color, other = COLORS[number % 6], COLORS[(number + 1) % 6]
        dice = Dice(rng(0, str(number)))
        file = f"images/{number}.png"
        (folder / file).write_bytes(png(paint_scene(draw_wild_scene(dice), draw_pose(dice), 64)))
        rows += [(file, number, caption, f"{color} bill", f"{color}_bill") for caption in range(2)]
        variants += [(number, caption, f"{other} bill") for caption in range(2)]
    pd.DataFrame(rows, columns=["path", "image_id", "caption_id", "text", "pair"]).to_csv(
        folder / "entries.csv", index=False
    )
    pd.DataFrame(variants, columns=["image_id", "caption_id", "text"]).to_json(
        folder / "variants.jsonl", orient="records", lines=True
    )
    save_judge(
        build(ModelConfig(model="sketch"), ["a red bird"] * 2, 0), "sketch", None, folder / "judge"
    )
    return folder


def command(place: Path, **options: object) -> ScoreFiles:
    given = {
        "entries": place / "entries.csv",
        "judge": place / "judge",
        "threads": 1,
        "device": "cpu",
    } | options
    flags = [f"--{name}={value}" for name, value in given.items()]
    return parse(ScoreFiles, flags, "compclip score")


def test_the_figures_are_those_of_the_library(
    place: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    output = tmp_path / "scores.csv"
    main(command(place, variants=place / "variants.jsonl", candidates=5, output=output))
    entries = pd.read_csv(place / "entries.csv", dtype=str)
    entries["path"] = f"{place}/" + entries["path"]
    judge = compclip.load_judge(place / "judge", 1, "cpu")
    options = {
        "variants": pd.read_json(place / "variants.jsonl", lines=True),
        "scoring": compclip.Scoring(candidates=5),
    }
    scores = compclip.score_with_judge(entries, judge, **options)
    printed = capsys.readouterr().out.splitlines()
    assert printed == [
        as_line("R-precision (5 candidates)", scores.r_precision, 24),
        as_line("Adjective accuracy", scores.adjective_accuracy, 24),
        str(output),
    ]
    assert f"R-precision (5 candidates): {100 * scores.r_precision.value:.1f} % [" in printed[0]
    assert pd.read_csv(output)["expected_top1"].mean() == pytest.approx(
        scores.r_precision.value, abs=1e-6
    )


@pytest.mark.parametrize(
    ("name", "content", "error"),
    [
        ("entries", "path,image_id\na.png,1\n", "no column 'text'"),
        ("entries", "path,image_id,text\na.png,1,red\n,2,blue\n", "line 3: no path"),
        (
            "entries",
            "path,image_id,text,draw\na.png,1,red,first\n",
            "line 2: draw is not a whole number",
        ),
        ("entries", "path,image_id,text\n", "no rows"),
        ("captions", "image_id,text\n1,\n", "line 2: no text"),
        ("variants", "image_id,text\n1,red\n", "no column 'caption_id'"),
        ("captions", "image_id,text\n1,\u200b \n", "line 2: no text"),
    ],
)
def test_a_bad_row_is_named(
    name: str, content: str, error: str, place: Path, tmp_path: Path
) -> None:
    file = tmp_path / f"{name}.csv"
    file.write_text(content)
    with pytest.raises(UserError) as raised:
        main(command(place, **{name: file}))
    assert str(file) in str(raised.value) and error in str(raised.value)
