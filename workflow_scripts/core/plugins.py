"""Things found by their name in a folder: dataset sources, generators.

A new one is a new file: its name is the config's word for it, its ``Settings`` are its config.
"""

from __future__ import annotations

import importlib
from functools import cache
from types import ModuleType

from workflow_scripts.core.code import module_file
from workflow_scripts.core.errors import UserError


@cache
def available(package: str) -> tuple[str, ...]:
    """The names of the modules in ``package``, sorted."""
    folder = module_file(package)
    assert folder is not None, package
    return tuple(sorted(p.stem for p in folder.parent.glob("*.py") if not p.stem.startswith("_")))


def load(package: str, name: str) -> ModuleType:
    """The module ``package.name``; UserError, with what there is, where there is none."""
    if name not in available(package):
        raise UserError(f"{package.split('.', 1)[1]}: unknown {name!r}; allowed: {', '.join(available(package))}")
    return importlib.import_module(f"{package}.{name}")
