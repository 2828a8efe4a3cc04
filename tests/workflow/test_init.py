"""`compclip init` writes a config that fits a table, and says in a line why it cannot."""

import csv
import json
import random
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from compclip.core.errors import UserError
from workflow_scripts.workflow.check import check_config
from workflow_scripts.workflow.config import Config, read_config
from workflow_scripts.workflow.init import Init, main

COLORS = "red blue black white brown yellow".split()
THINGS = "cup chair car door bowl hat".split()
CONFIG = Path("mine.yaml")


def captions(count: int) -> list[str]:
    stream = random.Random(0)
    return [
        f"a {stream.choice(COLORS)} {stream.choice(THINGS)} near a "
        f"{stream.choice(COLORS)} {stream.choice(THINGS)}"
        for _ in range(count)
    ]


def write_csv(name: str, header: list[str], ids: list[str], separator: str = ",") -> None:
    with Path(name).open("w", newline="") as file:
        writer = csv.writer(file, delimiter=separator)
        writer.writerows([header, *zip(ids, captions(len(ids)), strict=True)])


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with the images 0.jpg to 399.jpg in folder photos."""
    monkeypatch.chdir(tmp_path)
    Path("photos").mkdir()
    Image.new("RGB", (8, 8)).save("photos/0.jpg")
    for number in range(1, 400):
        Path(f"photos/{number}.jpg").hardlink_to("photos/0.jpg")
    return tmp_path


def config_for(table: str) -> Config:
    main(Init(captions=Path(table)))
    assert len(CONFIG.read_text().splitlines()) <= 25
    return read_config(CONFIG)


FILES = [f"{number}.jpg" for number in range(400)]
NUMBERS = [str(number) for number in range(400)]


@pytest.mark.parametrize("name", ["mine", "mine.json"])
def test_a_config_that_run_would_not_take_is_not_written(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError, match="compclip run takes names that end in .yaml; choose"):
        main(Init(output=tmp_path / name))
    assert not (tmp_path / name).exists()


def test_columns_of_other_names_are_found_by_their_content() -> None:
    write_csv("c.csv", ["shot", "what people wrote"], FILES)
    settings = config_for("c.csv").dataset.table
    assert settings.columns == {"image_id": "shot", "caption": "what people wrote"}
    assert settings.images == "photos"


def test_a_table_with_images_is_scored_with_photographs() -> None:
    write_csv("c.tsv", ["image_id", "caption"], NUMBERS, "\t")
    config = config_for("c.tsv")
    assert config.scored and config.dataset.table.columns == {}
    names = [generator.name for generator in config.generate.generators]
    assert names == ["photographs", "shuffled", "usual_photographs", "pair_photographs"]


def test_lists_of_captions_in_json_lines_are_counted() -> None:
    rows = zip(FILES, captions(400), strict=True)
    lines = [
        json.dumps({"file_name": name, "text": [text, text + " today"]}) for name, text in rows
    ]
    Path("c.jsonl").write_text("\n".join(lines))
    assert config_for("c.jsonl").dataset.table.images == "photos"
    assert "# c.jsonl: 800 captions of 400 images, 400 of them found." in CONFIG.read_text()


def test_captions_without_images_are_only_split() -> None:
    write_csv("c.csv", ["id", "sentence"], [f"x{number}" for number in range(400)])
    config = config_for("c.csv")
    assert not config.scored and config.compositions == ["color"]
    assert check_config(config).errors == []


def test_without_a_table_birds_are_drawn() -> None:
    main(Init())
    config = read_config(CONFIG)
    assert (config.dataset.source, config.results) == ("sketch", "results/mine")
    assert check_config(config).errors == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('image_id,caption\n1,"a red cup\n2,a blue cup\n', "from line 2: unexpected end of data"),
        ("image_id,caption\n", "no captions: it has no rows"),
        ("", "is empty"),
        (
            "1.jpg,a red cup\n2.jpg,a blue cup\n",
            "no header: its first line is '1.jpg', ",
        ),
        ("1,a red cup and hat\n2,a blue cup\n", "no header: its first line is '1', 'a r"),
        ("PK\3\4", "is an Excel workbook or a ZIP archive, not text; export it as CSV"),
        ("image_id,width\n1,20\n", "no column with captions; its columns: 'image_id', 'width'"),
        ("caption,width\na red cup,20\n", "no column with the image of each caption"),
        ("image_id,caption\n1,a red cup\n2,a red cup\n", "too few captions: 2 captions repeat 1"),
    ],
)
def test_a_table_that_cannot_run_is_refused_in_a_line(text: str, message: str) -> None:
    Path("c.csv").write_text(text)
    with pytest.raises(UserError, match=f"^c.csv: {message}") as error:
        main(Init(captions=Path("c.csv")))
    assert "\n" not in str(error.value) and not CONFIG.exists()


def test_a_missing_table_is_named() -> None:
    with pytest.raises(UserError, match=r"^none.csv: no such file"):
        main(Init(captions=Path("none.csv")))


def test_images_in_the_working_folder_are_refused() -> None:
    write_csv("c.csv", ["image_id", "caption"], FILES)
    Path("photos").rename("x")
    for file in Path("x").iterdir():
        file.rename(file.name)
    with pytest.raises(UserError, match="the images are in the working folder; move them"):
        main(Init(captions=Path("c.csv")))


def test_a_config_is_never_overwritten() -> None:
    CONFIG.write_text("seed: 1\n")
    with pytest.raises(UserError, match=r"mine.yaml: output file already exists; choose another"):
        main(Init())
    assert CONFIG.read_text() == "seed: 1\n"


@pytest.mark.parametrize(
    ("name", "results"),
    [("птицы", "results/птицы"), ("鳥", "results/鳥"), ("my birds", "results/my_birds")],
)
def test_the_results_have_a_folder_of_the_configs_name(name: str, results: str) -> None:
    main(Init(output=Path(f"{name}.yaml")))
    assert read_config(Path(f"{name}.yaml")).results == results


@pytest.mark.parametrize("name", ["a\nseed: 7\n#", "a\u2028seed: 7", "a\x7f", 'a"\\b'])
def test_a_name_of_a_file_stays_in_its_value(name: str) -> None:
    write_csv(f"{name}.csv", ["image_id", "caption"], FILES)
    config = config_for(f"{name}.csv")
    assert (config.seed, config.dataset.table.file) == (0, f"{name}.csv")


def test_a_name_with_a_space_is_quoted_in_commands(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "compclip")
    main(Init(output=Path("my birds.yaml")))
    assert "`compclip run 'my birds.yaml'` runs it" in caplog.messages[-1]


def test_a_folder_that_is_not_writable_is_named() -> None:
    with pytest.raises(UserError, match=r"^/proc: not writable \(.*\); fix its permissions"):
        main(Init(output=Path("/proc/mine.yaml")))


def test_a_config_for_another_version_is_refused() -> None:
    CONFIG.write_text("version: 0.1.0\n")
    with pytest.raises(UserError, match=r"^mine.yaml: version: this is compclip .*; install that"):
        read_config(CONFIG)


def test_the_command_takes_the_table_as_its_argument() -> None:
    command = [sys.executable, "-m", "compclip", "init", "none.csv"]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, env={"PYTHONPATH": str(root)}, capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.startswith("error: none.csv: no such file")
