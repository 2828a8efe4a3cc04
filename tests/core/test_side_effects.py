"""The library changes nothing that belongs to the process of its caller."""

import ast
import logging
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from compclip.clip.config import ModelConfig
from compclip.clip.device import settled
from compclip.clip.model import build, load_judge, save_judge
from compclip.core import limits
from compclip.core.errors import UserError
from compclip.core.identity.code import ROOT
from compclip.core.reading.pictures import BrokenImage, read_rgb
from compclip.core.reading.records import read_records
from compclip.split import choose_draw as module
from compclip.split.choose_draw import TrialData, choose_draw
from compclip.split.composition import Lexicons, Seeding
from compclip.split.config import DrawConfig
from compclip.split.make_splits import split_images
from tests.process_state import changes, process_state
from tests.split.worlds import LEXICONS, world

# What sets something for the whole process, and why it may.
ALLOWED = {
    # A command's process is its own; in an installed package, the workflow is elsewhere.
    "compclip/__main__.py": {"sys.path.insert"},
    # Inside `settled`, which sets it back, or in a script, whose process is its own.
    "compclip/clip/device.py": {
        "os.environ.setdefault",
        "del os.environ",
        "torch.set_num_threads",
        "torch.set_deterministic_debug_mode",
        "torch.utils.deterministic.fill_uninitialized_memory",
        "torch.backends.cudnn.allow_tf32",
    },
    # Called by commands and steps, whose process is their own.
    "compclip/core/memory.py": {"gc.set_threshold"},
    # Inside `torch.random.fork_rng`, of `settled` for trainings.
    "compclip/clip/model.py": {"torch.default_generator.manual_seed"},
    "compclip/judge/training.py": {"torch.manual_seed"},
    "compclip/specs/train_specs.py": {"torch.manual_seed"},
    # A broken torchvision is replaced by one that works.
    "compclip/clip/vision.py": {"del sys.modules"},
    # Commands, whose process is their own.
    "compclip/core/settings/cli.py": {
        "logging.raiseExceptions",
        "warnings.filterwarnings",
        "log.setLevel",
        "log.propagate",
        "log.addHandler",
        "log.removeHandler",
        "sys.argv",
        "signal.signal",
    },
    # A limit of the process for one row, which is set back.
    "compclip/core/reading/records.py": {"csv.field_size_limit"},
    # Processes of a training, which torchrun starts.
    "compclip/judge/parallel.py": {"torch.cuda.set_device", "log.addFilter"},
    # The generator's own job; its libraries would log to the screen.
    "compclip/generate/generators/diffusers.py": {
        "library.utils.logging.set_verbosity_error",
        "library.utils.logging.disable_progress_bar",
        "torch.use_deterministic_algorithms",
    },
    # Only scripts call `skip_torch`.
    "compclip/text/language.py": {"sys.modules", "del sys.modules"},
    # A worker's own copy.
    "compclip/core/processes.py": {"global _function"},
}
# Calls that set something for the process; prefixes end in _.
SETTERS = {
    "addFilter",
    "addHandler",
    "basicConfig",
    "chdir",
    "disable",
    "field_size_limit",
    "filterwarnings",
    "manual_seed",
    "manual_seed_all",
    "putenv",
    "removeFilter",
    "removeHandler",
    "resetwarnings",
    "seed",
    "setLevel",
    "seterr",
    "setlocale",
    "setrlimit",
    "setrecursionlimit",
    "signal",
    "simplefilter",
    "umask",
    "unsetenv",
    "use_deterministic_algorithms",
}
PREFIXES = ("set_", "disable_", "enable_", "register_")
# Methods of containers, where the container belongs to an imported module.
CHANGERS = {"append", "clear", "extend", "insert", "pop", "remove", "setdefault", "update"}
SHARED = {
    "os.environ",
    "sys.path",
    "sys.modules",
    "sys.argv",
    "warnings.filters",
    "plt.rcParams",
    "mpl.rcParams",
}
SHARED |= {"matplotlib.rcParams"}


def root_of(node: ast.expr) -> str:
    """Return the first name of ``a.b[c].d``."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def settings_of(text: str) -> Iterator[str]:
    """Yield what a module's code sets for the whole process."""
    tree = ast.parse(text)
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    imported = {
        (alias.asname or alias.name).split(".")[0] for node in imports for alias in node.names
    }
    # Variables may have the name of something imported, or be a module.
    imported -= {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    imported |= {"library"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Global):
            yield from (f"global {name}" for name in node.names)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name, owner = node.func.attr, ast.unparse(node.func.value)
            is_setter = name in SETTERS or name.startswith(PREFIXES)
            if root_of(node.func) in imported and (
                is_setter or (name in CHANGERS and owner in SHARED)
            ):
                yield f"{owner}.{name}"
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign | ast.Delete):
            targets = node.targets
        elif isinstance(node, ast.AugAssign | ast.AnnAssign):
            targets = [node.target]
        word = "del " if isinstance(node, ast.Delete) else ""
        for target in (part for each in targets for part in ast.walk(each)):
            is_kept = isinstance(target, ast.Attribute | ast.Subscript) and isinstance(
                target.ctx, ast.Store | ast.Del
            )
            if is_kept and root_of(target) in imported:
                yield word + ast.unparse(
                    target.value if isinstance(target, ast.Subscript) else target
                )


def test_code_sets_nothing_for_the_whole_process() -> None:
    files = sorted((ROOT / "compclip").rglob("*.py"))
    set_by = {
        file.relative_to(ROOT).as_posix(): set(settings_of(file.read_text())) for file in files
    }
    assert {
        file: names - ALLOWED.get(file, set()) for file, names in set_by.items() if names
    } == dict.fromkeys([file for file, names in set_by.items() if names], set())
    assert {
        file: names - set_by[file] for file, names in ALLOWED.items() if names - set_by[file]
    } == {}


@pytest.mark.parametrize(
    "code",
    [
        "from compclip.core.log import log\nlog.disabled = True",
        "import logging\nlogging.disable(30)",
        "import os\nos.environ['A'] = '1'",
        "import os\nos.environ.update(A='1')",
        "import os\nos.environ.pop('A')",
        "import sys\nsys.path.insert(0, 'x')",
        "import warnings\nwarnings.simplefilter('ignore')",
        "import pandas as pd\npd.set_option('a', 1)",
        "import numpy as np\nnp.random.seed(0)",
        "import matplotlib as mpl\nmpl.rcParams['a'] = 1",
        "import torch\ntorch.backends.cudnn.benchmark = True",
        "import torch\ntorch.set_num_threads(1)",
        "from PIL import Image\nImage.MAX_IMAGE_PIXELS = None",
        "import signal\nsignal.signal(2, None)",
        "import locale\nlocale.setlocale(0, 'C')",
    ],
)
def test_the_search_finds_what_it_should(code: str) -> None:
    assert list(settings_of(code))


def test_importing_every_module_changes_nothing() -> None:
    program = """
import importlib, pkgutil
# These libraries add filters of warnings themselves.
import matplotlib.figure, numba, pandas, scipy.stats, spacy
from compclip.clip.vision import import_torchvision
import_torchvision()
import torchmetrics.image.fid
from tests.process_state import changes, process_state
before = process_state()
import compclip
for module in pkgutil.walk_packages(compclip.__path__, "compclip."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
print(sorted(changes(before, process_state()).items()))
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stdout[-2000:] + done.stderr[-2000:]


def test_warnings_of_another_thread_are_seen_while_draws_are_tried(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, log, tried = world(5, images=100, captions=2), logging.getLogger("compclip"), []

    def during(*arguments: object, **options: object) -> object:
        thread = threading.Thread(target=log.warning, args=("of another thread",))
        thread.start()
        thread.join()
        log.warning("of the caller")
        tried.append(1)
        return split_images(*arguments, **options)

    monkeypatch.setattr(module, "split_images", during)
    before = process_state()
    with caplog.at_level("INFO"):
        trials = TrialData(data.captions, data.pairs, data.ranking, Lexicons(*LEXICONS), Seeding(1))
        choose_draw(trials, DrawConfig(), 15)
    assert (
        caplog.messages.count("of another thread")
        == caplog.messages.count("of the caller")
        == len(tried)
        > 1
    )
    others = [record.message for record in caplog.records if record.levelname == "WARNING"]
    others = [message for message in others if not message.startswith("of ")]
    assert len(others) == 1 and "ranked pairs are held out" in others[0]
    assert changes(before, process_state()) == {}


def test_a_judge_leaves_torch_as_it_was(tmp_path: Path) -> None:
    """A training loop that scores its images keeps its threads, its randomness and its fast
    algorithms.
    """
    torch.manual_seed(7)
    torch.set_num_threads(2)
    torch.backends.cudnn.allow_tf32 = True
    torch.use_deterministic_algorithms(False)
    before = process_state()
    save_judge(
        build(ModelConfig(model="sketch"), ["a red bird"] * 2, 0),
        "sketch",
        None,
        tmp_path / "judge",
    )
    assert changes(before, process_state()) == {}
    judge = load_judge(tmp_path / "judge", 1, "cpu")
    assert changes(before, process_state()) == {}
    Image.new("RGB", (50, 50)).save(tmp_path / "a.png")
    texts, images = (
        judge.encode_texts(["a bird"], 2),
        judge.encode_images([(tmp_path / "a.png", None)], 2),
    )
    assert changes(before, process_state()) == {}
    # Without the caller's settings it encodes the same.
    torch.set_num_threads(1)
    torch.backends.cudnn.allow_tf32 = False
    torch.use_deterministic_algorithms(True)
    assert np.array_equal(judge.encode_texts(["a bird"], 2), texts)
    assert np.array_equal(judge.encode_images([(tmp_path / "a.png", None)], 2), images)
    torch.use_deterministic_algorithms(False)


def test_settings_return_after_an_error_and_in_nested_blocks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
    torch.set_num_threads(2)
    before = process_state()
    with suppress(ZeroDivisionError), settled(1):
        assert torch.get_num_threads() == 1 and torch.get_deterministic_debug_mode() == 2
        inside = process_state()
        with settled(2):
            torch.use_deterministic_algorithms(True, warn_only=True)
            assert torch.get_num_threads() == 2
            torch.manual_seed(1)
        assert changes(inside, process_state()) == {}
        raise ZeroDivisionError
    assert changes(before, process_state()) == {} and "CUBLAS_WORKSPACE_CONFIG" not in os.environ
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":16:8")
    with settled(1):
        pass
    assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == ":16:8"


def test_reading_files_changes_no_limit(tmp_path: Path) -> None:
    before = process_state()
    table = tmp_path / "a.csv"
    table.write_text(f"image_id,text\n1,{'a' * 200_000}\n")  # more than the limit of the csv module
    rows, bad = read_records(table, ["image_id", "text"], [])
    assert rows["text"].str.len().tolist() == [200_000] and not bad
    table.write_text(f"image_id,text\n1,{'a' * (limits.CELL + 1)}\n")
    with pytest.raises(UserError):
        read_records(table, ["image_id", "text"], [])
    assert changes(before, process_state()) == {}


def test_pixels_are_limited_whatever_the_caller_sets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "PIXELS", 99)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", None)
    Image.new("RGB", (10, 10)).save(tmp_path / "a.png")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(BrokenImage, match="pixels"):
            read_rgb(tmp_path / "a.png")
