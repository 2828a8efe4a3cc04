"""A wrong config is one line that names the key, the value and what is allowed."""

import os
import pkgutil
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel, ValidationError

from compclip.core.errors import UserError
from compclip.core.settings.cli import Command
from compclip.core.settings.section import Section, sections_in, types_in
from tests.conftest import ROOT
from workflow_scripts.workflow.config import Config, load_config, read_config


@pytest.mark.parametrize(
    ("values", "parts"),
    [
        (
            {"split": {"heldout": {"fracton": 0.1}}},
            ["split.heldout.fracton", "unknown key", "fraction", "window"],
        ),
        ({"dataset": {"source": "table"}}, ["dataset", "dataset.table"]),
        (
            {"dataset": {"cub": {"root": "x", "image": "y"}}},
            ["dataset.cub.image", "unknown key", "images"],
        ),
        (
            {"generate": {"generators": ["shuffled", "shuffled"]}},
            ["duplicate generator 'shuffled'"],
        ),
        (
            {"generate": {"generators": [{"name": "x", "kind": "folder"}]}},
            ["'x'", "path", "required"],
        ),
        ({"compositions": ["colour"]}, ["compositions", "colour", "color"]),
        (
            {"split": {"heldout": {"pairs": ["purple bill"]}}},
            ["split.heldout.pairs: write pairs as"],
        ),
        ({"compositions": ["colour"]}, ["did you mean color?"]),
        ({"dataset": {"source": "tabel"}}, ["did you mean table?"]),
        ({"seed": "0"}, ["seed: expected a number; remove the quotation marks, got '0'"]),
        ({"judge": {"lr": "1e-3"}}, ["judge.lr: expected a number; remove the quotation marks"]),
        ({"compositions": "color"}, ["compositions: expected a list; write [color]"]),
        (
            {"dataset": {"name": "my birds"}},
            ["dataset.name: a name has letters, digits, - and _", "'my birds'"],
        ),
        ({"results": "."}, [f"results: contains {ROOT}"]),
        ({"results": "results/{x}"}, ["results: '{' would be misread"]),
        ({"results": "a/-rf"}, ["results: '-' would be misread"]),
        ({"results": "s3://bucket/folder"}, ["results: expected a local folder"]),
        ({"judge": {"seeds": [1, 1]}}, ["judge: duplicate seed in [1, 1]; remove one"]),
        (
            {"judge": {"seeds": [0, 1], "epochs": 0}},
            ["judge: without training (epochs: 0) all judges are equal"],
        ),
        (
            {"judges": [{"name": "tool", "kind": "table", "file": "a.csv"}]},
            ["judges: the first judge leads and needs embeddings, but is of kind 'table'"],
        ),
        ({"judges": [{}]}, ["judges.0: no name; write {name, kind, ...}"]),
        (
            {"judges": [{"name": "a", "kind": "clip", "modl": "RN50"}]},
            ["judges.0.modl: unknown key; did you mean model?"],
        ),
        (
            {"judges": ["clip", {"name": "a", "kind": "table"}]},
            ["judges.1: judge 'a': file: Field required"],
        ),
        (
            {"judges": ["clip", {"name": "a", "kind": "clip", "train_on": "half"}]},
            ["judges: a.train_on: expected 'train', as of the leading judge (the first, or"],
        ),
        (
            {"judge": {}, "judges": [{"name": "judge", "kind": "table", "file": "a.csv"}]},
            ["judges: judge 'judge': name in use"],
        ),
        ({"seeds": {"judge": 1}}, ["seeds.judge: unknown key; did you mean judge_half?"]),
        (
            {"score": {"reference": "absent"}},
            ["score.reference: absent is not in generate.generators; allowed: "],
        ),
        (
            {"human": {"generators": ["absent"]}},
            ["human.generators: absent is not in generate.generators; allowed: "],
        ),
        (
            {"human": {}, "generate": {"generators": []}},
            ["human: there are no images to ask about"],
        ),
        (
            {"specs": {}, "dataset": {"source": "cub"}},
            ["specs.data: null describes sketches, but dataset.source is"],
        ),
        (
            {"generate": {"generators": ["faithful"]}, "dataset": {"source": "cub"}},
            ["generate.generators: faithful reads the facts and scenes of sketches"],
        ),
        (
            {"split": {"heldout": {"pairs": {"size": ["big_bill"]}}}},
            ["split.heldout.pairs: unknown composition size"],
        ),
        (
            {"split": {"published": {"split": "s.pkl"}}},
            ["split.published: s.pkl: several", "add {composition}"],
        ),
        (
            {"judge": {"model": "sketch", "epochs": 0}},
            ["epochs: 0 with pretrained: null is a judge with random w"],
        ),
        (
            {"judge": {"model": "hf-hub:a/b", "pretrained": "x"}},
            ["pretrained must be null, because hf-hub:a/b has"],
        ),
        ({"judge": {"model": "hf-hub:a b"}}, ["model 'hf-hub:a b': expected hf-hub:owner/name"]),
        (
            {"split": {"published": {"split": "x"}, "heldout": {"pairs": ["red_bill"]}}},
            ["remove heldout.pairs or pub"],
        ),
        (
            {"split": {"method": "divergence", "heldout": {"pairs": ["red_bill"]}}},
            ["remove heldout.pairs"],
        ),
        (
            {"split": {"method": "divergence", "published": {"split": "x.pkl"}}},
            ["remove published"],
        ),
        ({"split": {"divergence": {"train": 0.7, "test": 0.4}}}, ["sum to at most 1, not 1.1"]),
        (
            {"split": {"divergence": {"compound": 1.5}}},
            ["compound: expected max or a number from 0 to 1"],
        ),
        ({"juge": {}}, ["juge: unknown key; did you mean judge? allowed: ", "seed"]),
        (
            {"generate": {"generators": ["faithfull"]}},
            ["generators.0", "'faithfull'; did you mean faithful? ", "folder"],
        ),
        (
            {"generate": {"generators": ["habit"]}},
            ["generators.0", "'habit': renamed; write usual_photographs"],
        ),
        (
            {"generate": {"generators": [{"name": "x", "kind": "stand_ins"}]}},
            ["generators.0", "'stand_ins': renamed; write pair_photographs"],
        ),
        (
            {"dataset": {"source": "tabel"}},
            ["dataset.source", "'tabel'; did you mean table? allowed: cub, ", "sketch"],
        ),
        ({"judge": {"lr": float("inf")}}, ["judge.lr: "]),
        (
            {"judge": {"epochs": 10**12}},
            ["judge.epochs: Input should be less than or equal to 100000"],
        ),
        ({"seed": ["long"] * 1000}, ["…"]),
        ({"threads": 1_000_000}, ["threads: Input should be less than or equal to 1024"]),
        (
            {"dataset": {"sketch": {"images": 99_999_999_999}}},
            ["dataset.sketch.images: ", "1000000000"],
        ),
        ({"judge": {"weight_decay": float("inf")}}, ["judge.weight_decay: "]),
        ({"judge": {"weight_decay": float("nan")}}, ["judge.weight_decay: "]),
        ({"split": {"heldout": {"window": [0, float("inf")]}}}, ["split.heldout.window.1: "]),
        ({"seed": 2**64}, ["seed: Input should be less than or equal to 9223372036854775807"]),
        ({"judge": {"seeds": [10**30]}}, ["judge.seeds.0: "]),
        ({"cache": "results"}, ["cache: overlaps with results"]),
        ({"cache": "results/x"}, ["cache: overlaps with results"]),
        ({"results": ".cache/x"}, ["cache: overlaps with results (.cache/x)"]),
        ({"container": "x; touch y"}, ["container: "]),
        ({"container": "$(touch y)"}, ["container: "]),
        (
            {"compun": {"compounds": {"images": "x"}}},
            ["compun: compounds without models to ask; add models"],
        ),
        (
            {"compun": {"compounds": {}, "models": [{"judge": "a"}]}},
            ["compun.compounds.images: Field required"],
        ),
        (
            {"compun": {"models": [{"judge": "a", "name": "taught"}]}},
            ["compun.models: two models are called 'taught'"],
        ),
        (
            {"compun": {"models": [{"judge": "a"}, {"judge": "b", "name": "a"}]}},
            ["two models are called 'a'"],
        ),
        ({"compun": {"models": [{"name": "x"}]}}, ["give judge or open_clip"]),
        ({"compun": {"models": [{"judge": "a", "pretrain": "b"}]}}, ["pretrain"]),
        ({"compun": {"models": [{"open_clip": "ViT-B-32"}]}}, ["random weights"]),
        (
            {"compun": {"models": [{"judge": "a", "pretrained": "b"}]}},
            ["pretrained requires open_clip"],
        ),
        (
            {"compun": {"drawn": {"tested": 1}}},
            ["tested: Input should be greater than or equal to 6, got 1"],
        ),
    ],
)
def test_mistakes(values: dict[str, Any], parts: list[str]) -> None:
    with pytest.raises(UserError) as error:
        load_config(values, "my.yaml")
    message = str(error.value)
    assert message.startswith("my.yaml: ") and "\n" not in message and len(message) < 500
    for part in parts:
        assert part in message, message


def test_the_first_of_several_judges_leads() -> None:
    wide = {"name": "wide", "kind": "clip", "model": "ViT-B-32", "pretrained": "openai"}
    tool = {"name": "tool", "kind": "table", "file": "answers.csv"}
    config = load_config({"judges": [wide, tool]})
    assert (config.leading, config.judge.model) == ("wide", "ViT-B-32")
    assert [judge.name for judge in config.judges] == ["tool"]
    beside = load_config({"judge": {"model": "RN50"}, "judges": [wide, tool]})
    assert (beside.leading, beside.judge.model) == ("judge", "RN50")
    assert [judge.name for judge in beside.judges] == ["wide", "tool"]


def test_settings_of_a_judge_are_not_shown() -> None:
    for options in ("http://user:secret@host", {"url": "http://user:secret@host"}):
        with pytest.raises(UserError) as error:
            load_config(
                {"judge": {}, "judges": [{"name": "a", "kind": "served", "options": options}]}
            )
        assert "secret" not in str(error.value)


def test_a_judges_name_is_no_setting_of_a_step() -> None:
    config = load_config({"judge": {"name": "wide"}})
    assert "name" not in config.model_dump()["judge"]


def test_a_renamed_key_is_not_advised_with_a_value_that_it_refuses() -> None:
    with pytest.raises(UserError) as error:
        load_config({"split": {"violations": "ignore"}}, "my.yaml")
    fault = "split.on_violation: Input should be 'error' or 'warn', got 'ignore'"
    assert str(error.value) == f"my.yaml: split.violations: renamed to {fault}"


@pytest.mark.parametrize(
    ("values", "renamed"),
    [
        ({"judge": {"share": False}}, "judge.share: renamed; write judge.shared: false"),
        ({"score": {"health": 0.2}}, "score.health: renamed; write score.max_bias: 0.2"),
        (
            {"split": {"heldout": {"least": 12}}},
            "split.heldout.least: renamed; write split.heldout.min_pairs: 12",
        ),
        (
            {"split": {"heldout": {"prefer": "any"}}},
            "split.heldout.prefer: renamed; write split.heldout.prefer_swappable: false",
        ),
        (
            {"split": {"heldout": {"prefer": "swappable"}}},
            "split.heldout.prefer: renamed; write split.heldout.prefer_swappable: true",
        ),
        (
            {"split": {"heldout": {"prefer": None}}},
            "split.heldout.prefer: renamed; write split.heldout.prefer_swappable: null",
        ),
        (
            {"split": {"violations": "refuse"}},
            "split.violations: renamed; write split.on_violation: error",
        ),
        (
            {"split": {"violations": "count"}},
            "split.violations: renamed; write split.on_violation: warn",
        ),
    ],
)
def test_a_key_of_an_earlier_version_is_refused_with_its_present_name_and_value(
    values: dict[str, Any], renamed: str
) -> None:
    with pytest.raises(UserError) as error:
        load_config(values, "my.yaml")
    assert str(error.value) == f"my.yaml: {renamed}"
    name, value = renamed.split("; write ")[1].split(": ")
    for word in reversed(name.split(".")):
        value = {word: value if isinstance(value, dict) else yaml.safe_load(value)}
    load_config(value)


def sections_below(section: type[Section]) -> Iterator[type[Section]]:
    """Yield a section, and those that it contains."""
    yield section
    for field in section.model_fields.values():
        for inner in sections_in(field.annotation):
            yield from sections_below(inner)


def test_true_is_no_number() -> None:
    checked = 0
    for section in sections_below(Config):
        for name, field in section.model_fields.items():
            if re.search(r"int|float", str(field.annotation)) and "Literal" not in str(
                field.annotation
            ):
                with pytest.raises(ValidationError) as error:
                    section.model_validate(
                        {name: [True, True] if "tuple" in str(field.annotation) else True}
                    )
                assert (name,) in [
                    f["loc"] for f in error.value.errors() if "expected a number" in f["msg"]
                ], name
                checked += 1
    assert checked > 60


def models_below(base: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for model in base.__subclasses__():
        yield model
        yield from models_below(model)


# Released files are checked against what they describe; colors are bounded by their channels.
NOT_BOUNDED = {
    "compclip.release.open_release",
    "compclip.release.submission",
    "compclip.clip.config",
}


def test_each_number_of_a_config_and_of_a_command_is_bounded() -> None:
    for module in ("judge", "score", "divergence", "specs", "pairs", "release"):
        for found in pkgutil.iter_modules(
            import_module(f"compclip.{module}").__path__, f"compclip.{module}."
        ):
            import_module(found.name)
    checked = 0
    for model in {*models_below(Section), *models_below(Command)}:
        if (
            not model.__module__.startswith(("compclip.", "workflow_scripts."))
            or model.__module__ in NOT_BOUNDED
        ):
            continue
        for name, field in model.model_fields.items():
            if {int, float} & {*types_in(field.annotation)} and name != "window":
                declared = f"{field.metadata} {field.annotation}"
                assert "Le(le=" in declared or "Lt(lt=" in declared, f"{model.__name__}.{name}"
                checked += 1
    assert checked > 80


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected keys and values; write at least one key"),
        ("- color\n", "expected keys and values"),
        ("judge:\n  lr: 0.1\n  lr: 0.2\n", "line 3: duplicate key 'lr'; remove one"),
        ("seed: é\n".encode("latin-1"), "line 1: byte 0xe9 is not UTF-8"),
        (b"\x00\x01", "not valid YAML"),
        (
            "a: [1\n",
            "not valid YAML: line 2, column 1: expected ',' or ']', but got '<stream end>'",
        ),
        ("seed:\n\tx: 1\n", "line 2, column 1: a tab; indent with spaces"),
        ("judge: {lr: 1\nseed: 0\n", "in what begins in line 1, column 8"),
        (
            "seed: '" + "x" * 2_000_000 + "'",
            "2,000,008 characters, more than the limit of 1,000,000",
        ),
        ("judge: {lr: fast}", "judge.lr: Input should be a valid number, got 'fast'"),
    ],
)
def test_faulty_files(tmp_path: Path, text: str | bytes, message: str) -> None:
    (tmp_path / "mine.yaml").write_bytes(text if isinstance(text, bytes) else text.encode())
    for path, expected in (
        (tmp_path / "mine.yaml", message),
        (tmp_path / "mien.yaml", "did you mean .*mine.yaml"),
    ):
        with pytest.raises(UserError, match=f"{path.name}: .*{expected}") as error:
            read_config(path)
        assert "\n" not in str(error.value)


WriteConfigs = Callable[..., None]


@pytest.fixture
def write_configs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WriteConfigs:
    """Return a function that writes configs, by name, into the working folder of the test."""
    monkeypatch.chdir(tmp_path)

    def write(**contents: str) -> None:
        for name, text in contents.items():
            Path(f"{name}.yaml").write_text(text)

    return write


def test_a_config_says_only_what_differs_from_its_base(write_configs: WriteConfigs) -> None:
    write_configs(
        first="{seed: 3, judge: {epochs: 2, batch: 8}, compositions: [color]}",
        second="{base: first.yaml, judge: {epochs: 4}}",
        third="{base: second.yaml, compositions: [shape]}",
    )
    config = read_config(Path("third.yaml"))
    assert (config.seed, config.judge.epochs, config.judge.batch) == (3, 4, 8)
    assert config.compositions == ["shape"]


@pytest.mark.parametrize(
    ("base", "message"),
    [
        ("third.yaml", "first.yaml: base: third.yaml is its own base"),
        ("nowhere.yaml", "first.yaml: base: .*nowhere.yaml: no such config file"),
        ("fourth.yaml", "fourth.yaml: .*expected keys and values"),
        ("3", "base: Input should be a valid string, got 3"),
    ],
)
def test_a_faulty_base_is_named(write_configs: WriteConfigs, base: str, message: str) -> None:
    write_configs(
        first=f"base: {base}", second="base: first.yaml", third="base: second.yaml", fourth="[1]"
    )
    with pytest.raises(UserError, match=message) as error:
        read_config(Path("third.yaml"))
    assert "\n" not in str(error.value)


def test_results_and_release_of_a_base_do_not_count(write_configs: WriteConfigs) -> None:
    write_configs(
        first="{results: results/first, seed: 2, release: {name: first, license: mit}}",
        second="base: first.yaml",
    )
    config = read_config(Path("second.yaml"))
    assert (config.results, config.release.name, config.seed) == ("results", None, 2)


def test_a_base_of_the_checkout_is_found_from_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").write_text("{base: config.yaml, seed: 5}")
    default = read_config(ROOT / "config.yaml")
    assert read_config(Path("mine.yaml")).judge == default.judge


def test_snakemake_and_make_refuse_unknown_keys_and_help_lists_every_target(tmp_path: Path) -> None:
    config = tmp_path / "mine.yaml"
    config.write_text("seed: 1\nseed: 2\n")
    command = [sys.executable, "-m", "snakemake", "-n", "--configfile", str(config)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode and "duplicate key 'seed'; remove one" in run.stdout + run.stderr
    shown = subprocess.run(
        ["make", "--no-print-directory", "help"], cwd=ROOT, capture_output=True, text=True
    ).stdout.splitlines()
    text = (ROOT / "Makefile").read_text().replace("\\\n", " ")
    targets = re.search(r"^\.PHONY: (.*)$", text, re.MULTILINE)[1].split()
    assert {line.split()[1] for line in shown} == set(targets) and all(
        len(line) <= 80 for line in shown
    )
    # A variable of the environment may be another program's.
    environment = {**os.environ, "config": "other", "MAKEFLAGS": ""}
    for words in ("config=x.yaml", "run cores=2", "run CONFG=x"):
        run = subprocess.run(
            ["make", "-n", *words.split()],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
        )
        name = words.split()[-1].split("=")[0]
        assert run.returncode and f"unknown variable {name}; known: BASE CONFIG CORES" in run.stderr
    good = subprocess.run(
        ["make", "-n", "run", "CONFIG=my x.yaml"], cwd=ROOT, env=environment, capture_output=True
    )
    assert good.returncode == 0 and b"--config 'my x.yaml'" in good.stdout


@pytest.mark.parametrize(
    ("source", "generators", "reference"),
    [
        ("sketch", ["photographs", "faithful"], "faithful"),
        ("sketch", ["photographs"], None),
        ("cub", ["photographs"], "photographs"),
    ],
)
def test_the_reference_is_a_generator(
    source: str, generators: list[str], reference: str | None
) -> None:
    values = {"dataset": {"source": source}, "generate": {"generators": generators}}
    assert load_config(values).reference == reference
    assert load_config(values | {"score": {"reference": "photographs"}}).reference == "photographs"


def texts_in(value: Any) -> Iterator[str]:
    """Yield all texts of a config."""
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from texts_in(inner)
    elif isinstance(value, str):
        yield value


@pytest.mark.parametrize(
    "preset", [ROOT / "config.yaml", *sorted((ROOT / "presets").glob("*.yaml"))], ids=str
)
def test_presets_name_files_of_the_checkout_alone(preset: Path) -> None:
    """Those that a user downloads are in data/, which git ignores."""
    for text in texts_in(yaml.safe_load(preset.read_text())):
        assert ".." not in text.split("/") and not text.startswith(("/", "~")), text
        assert (
            "/" not in text
            or text.split("/")[0] in {"data", "results", "compclip", "presets"}
            or ":" in text
        ), text
