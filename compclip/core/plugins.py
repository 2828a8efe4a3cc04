"""Find dataset sources and generators: modules whose names are the config's, with ``Settings`` as their sections."""

import importlib
from functools import cache
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

from pydantic import ValidationError

from compclip.core.documents import nearest
from compclip.core.errors import UserError, require


@cache
def available(package: str) -> tuple[str, ...]:
    """Return the names of the modules in ``package``, sorted."""
    folder = importlib.import_module(package).__path__
    return tuple(sorted(module.name for module in iter_modules(folder) if not module.name.startswith("_")))


def unknown(package: str, name: str) -> str:
    """Return an error for an unknown module ``name`` of ``package``, "" if the module exists."""
    known = available(package)
    return "" if name in known else f"unknown {name!r}; {nearest(name, known)}allowed: {', '.join(known)}"


def load(package: str, name: str) -> ModuleType:
    """Import the module ``package.name``; raises UserError with the available names if there is none."""
    fault = unknown(package, name)
    require(not fault, package.split(".", 1)[1], fault)
    return importlib.import_module(f"{package}.{name}")


def settings(module: ModuleType, values: dict[str, Any], where: str = "settings") -> Any:
    """Return ``values`` as the module's ``Settings``; UserError names the first faulty key."""
    try:
        return module.Settings.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"]))
        allowed = ", ".join(module.Settings.model_fields) or "none"
        fault = first["msg"].removeprefix("Value error, ")
        raise UserError(f"{where}: {key}: {fault}; allowed keys: {allowed}") from None
