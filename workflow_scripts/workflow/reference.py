"""Write what docs/ has from the code: the config's reference and JSON schema, the command lines, the artifacts."""

import ast
import importlib
import inspect
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from workflow_scripts.core import cli, plugins, tables
from workflow_scripts.core.code import ROOT
from workflow_scripts.core.io import write_text
from workflow_scripts.core.section import Section
from workflow_scripts.core.step import PACKAGE, Key, Role, Step, declaration, mark_of
from workflow_scripts.generate.config import KINDS
from workflow_scripts.workflow.config import Config

SCHEMA = ROOT / "schemas" / "config.schema.json"
PAGE = ROOT / "docs" / "config.md"
COMMANDS = ROOT / "docs" / "commands.md"
ARTIFACTS = ROOT / "docs" / "artifacts.md"
# Sections of a page, in the order of a run.
STAGES = "dataset pairs divergence split judge generate score report human specs compun workflow".split()
HEAD = """# The config

<!-- Generated from the models by `make reference`; edit the models in workflow_scripts/*/config.py instead. -->

A config is a YAML file. It is laid over the defaults below; `config.yaml` is the default run and is not a base for your
own. Unknown keys and wrong values are refused with one line that names the key. Editors that know JSON schemas can use
`schemas/config.schema.json`.
"""
COMMANDS_HEAD = """# Command lines

<!-- Generated from the steps by `make reference`; edit the steps in workflow_scripts instead. -->

Every step of the workflow and every tool is a module: `split.audit` runs as `python -m workflow_scripts.split.audit`,
with these options. All take `--log FILE`; `--help` prints the same. An option with a *key* has its value from that key
of the [config](config.md) when a rule runs the step. A section is given as JSON, or key by key: `--draw.fraction 0.2`.
A list is given as JSON, or by repeating the option.
"""
ARTIFACTS_HEAD = """# Artifacts

<!-- Generated from the rules and schemas by `make reference`; edit rules/ and workflow_scripts/core/tables.py. -->

What each rule writes. `<results>` is the config's `results`, `<dataset>` the data set's folder in it, `<name>` its
name. Other words in braces stand for a composition, a judge or a generator.
"""
BOUNDS = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<", "min_length": "length ≥"}


class Reference(Step):
    """Write schemas/config.schema.json, docs/config.md, docs/commands.md and docs/artifacts.md from the code."""


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


def _allowed(field: FieldInfo) -> str:
    """Return the type and the range of a field."""
    limits = [
        f"{sign} {getattr(mark, name)}"
        for mark in field.metadata
        for name, sign in BOUNDS.items()
        if hasattr(mark, name)
    ]
    return ", ".join(filter(None, [_type(field.annotation), *limits]))


def _default(field: FieldInfo) -> str:
    """Return the default of a field as YAML would show it."""
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True) if field.default_factory else field.default
    if value is PydanticUndefined or isinstance(value, BaseModel):
        return ""
    if isinstance(value, list) and value and isinstance(value[0], BaseModel):
        value = [item.model_dump(exclude_defaults=True) for item in value]
    text = json.dumps(value, default=str, ensure_ascii=False)
    return f"`{text.replace(f'{ROOT}/', '')}`"


def _sections(kind: Any) -> list[type[Section]]:
    """Return the sections that a type consists of."""
    if isinstance(kind, type) and issubclass(kind, Section):
        return [kind]
    return [section for inner in get_args(kind) for section in _sections(inner)]


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def _table(title: str, model: type[BaseModel], level: int) -> Iterator[str]:
    """Yield the lines of a section's table and of the sections inside it."""
    yield f"\n{'#' * level} {title}\n"
    if model.__doc__ and level > 1:
        yield " ".join(model.__doc__.split()) + "\n"
    yield "| key | default | allowed | meaning |\n|---|---|---|---|"
    for name, field in model.model_fields.items():
        yield _row(f"`{name}`", _default(field), _allowed(field), field.description or "")
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


def _programs(stage: str) -> Iterator[tuple[str, type[Step]]]:
    """Yield the modules of a stage that run from the command line, with their declarations."""
    for file in sorted((ROOT / PACKAGE / stage).glob("*.py")):
        if "cli.run(main)" in file.read_text(encoding="utf-8"):
            main = importlib.import_module(f"{PACKAGE}.{stage}.{file.stem}").main
            yield file.stem, next(iter(get_type_hints(main).values()))


def _options(declared: type[Step]) -> Iterator[str]:
    for name, field in declared.model_fields.items():
        if name in Step.model_fields:
            continue
        role, key = mark_of(field, Role), mark_of(field, Key)
        takes = f"{role.name} {_allowed(field)}".replace("any value", "path") if role else _allowed(field)
        option = f"`--{(field.alias or name).replace('_', '-')}`"
        yield _row(option, _default(field), takes, f"`{key.path}`" if key else "", _prose(field.description or ""))


def commands_text() -> str:
    """Return docs/commands.md."""
    lines = [COMMANDS_HEAD.rstrip()]
    for stage in STAGES:
        lines.append(f"\n## {stage}")
        for module, declared in _programs(stage):
            lines += [f"\n### `{stage}.{module}`\n", _prose(inspect.cleandoc(declared.__doc__ or ""))]
            if options := list(_options(declared)):
                lines += ["\n| option | default | takes | key | meaning |\n|---|---|---|---|---|", *options]
    return "\n".join(lines) + "\n"


def _prose(text: str) -> str:
    """Return text with ``<name>`` escaped, which Markdown would take for HTML, outside code."""
    return "`".join(part if number % 2 else part.replace("<", "&lt;") for number, part in enumerate(text.split("`")))


def _named(output: ast.expr) -> str:
    """Return the paths that the expression of an output names, as code."""
    texts = [node.value for node in ast.walk(output) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    written = re.findall(r"""["']([^"' ]*/[^"' ]*)["']""", ast.unparse(output))
    if paths := [re.sub(r",[^}]*", "", path) for path in written if not path.endswith(".rst")]:
        return ", ".join(f"`{path}`" for path in paths)
    if "figures" in ast.unparse(output).lower():
        return "`<results>/figures/<name>_….svg`"
    # score_table("table", "csv", …), of_section("specs", "specs.html", …)
    name = next((text for text in texts if "." in text), ".".join(texts[:2]))
    return f"`<results>/{name}`"


def _outputs(rule: str) -> list[tuple[str, str]]:
    """Return the outputs of a rule's text: name, and paths as code."""
    block = re.search(r"^( *)output:\n((?:\1    .*\n)+)", rule, re.MULTILINE)
    if not block:
        return []
    call = ast.parse(f"output({inspect.cleandoc(block[2])})", mode="eval").body
    assert isinstance(call, ast.Call)
    return [(keyword.arg or "", _named(keyword.value)) for keyword in call.keywords]


def _values(column: tables.Column) -> str:
    """Return the values that a column may have, in words."""
    if column.isin is not None:
        return ", ".join(f"`{value}`" for value in column.isin)
    if column.low is not None:
        return f"≥ {column.low}" if column.high is None else f"{column.low} to {column.high}"
    return "each once" if column.unique else ""


def _schemas() -> Iterator[str]:
    """Yield the lines of the schemas of Parquet artifacts, each with the comment above it."""
    source = inspect.getsource(tables)
    for comment, name in re.findall(r"((?:^#.*\n)*)^([A-Z_]+) = schema\(", source, re.MULTILINE):
        schema = getattr(tables, name)
        yield f"\n### {name}\n"
        if comment:
            yield " ".join(line.removeprefix("#").strip() for line in comment.splitlines()) + "\n"
        yield "| column | type | null | values |\n|---|---|---|---|"
        for column, about in schema.columns.items():
            kind = "nested" if about.dtype == "object" else {"str": "text"}.get(about.dtype, about.dtype)
            yield _row(f"`{column}`", kind, "yes" if about.nullable else "", _values(about))
        if schema.unique:
            yield f"\nUnique: {', '.join(schema.unique)}."


def artifacts_text() -> str:
    """Return docs/artifacts.md."""
    lines = [ARTIFACTS_HEAD.rstrip()]
    for stage in STAGES[:-1]:
        lines += [f"\n## {stage}\n", "| artifact | rule | content |\n|---|---|---|"]
        source = (ROOT / "rules" / f"{stage}.smk").read_text(encoding="utf-8")
        for name, value in re.findall(r'^([A-Z]+) = f?"(.+)"$', source, re.MULTILINE):
            source = source.replace(f"{{{name}}}", value)
        for rule in re.split(r"^ *rule (?=\w+:)", source.replace("{{", "{").replace("}}", "}"), flags=re.MULTILINE)[1:]:
            rule = re.split(r"^ *use rule ", rule, flags=re.MULTILINE)[0]
            run = re.search(r'step\(\s*"([\w.]+)"', rule)
            fields = declaration(run[1]).model_fields if run else {}
            for output, paths in _outputs(rule):
                about = fields[output].description if output in fields else ""
                lines.append(_row(paths, f"`{rule.partition(':')[0]}`", _prose(about or "")))
    return "\n".join([*lines, "\n## Columns of the tables", *_schemas()]) + "\n"


WRITTEN: dict[Path, Callable[[], str]] = {
    SCHEMA: lambda: json.dumps(Config.model_json_schema(), indent=2) + "\n",
    PAGE: page_text,
    COMMANDS: commands_text,
    ARTIFACTS: artifacts_text,
}


def main(_: Reference) -> None:
    for file, text in WRITTEN.items():
        write_text(text(), file)


if __name__ == "__main__":
    cli.run(main)
