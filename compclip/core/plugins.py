"""Find dataset sources and generators: modules whose names are the config's, with ``Settings`` as
their sections.
"""

import ast
import importlib
import inspect
from functools import cache
from pkgutil import iter_modules
from types import FunctionType, ModuleType
from typing import Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from compclip.core.documents import nearest
from compclip.core.errors import UserError, one_line, require
from compclip.core.section import Section

M = TypeVar("M", bound=BaseModel)


# Of each function that a module may define, the number of arguments that are passed by position.
ARGUMENTS = {"generate": 3, "load": 1, "fingerprint": 2, "preview": 2}


class Interface(BaseModel):
    """What the modules of a folder define: a field for each name, with its type, and a default if
    it is optional.

    Any other public name that a module does not use itself is refused, since nothing would read it:
    it is misspelled.
    """

    model_config = Section.model_config | ConfigDict(strict=True, arbitrary_types_allowed=True)

    Settings: type[Section]

    @classmethod
    def of(cls, module: ModuleType) -> Self:
        """Return what a module defines; UserError names what is unknown, missing or of a wrong
        type.
        """
        nodes = list(ast.walk(ast.parse(inspect.getsource(module))))
        imported = {node.asname or node.name for node in nodes if isinstance(node, ast.alias)}
        read = {
            node.id
            for node in nodes
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
        }
        unread = {
            name for name in vars(module).keys() - imported - read if not name.startswith("_")
        }
        names = {*cls.model_fields, *unread}
        defined = {key: value for key, value in vars(module).items() if key in names}
        for key, value in defined.items():
            if key in ARGUMENTS and inspect.isfunction(value):
                takes = (
                    f"{key}: expected a function of {ARGUMENTS[key]} positional arguments "
                    "that returns its result"
                )
                require(_takes(value, ARGUMENTS[key]), module.__name__, takes, "correct it")
        return validated(cls, defined, module.__name__)


def _takes(function: FunctionType, number: int) -> bool:
    """Return whether a function takes ``number`` arguments by position, and returns its result when
    it is called.
    """
    arguments = inspect.getfullargspec(function)
    least = len(arguments.args) - len(arguments.defaults or ())
    can_take = least <= number and (arguments.varargs or number <= len(arguments.args))
    is_lazy = inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function)
    return bool(can_take) and not is_lazy


@cache
def available(package: str) -> tuple[str, ...]:
    """Return the names of the modules in ``package``, sorted."""
    folder = importlib.import_module(package).__path__
    return tuple(
        sorted(module.name for module in iter_modules(folder) if not module.name.startswith("_"))
    )


def unknown(package: str, name: str) -> str:
    """Return an error for an unknown module ``name`` of ``package``, "" if the module exists."""
    known = available(package)
    return (
        ""
        if name in known
        else f"unknown {name!r}; {nearest(name, known)}allowed: {', '.join(known)}"
    )


def load(package: str, name: str) -> ModuleType:
    """Import the module ``package.name``; raises UserError with the available names if there is
    none.
    """
    fault = unknown(package, name)
    require(not fault, package.split(".", 1)[1], fault)
    try:
        return importlib.import_module(f"{package}.{name}")
    except Exception as error:  # a module may raise anything
        raise UserError(
            f"{package}.{name}: cannot be imported ({one_line(error)}); correct it"
        ) from error


def settings(kind: Any, values: dict[str, Any], where: str = "settings") -> Any:
    """Return ``values`` as the ``Settings`` of a kind; UserError names the first faulty key."""
    return validated(kind.Settings, values, where)


def validated(model: type[M], values: dict[str, Any], where: str) -> M:
    """Return ``values`` as a model; UserError names the first faulty key."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"]))
        allowed = ", ".join(model.model_fields) or "none"
        fault = first["msg"].removeprefix("Value error, ")
        if first["type"] == "extra_forbidden":
            fault = f"unknown name; {nearest(key, model.model_fields)}".rstrip("; ")
        raise UserError(f"{where}: {key}: {fault}; allowed keys: {allowed}") from None
