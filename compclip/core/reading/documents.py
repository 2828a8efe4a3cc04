"""Read text, JSON and YAML that people wrote.

Duplicate keys are refused, because the libraries silently keep the last one.
"""

import difflib
import json
import os
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Any

import yaml

from compclip.core import limits
from compclip.core.errors import UserError, require


def no_such(path: str | Path, what: str = "file") -> str:
    """Return an error line: ``path`` does not exist, the folder it is relative to, and the closest
    existing name.
    """
    path = Path(path)
    if "folder" not in what and path.is_dir():
        return f"{path}: is a folder; give the path of a file"
    if os.path.islink(path):
        return f"{path}: is a link to {os.readlink(path)}, which does not exist; correct the link"
    origin = "" if path.is_absolute() else f" in {Path.cwd()}"
    missing = next((p for p in (*reversed(path.parents), path) if not p.exists()), path)
    try:
        # A broken link is listed, too.
        existing = [p.name for p in missing.parent.iterdir() if p != missing]
    except OSError:  # not readable
        existing = []
    closest = difflib.get_close_matches(missing.name, existing, 1)
    other = "" if missing == path else f"{missing} does not exist either; "
    hint = (
        f"did you mean {missing.with_name(closest[0])}?" if closest else f"{other}correct the path"
    )
    return f"{path}: no such {what}{origin}; {hint}"


def require_regular(path: Path) -> None:
    """Raise UserError if a path exists and is no regular file: a pipe or a device may never end."""
    # Methods of Path fail if a name is too long.
    is_other = os.path.exists(path) and not os.path.isfile(path)
    fault = "is a folder" if os.path.isdir(path) else "not a regular file"
    require(not is_other, path, fault, "give the path of a file")


def require_folder(path: Path) -> None:
    """Raise UserError if a folder cannot be made because a file has its name, or that of a folder
    above.
    """
    existing = next(folder for folder in (path, *path.parents) if os.path.lexists(folder))
    require(os.path.isdir(existing), existing, "not a folder", "choose another path")


def require_expansion(path: Path, size: int) -> None:
    """Raise UserError if a compressed file's content has ``size`` bytes, far more than the file."""
    most = max(limits.ARCHIVE_RATIO * path.stat().st_size, limits.ARCHIVE_SMALL_BYTES)
    require(
        size <= most,
        path,
        f"unpacks to over {limits.ARCHIVE_RATIO} times its size",
        "do not trust it",
    )


def nearest(name: object, known: Iterable[str]) -> str:
    """Return ``did you mean X? `` for a misspelled name, "" if no known name is similar."""
    # A name may be known elsewhere, but not allowed here.
    others = [other for other in known if other != str(name)]
    closest = difflib.get_close_matches(str(name), others, 1)
    return f"did you mean {closest[0]}? " if closest else ""


def decode(path: Path) -> str:
    """Return a file's text without a byte order mark; UserError names a line that is not UTF-8."""
    require_regular(path)
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        byte = error.object[error.start]
        raise UserError(
            f"{path}: line {line}: byte 0x{byte:02x} is not UTF-8; save the file as UTF-8"
        ) from error


def parse_json(text: str | bytes) -> Any:
    """Return the content of JSON; raises ValueError, on one line, if it is invalid or ambiguous."""
    try:
        return json.loads(text, object_pairs_hook=unique)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return pairs as a dict; raises ValueError if a key occurs twice."""
    content = dict[str, Any]()
    for name, value in pairs:
        if name in content:
            raise ValueError(f"duplicate key {name!r}; remove one")
        content[name] = value
    return content


class _Loader(yaml.SafeLoader):
    def get_single_node(self) -> Any:
        """Refuse a document that aliases expand to too many values."""
        root = super().get_single_node()
        sizes: dict[int, int] = {}

        def size(node: Any) -> int:
            """Return the number of values, counting those of an alias each time; each node is
            visited once.
            """
            if id(node) not in sizes:
                sizes[id(node)] = 1  # an alias that contains itself
                children = node.value if isinstance(node, yaml.CollectionNode) else ()
                if isinstance(node, yaml.MappingNode):
                    children = chain.from_iterable(children)  # keys and values
                sizes[id(node)] = 1 + sum(map(size, children))
            return sizes[id(node)]

        if root is not None and size(root) > limits.YAML_VALUES:
            values = f"{size(root):,} values, with those of aliases"
            raise yaml.YAMLError(limits.over("YAML_VALUES", values))
        return root

    def flatten_mapping(self, node: Any) -> None:
        """Refuse duplicate keys; a key that overrides a merged one (``<<``) is allowed."""
        keys = [] if hasattr(node, "is_checked") else [key for key, _ in node.value]
        node.is_checked = True  # merging changes its keys
        names = set()
        for key in (key for key in keys if isinstance(key, yaml.ScalarNode)):
            if (key.tag, key.value) in names:
                raise yaml.YAMLError(
                    f"line {key.start_mark.line + 1}: duplicate key {key.value!r}; remove one"
                )
            names.add((key.tag, key.value))
        super().flatten_mapping(node)


def parse_yaml(text: str) -> Any:
    """Return the content of YAML; raises ValueError, on one line, if it is invalid or ambiguous."""
    if len(text) > limits.YAML_CHARACTERS:
        raise ValueError(limits.over("YAML_CHARACTERS", f"{len(text):,} characters"))
    try:
        return yaml.load(text, _Loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        position = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        problem = str(getattr(error, "problem", error))
        if "'\\t'" in problem:
            problem = "a tab; indent with spaces"
        # Where the list or mapping begins that is not closed.
        begin = getattr(error, "context_mark", None)
        if begin and mark and begin.line != mark.line:
            problem += f" (in what begins in line {begin.line + 1}, column {begin.column + 1})"
        raise ValueError(" ".join(f"{position}{problem}".split())) from None
    # A tag that does not fit its value, such as `!!bool maybe`.
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"a value does not fit its tag ({' '.join(str(error).split())})") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None
