"""Declare a step once: its inputs, outputs and settings, from which its command line and its rule's command follow.

A stage declares the steps that rules run in its ``steps.py``, a class each: ``split.steps.SampleHeldout`` is what rule
``sample_heldout`` passes to ``main`` of ``split/sample_heldout.py``. Command lines are parsed by pydantic-settings,
because the settings are pydantic models already: one validation, one set of descriptions and messages, and a section of
the config as one JSON argument (what rules pass) or key by key (``--heldout.fraction 0.2``).
"""

import importlib
import inspect
import json
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.fields import FieldInfo
from pydantic_settings import CliApp, CliSuppress, SettingsError

from compclip.core.errors import UserError, require
from compclip.core.section import SECRET, Section

PACKAGE = "compclip"


@dataclass(frozen=True)
class Role:
    """Marks a path as the rule's input or output of the same name."""

    name: str


@dataclass(frozen=True)
class Key:
    """Marks a setting with its key in the config; a Section takes those of the key's settings that it declares.

    One that ``decides`` no output, because the step only checks it, reruns nothing when it changes.
    """

    path: str
    decides: bool = True


Input = Annotated[Path, Role("input")]
Output = Annotated[Path, Role("output")]
Seed = Annotated[int, Key("seed"), Field(0, ge=0, description="seed of every random choice")]
# Each is `seed` unless the config sets it: to repeat a study with another choice of one thing alone.
WorldSeed = Annotated[int, Key("seeds.world"), Field(0, ge=0, description="seed of the drawn world")]
SplitSeed = Annotated[int, Key("seeds.split"), Field(0, ge=0, description="seed of held-out pairs, splits and swaps")]
HalvesSeed = Annotated[int, Key("seeds.halves"), Field(0, ge=0, description="seed of the half that judges have seen")]
Threads = Annotated[int, Key("threads"), Field(2, ge=1, description="threads; changes floating-point rounding")]
Cache = Annotated[Path, Key("cache"), Field(Path(".cache"), description="folder of what steps reuse between runs")]


class Step(BaseModel):
    """The base of all declarations."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())

    log: Path | None = Field(None, description="file for the log, tracebacks included")
    code: CliSuppress[str | None] = Field(None, description="identity of the code, for the records of the outputs")
    # The rule's paths that no other field takes, because the step finds them by their layout.
    also_reads: CliSuppress[list[Input]] = Field([], description="further inputs, which are checked")
    also_writes: CliSuppress[list[Output]] = Field([], description="further outputs, which are recorded")

    def paths(self, role: str) -> list[Path]:
        """Return the paths of all fields with a role, ``input`` or ``output``."""
        marks = {name: mark_of(field, Role) for name, field in type(self).model_fields.items()}
        values = [getattr(self, name) for name, mark in marks.items() if mark and mark.name == role]
        return [path for value in values if value for path in (value if isinstance(value, list) else [value])]


S = TypeVar("S", bound=Step)
M = TypeVar("M")


def _types(annotation: Any) -> Iterator[Any]:
    """Yield a type and everything inside it, metadata included."""
    yield annotation
    for inner in get_args(annotation):
        yield from _types(inner)


def mark_of(field: FieldInfo, kind: type[M]) -> M | None:
    """Return the mark of one kind on a field, if it has one."""
    return next((mark for mark in [*field.metadata, *_types(field.annotation)] if isinstance(mark, kind)), None)


def _section(field: FieldInfo) -> type[Section] | None:
    """Return the Section that a field holds, if it holds one."""
    return next((t for t in _types(field.annotation) if isinstance(t, type) and issubclass(t, Section)), None)


def declaration(name: str) -> type[Step]:
    """Return the class that declares step ``stage.module``; raises AttributeError if there is none."""
    stage, module = name.split(".")
    words = "".join(word.capitalize() for word in module.split("_"))
    return getattr(importlib.import_module(f"{PACKAGE}.{stage}.steps"), words)


def _setting(config: BaseModel, key: Key, field: FieldInfo) -> Any:
    """Return the value of a setting in ``config``, ready for JSON."""
    value: Any = config
    for part in key.path.split("."):
        value = getattr(value, part)
    if isinstance(value, BaseModel):
        section = _section(field)
        return value.model_dump(mode="json", include=set(section.model_fields) if section else None)
    return value


def _list(value: Any) -> list[str]:
    """Return a rule's path or paths of one name."""
    return [value] if isinstance(value, str) else list(value or [])


def _paths(paths: list[str], field: FieldInfo) -> Any:
    """Return a rule's paths as the field takes them: a list, or the only one."""
    if any(get_origin(t) is list for t in _types(field.annotation)):
        return paths
    require(len(paths) < 2, ", ".join(paths), f"expected one path, got {len(paths)}")
    return paths[0] if paths else None


def _rest(declared: Mapping[str, FieldInfo], paths: Mapping[str, Any], all_paths: str) -> list[str]:
    """Return the paths of a rule that no field takes of those under ``all_paths``."""
    names = [name for name, field in declared.items() if mark_of(field, Role) and name != all_paths]
    passed = {path for name in names for path in _list(paths.get(name))}
    return [path for path in _list(paths.get(all_paths)) if path not in passed]


def _words(name: str, value: Any) -> list[str]:
    """Return the words of a command line that pass ``value``; none if there is no value."""
    flag = name.replace("_", "-")
    if value is None or value == []:
        return []
    if isinstance(value, bool):
        return [f"--{flag}" if value else f"--no-{flag}"]
    if isinstance(value, list | tuple | dict):
        value = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    return [f"--{flag}", str(value)]


def command(
    name: str, config: BaseModel, inputs: Mapping[str, Any], outputs: Mapping[str, Any], given: Mapping[str, Any]
) -> str:
    """Return the arguments of ``python -m`` that run step ``stage.module``, quoted for a shell.

    Args:
        config: the checked config.
        inputs: the rule's inputs by name; under ``also_reads`` all of them, of which the rest is passed.
        outputs: the rule's outputs, likewise; under ``also_writes`` all of them.
        given: values of fields that are neither a path of the rule nor a key of the config.

    Raises:
        UserError: a required field has no value, or a field takes one path and the rule has several.
    """
    words = [f"{PACKAGE}.{name}"]
    declared = declaration(name).model_fields
    for field_name, field in declared.items():
        role, key = mark_of(field, Role), mark_of(field, Key)
        paths = {} if role is None else inputs if role.name == "input" else outputs
        if field_name in given:
            value = given[field_name]
        elif role and field_name in Step.model_fields:
            value = _rest(declared, paths, field_name)
        elif role:
            value = _paths(_list(paths.get(field_name)), field)
        else:
            value = _setting(config, key, field) if key else None
        require(value is not None or not field.is_required(), f"step {name}", f"its rule gives no {field_name}")
        words += _words(field_name, value)
    return shlex.join(words)


def settings(name: str, config: BaseModel, given: Mapping[str, Any]) -> str:
    """Return the arguments of step ``stage.module`` that are not the rule's paths and decide its outputs.

    Snakemake reruns a job for a changed param only if the param does not depend on the rule's inputs and outputs.
    """
    words = []
    for field_name, field in declaration(name).model_fields.items():
        key = mark_of(field, Key)
        if field_name in given:
            words += _words(field_name, given[field_name])
        elif key and key.decides:
            words += _words(field_name, _setting(config, key, field))
    return shlex.join(words)


def parse(declared: type[S], arguments: Sequence[str], program: str) -> S:
    """Return the step that a command line asks for; exits as argparse does for ``--help`` and unknown options.

    Raises:
        UserError: an option has a value that the step does not take.
    """
    sys.argv[0] = f"python -m {program}"
    declared.__doc__ = inspect.cleandoc(declared.__doc__ or "")
    try:
        return CliApp.run(declared, cli_args=list(arguments))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])).replace("_", "-")
        value = "" if first["type"] == SECRET else f", got {first['input']!r}"
        raise UserError(f"--{where}: {first['msg'].removeprefix('Value error, ')}{value}") from None
    except SettingsError as error:
        raise UserError(" ".join(str(error).split())) from None
