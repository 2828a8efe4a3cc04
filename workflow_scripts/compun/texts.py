"""Texts about nouns: what a language model is asked to write, and how its answers and users' files are checked."""

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workflow_scripts.compun.compounds import joined, plain, read_list
from workflow_scripts.compun.compounds import key as fold
from workflow_scripts.compun.config import MAX_CAPTIONS
from workflow_scripts.core.documents import decode
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import read_table
from workflow_scripts.core.records import read_records
from workflow_scripts.core.tables import COMPOUNDS

MAX_CHARACTERS = 1000  # of a text that a model writes


class BadAnswer(Exception):
    """The answer to this question is of no use; another answer may be."""


@dataclass(frozen=True)
class Kind:
    """A kind of texts: its names, limits, and how a model is asked for them."""

    one: str
    many: str
    words: int  # of a text, at most
    most: int  # texts of a noun, at most
    least: int | None  # texts of a noun in a file; None: as many as are asked for
    wish: str
    example: tuple[str, ...]

    def instruction(self, noun: str, count: int) -> str:
        """Return the request to the model: the paper's instruction in other words, with the form of the answer."""
        wish = self.wish.format(count=count, words=self.words, noun=f'"{noun}"')
        example = json.dumps({self.many: self.example[:count]}, ensure_ascii=False)
        return f'{wish}\nAnswer with JSON alone, in this form; here the noun is "garden hose":\n{example}'

    def schema(self, count: int) -> dict[str, Any]:
        """Return the JSON schema of an answer."""
        texts = {"type": "array", "items": {"type": "string"}, "minItems": count, "maxItems": count}
        whole = {"type": "object", "properties": {self.many: texts}, "required": [self.many]}
        return whole | {"additionalProperties": False}


KINDS = {
    "captions": Kind(
        "caption",
        "captions",
        words=10,
        most=MAX_CAPTIONS,
        least=None,
        wish=(
            "Write {count} different captions, each of a photo in which {noun} is seen. A caption is a single line of "
            "at most {words} words and names {noun}. Let the scenes be as unlike as possible: in each, {noun} is "
            "somewhere else, described by other adjectives, and something else is done with it, by another verb."
        ),
        example=(
            "Green garden hose coiled neatly beside a wooden shed.",
            "Laughing children spraying each other with a garden hose.",
            "Gardener dragging a long garden hose across dry grass.",
            "Leaking garden hose flooding a sunny brick patio.",
            "Firefighter rinsing muddy boots under an old garden hose.",
            "Dog proudly chewing a punctured yellow garden hose.",
            "Shopkeeper hanging a brand-new garden hose on display.",
        ),
    ),
    "descriptions": Kind(
        "description",
        "descriptions",
        words=10,
        most=20,
        least=1,
        wish=(
            "By what does one tell {noun} in a photo? Name {count} different features that can be seen: shapes, parts, "
            "colors, materials, surroundings. A feature is a phrase of at most {words} words, without the noun itself."
        ),
        example=(
            "a long flexible tube",
            "green or yellow rubber",
            "a metal nozzle at one end",
            "loops coiled on the ground or on a reel",
            "water spraying from its end",
            "a threaded brass coupling",
            "lawn, flower beds or a tap nearby",
        ),
    ),
}


@dataclass
class Given:
    """The texts of each noun in a file, and what of it was not used.

    ``unused`` are names that are no noun's; ``repeated`` and ``beyond`` count duplicates and texts over ``Kind.most``.
    """

    texts: dict[str, list[str]] = field(default_factory=dict)
    unused: list[str] = field(default_factory=list)
    repeated: int = 0
    beyond: int = 0


def check_texts(texts: Any, count: int) -> list[str]:
    """Return the texts, each on one line; ValueError unless ``count`` or more are different and printable."""
    if not isinstance(texts, list):
        raise ValueError("not a list")
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("a list of other things than texts")
    lines = [" ".join(text.split()) for text in texts]
    for line in lines:
        if not line:
            raise ValueError("a text is empty")
        if not line.isprintable():
            raise ValueError(f"a character that cannot be printed in {ascii(line[:40])}")
    duplicates = [line for line, n in Counter(line.casefold() for line in lines).items() if n > 1]
    if duplicates:
        raise ValueError(f"duplicate text {duplicates[0][:60]!r}")
    if len(lines) < count:
        raise ValueError(f"{len(lines)} of {count}")
    return lines


def read_answer(text: str, kind: Kind, count: int) -> list[str]:
    """Return the first ``count`` texts of a model's answer, which is JSON: ``{"captions": […]}`` or only the list.

    Thoughts before the answer are skipped, and so is prose around the only fenced block or the only object. BadAnswer
    says what is wrong.
    """
    content = _json_in(text.rpartition("</think>")[2].strip())
    if isinstance(content, dict):
        if kind.many not in content:
            raise BadAnswer(f"without the key {kind.many!r}")
        content = content[kind.many]
    try:
        texts = check_texts(content, count)[:count]
    except ValueError as error:
        raise BadAnswer(str(error)) from None
    if any(len(line) > MAX_CHARACTERS for line in texts):
        raise BadAnswer(f"a {kind.one} of more than {MAX_CHARACTERS:,} characters")
    return texts


def _json_in(text: str) -> Any:
    """Parse all of ``text``, its only fenced block, or what stands between its outermost braces."""
    fenced = re.findall(r"```\w*\s(.*?)```", text, flags=re.DOTALL)
    braced = re.search(r"\{.*\}", text, flags=re.DOTALL)
    for candidate in (text, *(fenced if len(fenced) == 1 else []), *([braced[0]] if braced else [])):
        try:
            return json.loads(candidate)
        except (ValueError, RecursionError):
            continue
    raise BadAnswer(f"not JSON: {text[:60]!r}")


def mentions(text: str, noun: str) -> bool:
    """Return whether ``text`` names ``noun``, whatever its case, spaces and hyphens; it may have an ending."""
    return joined(noun) in joined(text)


def read_nouns(path: Path) -> tuple[list[str], int]:
    """Return the nouns of compounds.parquet or of a list, and how many compounds lack an image and are skipped."""
    if path.suffix.lower() == ".parquet":
        table = read_table(path, COMPOUNDS, ["compound", "complete"])
        nouns, incomplete = table.loc[table["complete"], "compound"].tolist(), int((~table["complete"]).sum())
    else:
        nouns, incomplete = read_list(path)["compound"].tolist(), 0
    if not nouns:
        raise UserError(f"{path}: nothing to write texts for: all {incomplete} compounds lack an image; add images")
    return nouns, incomplete


def read_given(path: Path, nouns: Sequence[str], kind: Kind, count: int) -> Given:
    """Return the texts that a file has of ``nouns``; case may differ where only one name in the file matches."""
    content = _read_mapping(path) if path.suffix.lower() == ".json" else None
    if content is None:
        content = _read_rows(path, kind)
    folded: dict[str, list[str]] = {}
    for name in content:
        folded.setdefault(fold(name), []).append(name)
    least = count if kind.least is None else kind.least
    given, used = Given(), set()
    for noun in nouns:
        names = [noun] if noun in content else folded.get(fold(noun), [])
        if len(names) > 1:
            raise UserError(f"{path}: both {names[0]!r} and {names[1]!r} may be {noun!r}; write one as {noun!r}")
        if not names:
            continue
        try:
            texts = check_texts(_distinct(content[names[0]]), least)
        except ValueError as error:
            raise UserError(f"{path}: {names[0]!r}: {error}; correct its {kind.many}") from None
        given.texts[noun] = texts[: kind.most]
        given.repeated += len(content[names[0]]) - len(texts)
        given.beyond += len(texts[kind.most :])
        used.add(names[0])
    given.unused = sorted(set(content) - used)
    return given


def _distinct(texts: Any) -> Any:
    """Drop texts that differ from an earlier one only in case and spaces; what is not a list of texts stays as is."""
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        return texts
    first: dict[str, str] = {}
    for text in texts:
        first.setdefault(fold(text), text)
    return list(first.values())


def _read_rows(path: Path, kind: Kind) -> dict[str, Any]:
    rows, bad = read_records(path, ["compound", kind.one])
    if bad:
        raise UserError(f"{path}: {bad[0]}")
    texts: dict[str, Any] = {}
    for where, name, text in zip(rows["where"], rows["compound"], rows[kind.one], strict=True):
        if name is None or text is None:
            raise UserError(f"{path}: {where}: without a compound or a {kind.one}; fill it in or remove the row")
        texts.setdefault(plain(name), []).append(text)
    return texts


def _read_mapping(path: Path) -> dict[str, Any] | None:
    """Read a JSON object; None if the file is a list, which ``read_records`` reads."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [plain(name) for name, _ in pairs]
        duplicates = [name for name, n in Counter(names).items() if n > 1]
        if duplicates:
            raise UserError(f"{path}: duplicate entry {duplicates[0]!r}; remove one")
        return dict(zip(names, (texts for _, texts in pairs), strict=True))

    try:
        content = json.loads(decode(path), object_pairs_hook=once)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: not JSON ({error}); correct it") from None
    if isinstance(content, list):
        return None
    if not isinstance(content, dict):
        raise UserError(f'{path}: expected the form {{"garden hose": ["…", "…"]}}')
    return content
