"""Write docs/config.md from the models of the config; on demand, their JSON schema for editors."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field
from pydantic.fields import FieldInfo

from compclip.core.artifacts.files import write_text
from compclip.core.identity.code import ROOT
from compclip.core.settings import cli, plugins
from compclip.core.settings.cli import Command
from compclip.core.settings.section import sections_in
from compclip.generate.generator import GENERATOR_KINDS, load_kind
from workflow_scripts.workflow.config import Config

PAGE = ROOT / "docs" / "config.md"
REFERENCE_HEAD = """# The config

<!-- Generated from the models in compclip/*/config.py by `make reference`; edit those instead. -->

A config is a YAML file. It is laid over the defaults below or, if it names a `base`, over that
config: `base: config.yaml` says what differs from the default run, whose judge and generators suit
drawn birds alone. Unknown keys and wrong values are refused with one line that names the
key. For editors that know JSON schemas,
`python -m workflow_scripts.workflow.reference --schema config.schema.json` writes one.
"""
BAR = r"\|"  # in a table
# types and bounds of JSON schemas in words
TYPES = {"boolean": "true or false", "string": "text"}
BOUNDS = {
    "minimum": "≥ {:g}",
    "exclusiveMinimum": "> {:g}",
    "maximum": "≤ {:g}",
    "exclusiveMaximum": "< {:g}",
    "minLength": "of length ≥ {}",
    "minItems": "with ≥ {} items",
    "maxItems": "≤ {} items",
}


class Reference(Command):
    """Write docs/config.md from the models of the config, or their JSON schema."""

    schema_file: Path | None = Field(
        None, alias="schema", description="write the JSON schema to this file instead"
    )


def _type_in_words(schema: dict[str, Any]) -> str:
    """Return the type and the range of a value in words: ``number > 0``, ``list of text``, the
    values of a Literal.
    """
    if "anyOf" in schema:
        # Different options may have the same words: all sections are "section".
        options = map(_type_in_words, schema["anyOf"])
        return " or ".join(dict.fromkeys(options))
    if "$ref" in schema:
        return "section"
    if "const" in schema:
        return f"`{schema['const']}`"
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    kind = schema.get("type", "any value")
    words = TYPES.get(kind, kind)
    if kind == "array":
        # A tuple has prefixItems, a list items.
        items = schema.get("prefixItems", [schema.get("items", {})])
        words = "list of " + " and ".join(dict.fromkeys(map(_type_in_words, items)))
    elif kind == "object":
        # values of keys with a pattern are elsewhere; true stands for any value
        values = schema.get("additionalProperties")
        for pattern_values in schema.get("patternProperties", {}).values():
            values = pattern_values
        words = f"mapping to {_type_in_words(values if isinstance(values, dict) else {})}"
    bounds = [bound.format(schema[name]) for name, bound in BOUNDS.items() if name in schema]
    return " ".join([words, " and ".join(bounds)]).rstrip()


def _default(field: FieldInfo) -> str:
    """Return the default of a field as YAML would show it."""
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    # A section has a table of its own, with the defaults of its keys.
    if isinstance(value, BaseModel):
        return ""
    if isinstance(value, list):
        value = [
            item.model_dump(exclude_defaults=True) if isinstance(item, BaseModel) else item
            for item in value
        ]
    text = json.dumps(value, default=str, ensure_ascii=False)
    # Defaults may be files of the checkout; the page is the same in every checkout.
    return f"`{text.replace(f'{ROOT}/', '')}`"


def _table(title: str, model: type[BaseModel], level: int) -> Iterator[str]:
    """Yield the lines of a section's table and of the sections inside it."""
    yield f"\n{'#' * level} {title}\n"
    if model.__doc__:
        yield " ".join(model.__doc__.split()) + "\n"
    yield "| key | default | allowed | meaning |\n|---|---|---|---|"
    schemas = model.model_json_schema()["properties"]
    for name, field in model.model_fields.items():
        type_in_words = _type_in_words(schemas[name])
        cells = [f"`{name}`", _default(field), type_in_words, field.description or ""]
        yield f"| {' | '.join(cell.replace('|', BAR) for cell in cells)} |"
    # The sections follow, so that the table of their parent stays in one piece.
    for name, field in model.model_fields.items():
        inner_title = name if model is Config else f"{title.strip('`')}.{name}"
        for section in sections_in(field.annotation):
            yield from _table(f"`{inner_title}`", section, min(level + 1, 4))


def page_text() -> str:
    """Return docs/config.md."""
    lines = [REFERENCE_HEAD.rstrip(), *_table("Top level", Config, 2)]
    lines.append(
        "\n## Kinds of generators\n\nThe settings of an entry of `generate.generators`, beside "
        "`name` and `kind`."
    )
    for kind in plugins.available(GENERATOR_KINDS):
        settings = load_kind(kind).Settings
        # Many kinds have no settings of their own.
        if settings.model_fields:
            lines += _table(f"`{kind}`", settings, 3)
    return "\n".join(lines) + "\n"


def main(command: Reference) -> None:
    if command.schema_file:
        write_text(json.dumps(Config.model_json_schema(), indent=2) + "\n", command.schema_file)
    else:
        write_text(page_text(), PAGE)


if __name__ == "__main__":
    cli.run(main)
