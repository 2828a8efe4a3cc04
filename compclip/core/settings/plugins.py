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

from compclip.core.errors import UserError, one_line, require
from compclip.core.reading.documents import nearest
from compclip.core.settings.section import Section

M = TypeVar("M", bound=BaseModel)


# Of each function that a module may define, the number of arguments that are passed by position.
ARGUMENTS = {"generate": 3, "load": 1, "fingerprint": 2, "preview": 2, "open_chooser": 2}


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
        # Names that the module imports or reads itself need not be known to compclip.
        used = _used_names(module)
        unused = {name for name in vars(module).keys() - used if not name.startswith("_")}
        names = {*cls.model_fields, *unused}
        defined = {key: value for key, value in vars(module).items() if key in names}
        for key, value in defined.items():
            if key in ARGUMENTS and inspect.isfunction(value):
                number = ARGUMENTS[key]
                expected = f"a function of {number} positional arguments that returns its result"
                is_right = _takes(value, number)
                require(is_right, module.__name__, f"{key}: expected {expected}", "correct it")
        return validated(cls, defined, module.__name__)


def _used_names(module: ModuleType) -> set[str]:
    """Return the names that a module imports or reads."""
    names = set()
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.alias):
            names.add(node.asname or node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            names.add(node.id)
    return names


def _takes(function: FunctionType, number: int) -> bool:
    """Return whether a function takes ``number`` arguments by position, and returns its result when
    it is called.
    """
    arguments = inspect.getfullargspec(function)
    required = len(arguments.args) - len(arguments.defaults or ())
    can_take = required <= number and (arguments.varargs or number <= len(arguments.args))
    is_lazy = inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function)
    return bool(can_take) and not is_lazy


@cache
def available(package: str) -> tuple[str, ...]:
    """Return the names of the modules in ``package``, sorted."""
    folder = importlib.import_module(package).__path__
    names = [module.name for module in iter_modules(folder)]
    return tuple(sorted(name for name in names if not name.startswith("_")))


def unknown(package: str, name: str) -> str:
    """Return an error for an unknown module ``name`` of ``package``, "" if the module exists."""
    names = available(package)
    if name in names:
        return ""
    return f"unknown {name!r}; {nearest(name, names)}allowed: {', '.join(names)}"


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
