"""Identify the code that decides a result.

A rule carries the identity of its step as a param, so that Snakemake reruns it when the code that
decides its bytes changes. It covers the modules that the step reaches through the project's
imports, except those in ``UNDECISIVE``, as syntax trees without comments, docstrings, help texts,
log lines and texts of errors.
"""

import ast
import hashlib
import os
from functools import cache, partial
from pathlib import Path
from typing import Any

from compclip.core.identity.installation import shipped_folder
from compclip.core.identity.parsed_modules import ParsedModule, ParsedModules

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = "compclip"
# The packages that contain the code of a run.
OURS = (PACKAGE, "workflow_scripts", "benchmarks")
# These modules never affect an artifact's content.
UNDECISIVE = {
    f"{PACKAGE}.core.{name}"
    for name in (
        "artifacts.disk",
        "errors",
        "identity.code",
        "identity.digests",
        "identity.fingerprint",
        "identity.installation",
        "identity.parsed_modules",
        "log",
        "progress",
        "settings.cli",
    )
} | {"workflow_scripts.job"}

# Files that a module reads on import: their content is part of its code.
DATA = {f"{PACKAGE}.text.grammar": "lexicons/grammar.yaml"}


_parsed_modules = ParsedModules()


def keep_parsed(folder: Path) -> None:
    """Keep parsed modules in ``folder``, from which later processes read them."""
    _parsed_modules.keep_in(folder / "modules.json", Path(__file__).read_bytes())


def module_file(module: str) -> Path | None:
    """Return the file of a dotted name of the project, or None if it is not a module."""
    package, _, _ = module.partition(".")
    folder = ROOT if package == PACKAGE else shipped_folder(ROOT / PACKAGE)
    path = os.path.join(folder, *module.split("."))
    for file in (f"{path}/__init__.py", f"{path}.py"):
        if os.path.isfile(file):
            return Path(file)
    return None


class _Meaning(ast.NodeTransformer):
    """Removes code that does not change a result."""

    def _block(self, node: Any) -> ast.AST:
        if (
            node.body
            and isinstance(node.body[0], ast.Expr)
            and isinstance(node.body[0].value, ast.Constant)
        ):
            del node.body[0]
        return self.generic_visit(node)

    visit_Module = visit_ClassDef = visit_FunctionDef = _block

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        if isinstance(node.exc, ast.Call):
            node.exc.args = []
            node.exc.keywords = []
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Name) and node.func.id == "Field":
            node.keywords = [word for word in node.keywords if word.arg != "description"]
        return self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        is_log = isinstance(node.value, ast.Call) and ast.unparse(node.value.func).startswith(
            "log."
        )
        return None if is_log else self.generic_visit(node)


def _imported_names(tree: ast.Module) -> list[str]:
    """Return what a module imports of the project's packages, also inside functions: modules, and
    what is in them, by dotted names.
    """
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return sorted(name for name in names if name.split(".")[0] in OURS)


def _parse_file(module: str, file: Path) -> ParsedModule:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    names = _imported_names(tree)
    digest = hashlib.blake2b(
        f"{module}:{ast.dump(_Meaning().visit(tree))}".encode(), digest_size=16
    )
    if module in DATA:
        digest.update((shipped_folder(ROOT / PACKAGE) / DATA[module]).read_bytes())
    return ParsedModule(digest.hexdigest(), names)


@cache
def _parse(module: str) -> tuple[bytes, frozenset[str]]:
    """Return a digest of a module, and the modules that it imports and that may decide a result."""
    file = module_file(module)
    if file is None:
        raise ModuleNotFoundError(f"{module}: no such module in the checkout")
    parse = partial(_parse_file, module)
    # The index does not notice changes of other files.
    parsed = parse(file) if module in DATA else _parsed_modules.get(file, parse)
    imported = {name for name in parsed.names if module_file(name)}
    return bytes.fromhex(parsed.digest), frozenset(imported - UNDECISIVE)


@cache
def reached(*modules: str) -> frozenset[str]:
    """Return ``modules`` and the project's modules that they import, directly or indirectly.

    A module that does not exist raises ModuleNotFoundError.
    """
    seen: set[str] = set()
    pending = {*modules}
    while pending:
        seen |= pending
        imported = [_parse(module)[1] for module in pending]
        pending = set().union(*imported) - seen
    _parsed_modules.save()
    return frozenset(seen)


@cache
def code_hash(*modules: str, within: tuple[str, ...] = OURS) -> str:
    """Return 16 hex digits that identify the modules of ``reached(*modules)`` in the packages
    ``within``.

    The identity of costly results, such as weights, covers few packages, so changes elsewhere do
    not repeat them.
    """
    digest = hashlib.blake2b(digest_size=8)
    for module in sorted(reached(*modules)):
        if f"{module}.".startswith(tuple(f"{package}." for package in within)):
            digest.update(_parse(module)[0])
    return digest.hexdigest()
