"""Write the reference of the config from its models: the JSON schema and docs/config.md."""

from __future__ import annotations

import json
from collections.abc import Iterator
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from workflow_scripts.core import cli, plugins
from workflow_scripts.core.code import ROOT
from workflow_scripts.core.io import write_text
from workflow_scripts.core.section import Section
from workflow_scripts.core.step import Step
from workflow_scripts.generate.config import KINDS
from workflow_scripts.workflow.config import Config

SCHEMA = ROOT / "schemas" / "config.schema.json"
PAGE = ROOT / "docs" / "config.md"
HEAD = """# The config

<!-- Generated from the models by `make reference`; edit the models in workflow_scripts/*/config.py instead. -->

A config is a YAML file. It is laid over the defaults below; `config.yaml` is the default run and is not a base for your
own. Unknown keys and wrong values are refused with one line that names the key. Editors that know JSON schemas can use
`schemas/config.schema.json`.
"""
BOUNDS = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<", "min_length": "length ≥"}


class Reference(Step):
    """Write schemas/config.schema.json and docs/config.md from the config's models."""


def schema_text() -> str:
    """Return the JSON schema of the config."""
    return json.dumps(Config.model_json_schema(), indent=2) + "\n"


def _type(kind: Any) -> str:
    """Return a type in words: ``number``, ``a list of text``, the values of a Literal."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _type(inner[0])
    if origin is Literal:
        return " or ".join(f"`{value}`" for value in inner)
    if origin in (Union, UnionType):
        return " or ".join(dict.fromkeys(_type(option) for option in inner if option is not NoneType)) + (
            " or null" if NoneType in inner else ""
        )
    if origin in (list, tuple):
        return "list of " + " and ".join(dict.fromkeys(_type(item) for item in inner if item is not Ellipsis))
    if origin is dict:
        return f"mapping to {_type(inner[1])}"
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return "section"
    return {"int": "integer", "float": "number", "bool": "true or false", "str": "text", "Path": "path"}.get(
        getattr(kind, "__name__", ""), "any value"
    )


def _bounds(field: FieldInfo) -> str:
    """Return the range of a field."""
    limits = [
        f"{sign} {getattr(mark, name)}"
        for mark in field.metadata
        for name, sign in BOUNDS.items()
        if hasattr(mark, name)
    ]
    return ", ".join(limits)


def _default(field: FieldInfo) -> str:
    """Return the default of a field as YAML would show it."""
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True) if field.default_factory else field.default
    if value is PydanticUndefined or isinstance(value, BaseModel):
        return ""
    if isinstance(value, list) and value and isinstance(value[0], BaseModel):
        value = [item.model_dump(exclude_defaults=True) for item in value]
    return f"`{json.dumps(value, default=str, ensure_ascii=False)}`"


def _sections(kind: Any) -> list[type[Section]]:
    """Return the sections that a type consists of."""
    if isinstance(kind, type) and issubclass(kind, Section):
        return [kind]
    return [section for inner in get_args(kind) for section in _sections(inner)]


def _rows(model: type[BaseModel]) -> Iterator[str]:
    for name, field in model.model_fields.items():
        words = [_type(field.annotation), _bounds(field)]
        allowed = ", ".join(word for word in words if word)
        cells = (f"`{name}`", _default(field), allowed, field.description or "")
        yield "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def _table(title: str, model: type[BaseModel], level: int) -> Iterator[str]:
    """Yield the lines of a section's table and of the sections inside it."""
    yield f"\n{'#' * level} {title}\n"
    if model.__doc__ and level > 1:
        yield " ".join(model.__doc__.split()) + "\n"
    yield "| key | default | allowed | meaning |\n|---|---|---|---|"
    yield from _rows(model)
    for name, field in model.model_fields.items():
        for section in _sections(field.annotation):
            inner = name if model is Config else f"{title.strip('`')}.{name}"
            yield from _table(f"`{inner}`", section, min(level + 1, 4))


def page_text() -> str:
    """Return docs/config.md."""
    lines = [HEAD.rstrip(), *_table("Top level", Config, 2)]
    lines.append(
        "\n## Kinds of generators\n\nThe settings of an entry of `generate.generators`, beside `name` and `kind`."
    )
    for kind in plugins.available(KINDS):
        settings = plugins.load(KINDS, kind).Settings
        if settings.model_fields:
            lines += _table(f"`{kind}`", settings, 3)
    return "\n".join(lines) + "\n"


def main(step: Reference) -> None:
    write_text(schema_text(), SCHEMA)
    write_text(page_text(), PAGE)


if __name__ == "__main__":
    cli.run(main)
