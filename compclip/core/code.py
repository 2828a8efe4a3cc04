"""Identify the code that decides a result.

A rule carries the identity of its step as a param, so that Snakemake reruns it when the code that decides its bytes
changes, and only then. It covers the definitions that the step reaches through the project's imports, as syntax trees
without comments, docstrings, annotations of functions, help texts, log lines and texts of errors, and without the
modules in ``UNDECISIVE``.
"""

import ast
import hashlib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "compclip"
# The packages that a run's code is in.
OURS = (PACKAGE, "workflow_scripts", "benchmarks")
# These modules never affect an artifact's content.
UNDECISIVE = {
    f"{PACKAGE}.core.{name}" for name in ("cli", "code", "digests", "disk", "errors", "fingerprint", "log", "progress")
} | {"workflow_scripts.job", "workflow_scripts.lock"}

# Files that a module reads whenever it is imported: their content is part of its code.
DATA = {f"{PACKAGE}.text.grammar": "lexicons/grammar.yaml"}


def module_file(module: str) -> Path | None:
    """Return the file of a dotted name below the checkout, or None if it is not a module."""
    path = ROOT.joinpath(*module.split("."))
    if path.is_dir():
        return path / "__init__.py"
    return path.with_suffix(".py") if path.with_suffix(".py").is_file() else None


class _Meaning(ast.NodeTransformer):
    """Removes what does not change a result."""

    def _block(self, node: Any) -> ast.AST:
        if node.body and isinstance(node.body[0], ast.Expr) and isinstance(node.body[0].value, ast.Constant):
            del node.body[0]
        return self.generic_visit(node)

    visit_Module = visit_ClassDef = _block

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        for argument in ast.walk(node.args):
            if isinstance(argument, ast.arg):
                argument.annotation = None
        return self._block(node)

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        if isinstance(node.exc, ast.Call):
            node.exc.args, node.exc.keywords = [], []
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Name) and node.func.id == "Field":
            node.keywords = [word for word in node.keywords if word.arg != "description"]
        return self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        is_log = isinstance(node.value, ast.Call) and ast.unparse(node.value.func).startswith("log.")
        return None if is_log else self.generic_visit(node)


@dataclass(frozen=True)
class _Module:
    # Top-level statements by the names that they bind; "" for those that bind none.
    definitions: dict[str, list[ast.stmt]] = field(default_factory=dict)
    # Imported names: the module and the name in it, or None for the module itself.
    imports: dict[str, tuple[str, str | None]] = field(default_factory=dict)


def _bound(statement: ast.stmt) -> list[str]:
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return [statement.name]
    if isinstance(statement, ast.Assign | ast.AnnAssign):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        return [node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)] or [""]
    return [""]


def _imports(tree: ast.Module) -> dict[str, tuple[str, str | None]]:
    """Return what each imported name stands for, also of imports inside functions."""
    names: dict[str, tuple[str, str | None]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                names[alias.asname or alias.name.split(".")[0]] = (alias.name, None)
                if alias.name.startswith(OURS):
                    names[alias.name] = (alias.name, None)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                is_module = node.module.startswith(OURS) and module_file(inner)
                names[alias.asname or alias.name] = (inner, None) if is_module else (node.module, alias.name)
    return names


@cache
def _parse(module: str) -> _Module:
    file = module_file(module)
    if file is None:
        raise ModuleNotFoundError(f"{module}: no such module in the checkout")
    tree = ast.parse(file.read_text(encoding="utf-8"))
    parsed = _Module(imports=_imports(tree))
    for statement in _Meaning().visit(tree).body:
        is_main = isinstance(statement, ast.If) and ast.unparse(statement.test).startswith("__name__ ==")
        if not isinstance(statement, ast.Import | ast.ImportFrom | ast.Pass) and not is_main:
            for name in _bound(statement):
                parsed.definitions.setdefault(name, []).append(statement)
    return parsed


def _uses(node: ast.AST) -> dict[str, set[str | None]]:
    """Return the names that a statement uses, each with the attributes taken of it; None where it is used as is."""
    attribute_of = {}
    uses: dict[str, set[str | None]] = {}
    for inner in ast.walk(node):
        if isinstance(inner, ast.Attribute):
            attribute_of[id(inner.value)] = inner.attr
        elif isinstance(inner, ast.Name):
            uses.setdefault(inner.id, set()).add(attribute_of.get(id(inner)))
    return uses


@cache
def _definition(module: str, name: str) -> tuple[bytes, tuple[tuple[str, str | None], ...]]:
    """Return a digest of a definition, and what the names in it stand for: modules, with a name in each or None."""
    parsed = _parse(module)
    digest = hashlib.blake2b(f"{module}:{name}".encode(), digest_size=16)
    if module in DATA:
        # In a checkout beside the package, in an installed package inside it.
        places_of = (ROOT / DATA[module], ROOT / PACKAGE / DATA[module])
        digest.update(next(path for path in places_of if path.is_file()).read_bytes())
    places: list[tuple[str, str | None]] = []
    for statement in parsed.definitions[name]:
        digest.update(ast.dump(statement).encode())
        for used, attributes in sorted(_uses(statement).items()):
            if used in parsed.definitions:
                places.append((module, used))
            elif used in parsed.imports:
                target, inner = parsed.imports[used]
                digest.update(f"{used}={target}:{inner}".encode())
                places += [(target, inner or attribute) for attribute in attributes]
    return digest.digest(), tuple(p for p in places if p[0].startswith(OURS) and p[0] not in UNDECISIVE)


@cache
def reached(*targets: str) -> frozenset[tuple[str, str]]:
    """Return the definitions that decide ``targets``, as pairs of module and name; "" stands for loose statements.

    A target is a dotted module (all that it defines), or ``module:name``. One that does not exist raises
    ModuleNotFoundError or AttributeError.
    """
    seen: set[tuple[str, str]] = set()
    queue: list[tuple[str, str | None]] = []
    for target in targets:
        module, _, name = target.partition(":")
        if name and name not in _parse(module).definitions:
            raise AttributeError(f"{module} does not define {name}")
        queue.append((module, name or None))
    while queue:
        module, wanted = queue.pop()
        parsed = _parse(module)
        for name in [*parsed.definitions] if wanted is None else [wanted, ""]:
            if name in parsed.definitions:
                if (module, name) not in seen:
                    seen.add((module, name))
                    queue.extend(_definition(module, name)[1])
            elif name in parsed.imports and parsed.imports[name][0].startswith(OURS):  # imported from there
                queue.append(parsed.imports[name])
    return frozenset(seen)


@cache
def code_hash(*targets: str) -> str:
    """Return 16 hex digits over ``reached(*targets)``."""
    digest = hashlib.blake2b(digest_size=8)
    for module, name in sorted(reached(*targets)):
        digest.update(_definition(module, name)[0])
    return digest.hexdigest()
