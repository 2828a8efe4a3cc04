"""Which of the project's own files a module runs, and a hash of them.

A rule carries the hash as a param, so that an edit of a step, or of anything it imports, reruns the rule,
and the times of a fresh clone do not.
"""

from __future__ import annotations

import ast
import hashlib
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "workflow_scripts"


def module_file(module: str) -> Path | None:
    """The file of a dotted name below ``workflow_scripts``; None where the name is no module."""
    path = ROOT.joinpath(*module.split("."))
    if path.is_dir():
        return path / "__init__.py"
    return path.with_suffix(".py") if path.with_suffix(".py").is_file() else None


@cache
def _imports(module: str) -> tuple[str, ...]:
    file = module_file(module)
    if file is None:
        raise ModuleNotFoundError(f"{module}: no such module in {PACKAGE}")
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            # `from package import module` names a module; `from module import name` does not.
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        for name in names:
            if name.split(".")[0] == PACKAGE and module_file(name):
                found.add(name)
    return tuple(sorted(found))


def modules_of(*modules: str) -> list[str]:
    """The modules, and every module of the project that they import, directly or not; sorted.

    Raises ModuleNotFoundError for a name that is no module of the project.
    """
    seen: set[str] = set()
    queue = list(modules)
    while queue:
        module = queue.pop()
        if module not in seen:
            seen.add(module)
            queue.extend(_imports(module))
    return sorted(seen)


def files_of(*modules: str) -> list[str]:
    """The files of ``modules_of``, relative to the project, without empty ``__init__.py``."""
    files = (module_file(module) for module in modules_of(*modules))
    return sorted(str(f.relative_to(ROOT)) for f in files if f is not None and f.stat().st_size)


_hashed: dict[str, tuple[str, ...]] = {}


def hashed_modules(value: str) -> tuple[str, ...]:
    """The modules that ``code_hash`` was asked for when it gave ``value``; none for another value."""
    return _hashed.get(value, ())


@cache
def code_hash(*modules: str) -> str:
    """16 hex digits over the names and contents of ``files_of(*modules)``."""
    digest = hashlib.blake2b(digest_size=8)
    for file in files_of(*modules):
        digest.update(file.encode() + b"\0" + (ROOT / file).read_bytes() + b"\0")
    value = digest.hexdigest()
    _hashed[value] = modules
    return value
