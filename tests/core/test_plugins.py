"""A module that a config names defines what its interface says, and nothing that would be
ignored.
"""

import importlib
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest
from PIL import Image

from compclip.core.errors import UserError
from compclip.core.identity.code import ROOT
from compclip.core.settings import plugins
from compclip.dataset import source, sources
from compclip.dataset.source import DatasetSource, load_source
from compclip.generate import generator, generators
from compclip.generate.config import Generator
from compclip.generate.generate_images import generate_images
from compclip.generate.generator import Context, Kind, load_kind
from workflow_scripts.workflow.check import check_config
from workflow_scripts.workflow.config import load_config
from workflow_scripts.workflow.plan import RunPlan

DOC = ROOT / "docs" / "generators.md"
GENERATOR = """
from compclip.generate.generator import Context, Generated, Settings
def generate(settings, prompts, context):
    return None
"""
SOURCE = """
from compclip.core.settings.section import Section
class Settings(Section):
    pass
def load(settings, *, seed, limit, folder, cache):
    return None
"""
Write = Callable[[ModuleType, str, str], str]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Return a function that adds a module to a folder of plugins and returns its name."""
    caches = plugins.available, generator.load_kind, source.load_source

    def add(package: ModuleType, code: str, name: str = "mine") -> str:
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
        (tmp_path / f"{name}.py").write_text(code)
        importlib.invalidate_caches()
        for cached in caches:
            cached.cache_clear()
        return name

    yield add
    for package in (generators, sources):
        sys.modules.pop(f"{package.__name__}.mine", None)
    monkeypatch.undo()
    for cached in caches:
        cached.cache_clear()


# What is added to a correct module, and what the error says.
GENERATOR_FAULTS = [
    ('SPLIT = ("test_seen",)', "SPLIT: unknown name; did you mean SPLITS?; allowed keys: "),
    ('SPLTIS = ("test_seen",)', "SPLTIS: unknown name; did you mean SPLITS?; allowed keys: "),
    ('splits = ("test_seen",)', "splits: unknown name; allowed keys: "),
    ("SCENE: bool = True", "SCENE: unknown name; did you mean SCENES?; allowed keys: "),
    ("MODELS = True", "MODELS: unknown name; did you mean MODEL?; allowed keys: "),
    ("if True:\n    TABEL = ()", "TABEL: unknown name; did you mean TABLES?; allowed keys: "),
    ('SERVES = ("test_seen",)', "SERVES: unknown name; did you mean SCENES?; allowed keys: "),
    ("SOMETHING = 3", "SOMETHING: unknown name; allowed keys: "),
    ("A, GUIDANCE = 1, 2", "A: unknown name; allowed keys: "),
    (
        "def fingerprints(settings, cache=None): return ''",
        "fingerprints: unknown name; did you mean fingerprint?; allowed keys: ",
    ),
    (
        "def prewiew(settings, prompts): return ''",
        "prewiew: unknown name; did you mean preview?; allowed keys: ",
    ),
    (
        "class Setting(Settings):\n    steps: int = 3",
        "Setting: unknown name; did you mean Settings?; allowed keys: ",
    ),
    ('SPLITS = "test_seen"', "SPLITS: Input should be a valid tuple"),
    (
        'SPLITS = ("test_sen",)',
        "SPLITS.0: Input should be 'test_seen', 'test_unseen' or 'test_swapped'",
    ),
    ('TABLES = ["images"]', "TABLES: Input should be a valid tuple"),
    ("SCENES = 1", "SCENES: Input should be a valid boolean"),
    ('MODEL = "yes"', "MODEL: Input should be a valid boolean"),
    ("ABOUT = None", "ABOUT: Input should be a valid string"),
    ("Settings = dict", "Settings: Input should be a subclass of Section"),
    ("generate = None", "generate: Input should be callable"),
    ("del generate", "generate: Field required"),
    ("del Settings", "Settings: Field required"),
    ("1 / 0", "cannot be imported (ZeroDivisionError"),
    ("import no_such_library", "cannot be imported (ModuleNotFoundError"),
    ("def", "cannot be imported (SyntaxError"),
]


@pytest.mark.parametrize(("line", "error"), GENERATOR_FAULTS)
def test_a_faulty_generator_kind_is_refused(write: Write, line: str, error: str) -> None:
    name = write(generators, f"{GENERATOR}{line}\n")
    with pytest.raises(UserError) as raised:
        load_config({"generate": {"generators": [name]}})
    assert f"compclip.generate.generators.mine: {error}" in str(raised.value) and "\n" not in str(
        raised.value
    )


def test_new_images_of_a_kind_have_no_known_scene(write: Write) -> None:
    # By default a kind reads the images, as photographs does, but draws others.
    name = write(generators, GENERATOR)
    plan = RunPlan(load_config({"generate": {"generators": ["photographs", name]}}))
    assert plan.score.oracle_generators == ["photographs"]


SOURCE_FAULTS = [
    ('TABLE = ("scenes",)', "TABLE: unknown name; did you mean TABLES?; allowed keys: "),
    ("PARALEL = True", "PARALEL: unknown name; did you mean PARALLEL?; allowed keys: "),
    ("ONE_VALUES = True", "ONE_VALUES: unknown name; did you mean ONE_VALUE?; allowed keys: "),
    ("SCRACH = True", "SCRACH: unknown name; did you mean SCRATCH?; allowed keys: "),
    ("OTHER = True", "OTHER: unknown name; allowed keys: "),
    ("def loads(settings): return None", "loads: unknown name; did you mean load?; allowed keys: "),
    ("PARALLEL = 4", "PARALLEL: Input should be a valid boolean"),
    ("del load", "load: Field required"),
    ("raise RuntimeError('no')", "cannot be imported (RuntimeError: no)"),
]


@pytest.mark.parametrize(("line", "error"), SOURCE_FAULTS)
def test_a_faulty_dataset_source_is_refused(write: Write, line: str, error: str) -> None:
    name = write(sources, f"{SOURCE}{line}\n")
    with pytest.raises(UserError) as raised:
        load_config({"dataset": {"source": name}})
    assert "compclip.dataset.sources.mine" in str(raised.value) and error in str(raised.value)


def test_what_is_defined_is_read_and_the_rest_has_defaults(write: Write) -> None:
    used = "STEPS = 3\n_HIDDEN = 4\ndef helper(): return STEPS\n_made = helper()\n"
    used += "from compclip.core.tables import SPLIT, TESTS\n"
    kind = load_kind(write(generators, GENERATOR + used + 'SPLITS = ("test_seen",)\n'))
    assert isinstance(kind, Kind) and kind.SPLITS == ("test_seen",) and kind.TABLES == ("images",)
    assert not (kind.SCENES or kind.MODEL or kind.fingerprint or kind.preview or kind.ABOUT)
    made = load_source(write(sources, SOURCE + "PARALLEL = True\n"))
    assert (
        isinstance(made, DatasetSource) and made.PARALLEL and not made.SCRATCH and made.TABLES == ()
    )


@pytest.mark.parametrize(
    "name", ["../mine", "mine.py", "a.b", "os", "_private", "", "__init__", "folder\n", "/etc"]
)
def test_only_a_module_of_the_folder_can_be_named(name: str) -> None:
    with pytest.raises(UserError, match=r"^config: generate.generators.0: .*unknown"):
        load_config({"generate": {"generators": [{"name": "it", "kind": name}]}})
    with pytest.raises(UserError, match=r"^config: dataset.source: unknown"):
        load_config({"dataset": {"source": name}})


def test_a_table_that_no_source_makes_is_refused(write: Write) -> None:
    name = write(generators, GENERATOR + 'TABLES = ("image", "pairs")\n')
    with pytest.raises(UserError, match="mine reads the image, not in source sketch"):
        load_config({"generate": {"generators": [name]}})


def test_a_faulty_source_that_is_not_chosen_does_not_matter(write: Write, tmp_path: Path) -> None:
    write(sources, f"{SOURCE}TABLE = ()\n")
    assert not check_config(
        load_config(
            {"results": str(tmp_path / "r"), "judge": {"model": "sketch", "trainable": ["*"]}}
        )
    ).errors


def test_the_kind_of_the_documentation_reads_real_images(write: Write, tmp_path: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", DOC.read_text(), re.MULTILINE | re.DOTALL)
    (code,) = (block for block in blocks if "class Settings" in block)
    name = write(generators, code)
    picture = Image.new("RGB", (4, 4), "red")
    picture.paste("blue", (0, 0, 2, 4))
    (tmp_path / "results" / "mine").mkdir(parents=True)
    picture.save(tmp_path / "results" / "mine" / "a.png")
    prompt = {
        "split": "test_seen",
        "image_id": "a",
        "caption_id": 0,
        "draw": 0,
        "text": "x",
        "file_name": "it/a/0.png",
    }
    context = Context(
        {"images": pd.DataFrame({"image_id": ["a"], "path": ["mine/a.png"]})},
        tmp_path / "made",
        "place",
        "color",
        0,
        results=tmp_path / "results",
    )
    given = Generator.model_validate({"name": "it", "kind": name, "size": 4})
    made = generate_images(given, pd.DataFrame([prompt]), context)
    assert (
        made.manifest["status"].tolist() == ["ok"]
        and load_kind(name).ABOUT == "mirrored photographs"
    )
    mirrored = Image.open(tmp_path / "made" / "it" / "a" / "0.png")
    assert mirrored.getpixel((0, 0)) == (255, 0, 0) and mirrored.getpixel((3, 3)) == (0, 0, 255)


@pytest.mark.parametrize(
    ("package", "code", "fault"),
    [
        (generators, GENERATOR + "SPLITS = ()", "SPLITS: Tuple should have at least 1 item"),
        (
            generators,
            GENERATOR.replace("settings, prompts, context", "settings"),
            "generate: expected a function of 3",
        ),
        (
            generators,
            GENERATOR.replace("context):", "context, more):"),
            "generate: expected a function of 3",
        ),
        (generators, GENERATOR.replace("def ", "async def "), "generate: expected a function of 3"),
        (
            generators,
            GENERATOR.replace("return None", "yield None"),
            "generate: expected a function of 3",
        ),
        (
            generators,
            GENERATOR + "def preview(settings):\n    return ''",
            "preview: expected a function of 2",
        ),
        (
            sources,
            SOURCE.replace("settings, *", "settings, place, *"),
            "load: expected a function of 1",
        ),
        (sources, SOURCE.replace("def ", "async def "), "load: expected a function of 1"),
    ],
)
def test_a_module_that_could_not_run_is_refused(
    write: Write, package: ModuleType, code: str, fault: str
) -> None:
    name = write(package, code)
    with pytest.raises(UserError, match=f"mine: {fault}"):
        (load_kind if package is generators else load_source)(name)
