"""Every place in the code where a library could run a stranger's code is known, and safe by its
arguments or a reason.

A new place fails here: give the call the argument that makes it safe, or add the place to ``KNOWN``
with a reason.
"""

import ast
from collections import Counter
from collections.abc import Iterator

import pytest

from compclip.core.identity.code import ROOT

FOLDERS = ("compclip", "workflow_scripts", "examples", "benchmarks")
OURS = ("compclip", "workflow_scripts", "tests")
# Names by which Python and libraries run code, or read files that may hold or name code.
RISKY = {
    # Python
    "exec",
    "__import__",
    "import_module",
    "exec_module",
    "load_module",
    "load_source",
    "spec_from_file_location",
    "SourceFileLoader",
    "run_path",
    "run_module",
    "find_spec",
    "resolve_name",
    "locate",
    "entry_points",
    "CDLL",
    "LoadLibrary",
    "Unpickler",
    "system",
    "popen",
    "interact",
    # readers and templates
    "read_pickle",
    "unsafe_load",
    "unsafe_load_all",
    "full_load",
    "full_load_all",
    "UnsafeLoader",
    "FullLoader",
    "from_string",
    "Template",
    "NativeEnvironment",
    "apply_chat_template",
    # transformers, diffusers and the Hub
    "from_pretrained",
    "from_config",
    "from_single_file",
    "from_pipe",
    "DiffusionPipeline",
    "load_dataset",
    "get_class_from_dynamic_module",
    "load_lora_weights",
    "load_textual_inversion",
    "load_ip_adapter",
    "get_kernel",
    # open_clip, timm, torch, torchvision
    "HFTokenizer",
    "SimpleTokenizer",
    "HFTextEncoder",
    "get_tokenizer",
    "create_model",
    "create_model_and_transforms",
    "create_model_from_pretrained",
    "CustomTextCLIP",
    "CoCa",
    "CLIP",
    "TimmModel",
    "load_openai_model",
    "load_checkpoint",
    "load_state_dict_from_url",
    "add_safe_globals",
    "safe_globals",
    "load_inline",
    "load_library",
    "NoTrainInceptionV3",
    "CIFAR10",
    "CIFAR100",
}
# Names that are too common to be risky in other modules than these.
COMMON = {
    "load",
    "loads",
    "load_all",
    "Loader",
    "load_state_dict",
    "from_file",
    "download",
    "pipeline",
    "Pipeline",
}
LOADERS = {
    "pickle",
    "marshal",
    "shelve",
    "dill",
    "joblib",
    "cloudpickle",
    "skops",
    "torch",
    "numpy",
    "yaml",
    "spacy",
    "hub",
    "jit",
    "package",
    "export",
    "factory",
    "diffusers",
    "transformers",
    "timm",
    "open_clip",
    "DiffusionPipeline",
    "hub_model",
}
# Modules that are only imported for a known reason.
MODULES = {
    "pickle",
    "marshal",
    "shelve",
    "dill",
    "joblib",
    "cloudpickle",
    "runpy",
    "imp",
    "cffi",
    "ctypes",
    "code",
}
# Keyword arguments that make a call safe; the name may begin with the module.
SAFE = {
    "from_pretrained": ("trust_remote_code", False),
    "download": ("trust_remote_code", False),
    "HFTokenizer": ("trust_remote_code", False),
    "load_checkpoint": ("weights_only", True),
    "torch.load": ("weights_only", True),
    "factory.load_state_dict": ("weights_only", True),
    "numpy.load": ("allow_pickle", False),
}
# Arguments that may have only one value.
ONLY = {"trust_remote_code": False, "allow_pickle": False, "weights_only": True, "shell": False}
CONFIG = "clip.config.check_model_cfg allows the config's keys, model_folder the files"
WRITES = "writes pickles, and reads none"
NAMES = "the names are constants of this module"
# The number of places and the reason why they are safe.
KNOWN = {
    ("compclip/__init__.py", "importlib.import_module"): (2, NAMES),
    ("compclip/__main__.py", "importlib.import_module"): (4, NAMES),
    ("compclip/__main__.py", "importlib.util.find_spec"): (
        2,
        "looks for a package without importing it",
    ),
    ("workflow_scripts/workflow/commands.py", "importlib.import_module"): (3, NAMES),
    ("compclip/core/settings/plugins.py", "importlib.import_module"): (
        2,
        "the name is one of the modules in a package of ours",
    ),
    ("compclip/release/file_models.py", "pydantic.create_model"): (2, "the fields are named there"),
    ("workflow_scripts/report/make_page.py", "importlib.import_module"): (
        2,
        "the names are those of stages",
    ),
    ("compclip/clip/activations.py", "torch.from_file"): (1, "maps plain bytes"),
    ("compclip/core/memory.py", "ctypes"): (1, "for the next"),
    ("compclip/core/memory.py", "ctypes.CDLL"): (1, "the C library of this process"),
    ("compclip/clip/freeze_point.py", "timm_model.TimmModel"): (1, "compares the type of a model"),
    ("compclip/clip/text_tower.py", "model.CLIP"): (1, "compares the type of a model"),
    ("compclip/clip/model.py", "getattr(open_clip.model)"): (1, f"one of two functions; {CONFIG}"),
    ("compclip/clip/model.py", "open_clip.CoCa"): (1, CONFIG),
    ("compclip/clip/model.py", "open_clip.CustomTextCLIP"): (1, CONFIG),
    ("compclip/clip/model.py", "open_clip.CLIP"): (1, CONFIG),
    ("compclip/clip/tokens.py", "open_clip.SimpleTokenizer"): (1, CONFIG),
    ("compclip/clip/weights.py", "importlib.util.find_spec"): (
        1,
        "looks for a package without importing it",
    ),
    ("workflow_scripts/workflow/check.py", "importlib.util.find_spec"): (
        4,
        "looks for constants, and imports nothing",
    ),
    ("compclip/core/reading/documents.py", "yaml.load"): (1, "by a subclass of SafeLoader"),
    ("compclip/core/reading/pickles.py", "pickle"): (1, "for the next"),
    ("compclip/core/reading/pickles.py", "pickle.Unpickler"): (
        1,
        "the class of the restricted reader",
    ),
    ("compclip/dataset/config.py", "pydantic.create_model"): (2, "makes a class of settings"),
    ("compclip/dataset/load_dataset.py", "eval"): (1, "of a table: the expression is a constant"),
    ("compclip/generate/export_layout.py", "pickle"): (1, WRITES),
    ("compclip/split/export.py", "pickle"): (1, WRITES),
    ("workflow_scripts/score/generator_scores.py", "pickle"): (1, WRITES),
    ("benchmarks/speed/score.py", "pickle"): (1, "a job for the benchmark's own process"),
    ("compclip/generate/generators/diffusers.py", "diffusers.DiffusionPipeline"): (
        2,
        "for the call with the argument",
    ),
    ("compclip/generate/generators/diffusers.py", "getattr(torch)"): (
        1,
        "one of three types of numbers",
    ),
    ("compclip/score/score_fid.py", "fid.NoTrainInceptionV3"): (
        1,
        "torch.load is restricted since 2.6; test_fid.py",
    ),
    ("compclip/specs/zero_shot.py", "datasets.CIFAR10"): (2, "reads pickles only of known MD5"),
    ("compclip/specs/zero_shot.py", "datasets.CIFAR100"): (2, "reads pickles only of known MD5"),
    ("compclip/text/language.py", "spacy.load"): (
        1,
        "an installed package, which the user's own config names",
    ),
    ("benchmarks/faults.py", "shell"): (1, "the commands are constants"),
    ("benchmarks/speed/parse.py", "spacy.load"): (1, "an installed package"),
    ("benchmarks/speed/specs.py", "open_clip.SimpleTokenizer"): (1, "without arguments"),
}


class Finder(ast.NodeVisitor):
    """Collects the names in a module by which a stranger's code could run."""

    def __init__(self, source: str) -> None:
        self.origin: dict[str, str] = {}  # of names that are imported, or that stand for a library
        self.risks: list[str] = []
        self.visit(ast.parse(source))

    def name(self, node: ast.AST) -> str:
        """Return ``a.b.c`` of an expression with the original names; of calls without arguments."""
        if isinstance(node, ast.Attribute):
            return f"{self.name(node.value)}.{node.attr}"
        if isinstance(node, ast.Call):
            return self.name(node.func)
        return self.origin.get(node.id, node.id) if isinstance(node, ast.Name) else ""

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            package = alias.name.split(".")[0]
            self.origin[alias.asname or package] = alias.name if alias.asname else package
            self.risks += [alias.name] if package in MODULES else []

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        module = node.module or ""
        is_own = module.split(".")[0] in OURS
        for alias in node.names:
            # What is our own is found where it is defined.
            self.origin[alias.asname or alias.name] = (
                f"ours.{alias.name}_" if is_own else f"{module}.{alias.name}"
            )
            if alias.name == "open_clip" and is_own:
                self.origin["open_clip"] = "open_clip"
            elif not is_own:
                self.judge(f"{module}.{alias.name}", None)
                self.risks += [module] if module.split(".")[0] in MODULES else []

    def visit_Assign(self, node: ast.Assign) -> None:
        """Follow a library to its shorter name, as in ``library, judge = open_clip(), other``."""
        for target in node.targets:
            is_tuple = isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
            pairs = (
                zip(target.elts, node.value.elts, strict=False)
                if is_tuple
                else [(target, node.value)]
            )
            for name, value in pairs:
                source = self.name(value)
                is_library = not isinstance(value, ast.Call) or source == "open_clip"
                if isinstance(name, ast.Name) and is_library and source.split(".")[0] in LOADERS:
                    self.origin[name.id] = source
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        self.judge(self.name(node.func), node)
        called = self.name(node.func)
        if called == "getattr" and self.name(node.args[0]).split(".")[0] in LOADERS:
            owner, attribute = self.name(node.args[0]), node.args[1]
            if isinstance(attribute, ast.Constant):
                self.judge(f"{owner}.{attribute.value}", None)
            else:
                self.risks.append(f"getattr({owner})")
        # A method of a model has no argument; a table's has an expression.
        if called == "eval" or called.endswith(".eval") and node.args:
            self.risks.append("eval")
        self.risks += ["compile"] if called == "compile" else []
        for word in node.keywords:
            is_safe = isinstance(word.value, ast.Constant) and word.value.value is ONLY.get(
                word.arg or ""
            )
            self.risks += [word.arg] if word.arg in ONLY and not is_safe else []
        if not isinstance(node.func, ast.Name):
            self.visit(node.func.value if isinstance(node.func, ast.Attribute) else node.func)
        for part in [*node.args, *node.keywords]:
            self.visit(part)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self.judge(self.name(node), None)
        self.visit(node.value)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self.judge(self.name(node), None)

    def judge(self, name: str, call: ast.Call | None) -> None:
        """Add a name that is risky, unless its call says what makes it safe."""
        parts = name.split(".")
        short = ".".join(parts[-2:])
        is_common = parts[-1] in COMMON and bool({*parts[:-1]} & LOADERS)
        for known in (short, parts[-1]):
            if call is not None and known in SAFE:
                key, value = SAFE[known]
                words = {word.arg: word.value for word in call.keywords}
                if isinstance(given := words.get(key), ast.Constant) and given.value is value:
                    return
        if parts[-1] in RISKY or is_common:
            self.risks.append(name if parts[-1] in ("import_module", "find_spec") else short)


def find_risks(source: str) -> list[str]:
    return Finder(source).risks


def places() -> Iterator[tuple[str, str]]:
    for folder in FOLDERS:
        for file in sorted((ROOT / folder).rglob("*.py")):
            for name in find_risks(file.read_text(encoding="utf-8")):
                yield str(file.relative_to(ROOT)), name


def test_every_place_that_could_run_code_is_known() -> None:
    assert dict(Counter(places())) == {place: number for place, (number, _) in KNOWN.items()}


@pytest.mark.parametrize(
    "source",
    [
        "transformers.AutoTokenizer.from_pretrained(folder)",
        "transformers.AutoModel.from_pretrained(folder, trust_remote_code=True)",
        "transformers.AutoModel.from_pretrained(folder, trust_remote_code=trust)",
        "transformers.AutoModel.from_pretrained(folder, **options)",
        "from transformers import AutoModel as A\nA.from_pretrained(folder)",
        "read = AutoConfig.from_pretrained",
        "transformers.AutoModel.from_config(config)",
        "transformers.pipeline('text-generation', folder)",
        "from transformers import pipeline",
        "diffusers.DiffusionPipeline.download(model)",
        "model(x, trust_remote_code=True)",
        "open_clip().tokenizer.HFTokenizer(name)",
        "open_clip().get_tokenizer(name)",
        "library = open_clip()\nlibrary.CustomTextCLIP(**cfg)",
        "library, other = open_clip(), 1\nlibrary.CLIP(**cfg)",
        "kind = open_clip().CoCa",
        "open_clip.create_model_and_transforms(name)",
        "timm.create_model(name)",
        "open_clip().factory.load_state_dict(path)",
        "open_clip().load_checkpoint(model, path, weights_only=False)",
        "torch.load(path)",
        "torch.load(path, weights_only=False)",
        "torch.load(path, None, pickle)",
        "import torch as t\nt.load(path)",
        "from torch import load",
        "getattr(torch, 'load')(path)",
        "getattr(transformers, name)(path)",
        "torch.jit.load(path)",
        "torch.hub.load(repository, name)",
        "torch.package.PackageImporter(path).load_pickle\nimport pickle",
        "import numpy as np\nnp.load(path)",
        "import numpy as np\nnp.load(path, allow_pickle=True)",
        "import pickle",
        "from pickle import loads",
        "import joblib",
        "import pandas as pd\npd.read_pickle(path)",
        "table.eval(text)",
        "eval(text)",
        "exec(text)",
        "compile(text, '', 'exec')",
        "__import__(name)",
        "importlib.import_module(name)",
        "from importlib import import_module as load",
        "importlib.util.spec_from_file_location(name, path)",
        "runpy.run_path(path)",
        "yaml.load(text, Loader=yaml.Loader)",
        "yaml.unsafe_load(text)",
        "jinja2.Template(text)",
        "environment.from_string(text)",
        "tokenizer.apply_chat_template(messages)",
        "os.system(text)",
        "subprocess.run(text, shell=True)",
        "ctypes.CDLL(path)",
        "spacy.load(name)",
        "datasets.load_dataset(name)",
    ],
)
def test_a_new_place_is_found(source: str) -> None:
    assert find_risks(source)


@pytest.mark.parametrize(
    "source",
    [
        "transformers.AutoModel.from_pretrained(folder, trust_remote_code=False)",
        "torch.load(path, map_location='cpu', weights_only=True)",
        "import numpy as np\nnp.load(path, allow_pickle=False)",
        "yaml.safe_load(text)",
        "json.load(file)",
        "model.eval()",
        "re.compile(text)",
        "from compclip.clip.tokens import get_tokenizer\nget_tokenizer(cfg)",
        "model.load_state_dict(state)",
        "getattr(module, name)",
        "pipeline(texts)",
    ],
)
def test_what_is_safe_is_not_found(source: str) -> None:
    assert not find_risks(source)
