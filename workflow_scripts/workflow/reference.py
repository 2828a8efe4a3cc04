"""Write docs/config.md from the models of the config; on demand, their JSON schema for editors."""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, Field
from pydantic.fields import FieldInfo

from compclip.core.artifacts.files import write_text
from compclip.core.identity.code import ROOT
from compclip.core.settings import cli, plugins
from compclip.core.settings.cli import Command
from compclip.core.settings.section import sections_in
from compclip.generate.config import Generator
from compclip.generate.generator import GENERATOR_KINDS
from compclip.judge.chooser import JUDGE_KINDS
from workflow_scripts.workflow.config import Config

PAGE = ROOT / "docs" / "config.md"
REFERENCE_HEAD = """# The config

<!-- Generated from the models in compclip/*/config.py by `make reference`; edit those instead. -->

A config is a YAML file:

```yaml
dataset: {source: table, name: mine, table: {file: captions.csv, images: photographs}}
judge: {seeds: [0, 1, 2]}
```

It is laid over the defaults below or, if it names a `base`, over that config: with
`base: config.yaml` it says what differs from the default run, whose judge and generators suit drawn
birds alone. An unknown key or a wrong value is an error of one line. A key may be null if its
default is. Integers without a range are at least 1.
`python -m workflow_scripts.workflow.reference --schema config.schema.json` writes a JSON schema for
editors.
"""
BAR = r"\|"  # in a table
# bounds of JSON schemas in words
BOUNDS = {
    "minimum": "≥ {:g}",
    "exclusiveMinimum": "> {:g}",
    "maximum": "≤ {:g}",
    "exclusiveMaximum": "< {:g}",
}
# Higher maxima only catch mistyped numbers.
MAX_SHOWN = {"number": 1, "integer": 999}
NUMERALS = {2: "two", 3: "three"}


class Reference(Command):
    """Write docs/config.md from the models of the config, or their JSON schema."""

    schema_file: Path | None = Field(
        None, alias="schema", description="write the JSON schema to this file instead"
    )


@dataclass(frozen=True)
class ShownSection:
    """A section of the page: its dotted name, its model, and the level of its heading."""

    name: str
    model: type[BaseModel]
    level: int

    @property
    def link(self) -> str:
        """The link to the heading, with the anchor that GitHub and mkdocs make of it."""
        return f"[`{self.name}`](#{self.name.replace('.', '')})"

    def lists(self, name: str, field: FieldInfo) -> bool:
        """Whether a key of this section has the name, the type and the meaning of ``field``."""
        same = self.model.model_fields.get(name)
        return (
            same is not None
            and same.annotation == field.annotation
            and same.description == field.description
        )


def _type_in_words(schema: dict[str, Any]) -> str:
    """Return the type and the range of a value in words, such as ``number > 0``, or the values of
    a Literal; "" for any text or boolean, which the default and the meaning show.
    """
    if "anyOf" in schema:
        options = [option for option in schema["anyOf"] if option.get("type") != "null"]
        words = [_type_in_words(option) for option in options]
        return " or ".join(dict.fromkeys(word or "text" for word in words)) if any(words) else ""
    if "$ref" in schema:
        return "section"
    if "const" in schema:
        return f"`{schema['const']}`"
    if "enum" in schema:
        *first, last = [f"`{value}`" for value in schema["enum"]]
        return f"{', '.join(first)} or {last}" if first else last
    kind = schema.get("type", "any value")
    if kind in ("string", "boolean"):
        return ""
    if kind == "array":
        return _list_in_words(schema)
    if kind == "object":
        # values of keys with a pattern are elsewhere; true stands for any value
        values = schema.get("additionalProperties")
        for pattern_values in schema.get("patternProperties", {}).values():
            values = pattern_values
        return f"mapping to {_item_in_words(values if isinstance(values, dict) else {})}"
    return f"{kind} {_range_in_words(schema)}".rstrip()


def _range_in_words(schema: dict[str, Any]) -> str:
    """Return the range of a number in words: ``from 0 to 1``, or its bounds."""
    largest = MAX_SHOWN.get(schema.get("type", ""), 0)
    bounds = {
        name: schema[name]
        for name in BOUNDS
        if name in schema and (not name.lower().endswith("maximum") or schema[name] <= largest)
    }
    if bounds.keys() == {"minimum", "maximum"}:
        return f"from {bounds['minimum']:g} to {bounds['maximum']:g}"
    # The page's first paragraph says so.
    if schema.get("type") == "integer" and bounds in ({"minimum": 1}, {"exclusiveMinimum": 0}):
        return ""
    return " and ".join(BOUNDS[name].format(bound) for name, bound in bounds.items())


def _item_in_words(schema: dict[str, Any]) -> str:
    """Return the type of a value inside a list or mapping in words."""
    return _type_in_words(schema) or "text"


def _list_in_words(schema: dict[str, Any]) -> str:
    """Return the type of a list in words, such as ``two numbers``."""
    # A tuple has prefixItems, a list items.
    items = schema.get("prefixItems", [schema.get("items", {})])
    item, _, bounds = _item_in_words(items[0]).partition(" ")
    if item in ("integer", "number"):
        item += "s"
    count = schema.get("minItems", 0)
    is_fixed = 0 < count == schema.get("maxItems")
    start = NUMERALS[count] if is_fixed else "list of"
    return f"{start} {item} {bounds}".rstrip()


def _as_written(value: Any) -> Any:
    """Return a default as a config would contain it: sections without their own defaults, and a
    generator as its name, if its kind has the same.
    """
    if isinstance(value, list):
        return [_as_written(item) for item in value]
    if not isinstance(value, BaseModel):
        return str(value) if isinstance(value, Path) else value
    settings = value.model_dump(exclude_defaults=True)
    if isinstance(value, Generator) and settings == {"name": value.name, "kind": value.name}:
        return value.name
    return settings


def _default(field: FieldInfo) -> str:
    """Return the default of a field as YAML shows it."""
    if field.is_required():
        return "required"
    default = field.get_default(call_default_factory=True)
    value = _as_written(default)
    # A section has a table of its own, with the defaults of its keys.
    if isinstance(default, BaseModel) and not value:
        return ""
    text = yaml.safe_dump(value, default_flow_style=True, width=math.inf, allow_unicode=True)
    # After a single value, YAML marks the end of the document.
    text = text.removesuffix("...\n").strip()
    # Defaults may be files of the checkout; the page is the same in every checkout.
    return f"`{text.replace(f'{ROOT}/', '')}`"


def _sections(name: str, model: type[BaseModel], level: int) -> Iterator[ShownSection]:
    """Yield a section and the sections inside it."""
    yield ShownSection(name, model, level)
    for key, field in model.model_fields.items():
        inner_name = key if model is Config else f"{name}.{key}"
        for section in sections_in(field.annotation):
            yield from _sections(inner_name, section, min(level + 1, 4))


def _wider(shown: ShownSection, sections: Sequence[ShownSection]) -> ShownSection | None:
    """Return the section that has all keys of another one, or the first of equal ones, if it is
    not the other one itself.
    """
    fields = shown.model.model_fields.items()
    same = [
        section for section in sections if all(section.lists(name, field) for name, field in fields)
    ]
    widest = max(same, key=lambda section: len(section.model.model_fields))
    return None if widest is shown else widest


def _reference(shown: ShownSection, wider: ShownSection) -> str:
    """Return one paragraph in place of a table: the section with the same keys, and in what they
    differ.
    """
    fields = shown.model.model_fields
    missing = [f"`{name}`" for name in wider.model.model_fields if name not in fields]
    text = f"The keys of {wider.link}"
    if missing:
        text += f", without {', '.join(missing)}"
    defaults = {name: _default(field).strip("`") for name, field in fields.items()}
    other = [
        f"`{name}: {default}`"
        for name, default in defaults.items()
        if default != _default(wider.model.model_fields[name]).strip("`")
    ]
    if other:
        text += f". Other defaults: {', '.join(other)}"
    return f"{text}."


def _table(model: type[BaseModel]) -> Iterator[str]:
    """Yield the lines of a section's table."""
    yield "| key | default | meaning |\n|---|---|---|"
    schemas = model.model_json_schema()["properties"]
    for name, field in model.model_fields.items():
        default = _default(field)
        meaning = field.description or ""
        # Its own heading and table say all of it.
        if not default and not meaning:
            continue
        type_in_words = _type_in_words(schemas[name])
        if type_in_words and meaning:
            mark = ";" if ":" in meaning else ":"
            meaning = f"{type_in_words}{mark} {meaning}"
        cells = [f"`{name}`", default, meaning or type_in_words]
        yield f"| {' | '.join(cell.replace('|', BAR) for cell in cells)} |"


def _lines(sections: Sequence[ShownSection], earlier: Sequence[ShownSection] = ()) -> Iterator[str]:
    """Yield the lines of sections: heading, text, and a table or a link to one with the same keys,
    which may be an ``earlier`` one.
    """
    referring: list[str] = []
    for shown in sections:
        # What is inside a section with the keys of another one is there, too.
        if any(shown.name.startswith(f"{name}.") for name in referring):
            continue
        title = "Top level" if shown.model is Config else f"`{shown.name}`"
        yield f"\n{'#' * shown.level} {title}\n"
        if shown.model.__doc__:
            yield " ".join(shown.model.__doc__.split()) + "\n"
        wider = _wider(shown, [*sections, *earlier])
        if wider:
            referring.append(shown.name)
            yield _reference(shown, wider)
        else:
            yield from _table(shown.model)


def page_text() -> str:
    """Return docs/config.md."""
    config_sections = [*_sections("", Config, 2)]
    lines = [REFERENCE_HEAD.rstrip(), *_lines(config_sections)]
    for title, key, package in (
        ("Kinds of judges", "judges", JUDGE_KINDS),
        ("Kinds of generators", "generate.generators", GENERATOR_KINDS),
    ):
        lines.append(
            f"\n## {title}\n\nThe settings of an entry of `{key}`, beside `name` and `kind`."
        )
        for kind in plugins.available(package):
            settings = plugins.load(package, kind).Settings
            # Many kinds have no settings of their own.
            if settings.model_fields:
                lines += _lines([*_sections(kind, settings, 3)], config_sections)
    return "\n".join(lines) + "\n"


def main(command: Reference) -> None:
    if command.schema_file:
        write_text(json.dumps(Config.model_json_schema(), indent=2) + "\n", command.schema_file)
    else:
        write_text(page_text(), PAGE)


if __name__ == "__main__":
    cli.run(main)
