"""Normalize texts for reading and comparing them: what looks the same to people is then the same.

Stored texts and offsets stay as given; ``Normalized.given`` returns the offsets in the given text.
"""

import html
import re
import unicodedata
from collections.abc import Sequence
from html.entities import html5
from typing import Any, NamedTuple

# Unicode's Default_Ignorable_Code_Point without Hangul fillers, annotations, and control characters
# but white space.
_INVISIBLE = (
    "\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u034f\u061c\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\ufe00-\ufe0f\ufeff\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
INVISIBLE = re.compile(f"[{_INVISIBLE}]+")
# Hangul fillers and others without a glyph, which take the place of a character.
_BLANK = "\u115f\u1160\u2800\u3164\uffa0\ufffc"
_SPACE = "\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
# Spelled out, because Arrow, which searches columns for it, reads \\s differently.
VISIBLE = re.compile(f"[^{_INVISIBLE}{_BLANK}{_SPACE}]")
# Combining marks of Latin letters; those that no letter composes with are decoration (struck out,
# underlined).
_MARK = re.compile(r"[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]")
# A text without any of these is as it is read; most captions are.
_UNUSUAL = re.compile(r"[^ !$%'()+,./0-9:;?@A-Za-z=-]|  |\w;\w|==|''|(?<!\w)'\w\w|^ | $")
# Letters that look like Latin ones: Cyrillic, then Greek, then others.
_LOOK_ALIKES = str.maketrans(
    "\u0430\u0441\u0501\u0435\u04bb\u0456\u0458\u043a\u04cf\u043e\u0440\u051b\u0455\u0442\u0443\u051d\u0445"
    "\u0410\u0412\u0421\u0415\u041d\u0406\u0408\u041a\u041c\u041e\u0420\u0405\u0422\u0423\u0425"
    "\u03b1\u03b9\u03ba\u03bd\u03bf\u03c1\u03c5"
    "\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7\u0261\u0131\u0585",
    "acdehijklopqstywxABCEHIJKMOPSTYXaikvopuABEZHIKMNOPTYXgio",
)
_ATTRIBUTES = r"(?:\s[^<>=]*=[^<>]*|\s*/?)"  # so that `<a red cup>` is no link
_BLOCK = (
    r"(?i)</?(?:blockquote|br|center|dd|div|dl|dt|h[1-6]|hr|img|li|ol|p|pre|table|tbody|td|th|thead|tr|ul)"
    rf"{_ATTRIBUTES}>"
)
# HTML, BBCode, the address of a Markdown link.
_HIDDEN = (
    r"(?i)</?(?:a|abbr|acronym|b|bdi|bdo|big|cite|code|data|del|dfn|em|font|i|ins|kbd|label|mark|q|s|samp|small|span"
    rf"|strike|strong|sub|sup|tt|u|var|wbr){_ATTRIBUTES}>|<(\w+){_ATTRIBUTES}>(?=[^<>]*</\1\s*>)|</\w+\s*>|<!--[^<>]*-->"
    r"|\[/?(?:b|i|u|s|color|size)(?:=[^\[\]]*)?\]|\[\^?\d+\]|!?\[(?=[^\[\]]*\]\()|(?<=\w)\]\([^()\s]*\)"
)
_MARKUP = r"[*_~`|^\[\]{}<>#\\]|={2,}|'{2,}"
# The kind of a change ("": not counted), a pattern, and what it becomes. The order matters: an
# entity may be a tag's bracket, and a full-width asterisk is markup.
_RULES: tuple[tuple[str, str, Any], ...] = (
    (
        "entities",
        r"&(?:amp;)*([A-Za-z]\w{1,31};?)(?!(?<!;)\w)",
        lambda match: html5.get(match[1], match[0]),
    ),
    (
        "entities",
        r"&(?:amp;)*(#\d{1,7}|#[Xx][0-9A-Fa-f]{1,6});?",
        lambda match: html.unescape(f"&{match[1]};"),
    ),
    ("markup", rf"{_BLOCK}|\\[nrt](?![a-z]*\{{)", " "),
    ("markup", _HIDDEN, ""),
    ("invisible_characters", INVISIBLE.pattern, ""),
    ("invisible_characters", f"[{_BLANK}]+", " "),
    ("", r"[\u2018-\u201b\u2032\u2033\u02bc\uff07]|(?<=\w)\u00b4(?=\w)", "'"),
    (
        "compatibility_characters",
        rf"(?s:.){_MARK.pattern}+|[\u1100-\u11ff]+|[^\x00-\x7f]",
        lambda match: _MARK.sub("", unicodedata.normalize("NFKC", match[0])),
    ),
    (
        "mixed_scripts",
        r"\b(?=\w*[A-Za-z])(?=\w*[\u0131\u0261\u0391-\u03a5\u03b1\u03b9\u03ba\u03bd\u03bf\u03c1\u03c5\u0400-\u052f\u0585])\w+",
        lambda match: match[0].translate(_LOOK_ALIKES),
    ),
    ("", r"(?<=\w)[\u2010-\u2013\u2212](?=\w)", "-"),
    ("markup", rf"(?<=[^\W_])(?:{_MARKUP})+(?=[^\W_])", " "),
    ("markup", rf"(?<=\S)(?:{_MARKUP})+|(?:{_MARKUP})+(?=\S)", ""),
    (
        "quotation_marks",
        r'(?<=[^\W_])["\u201c-\u201f\u2039\u203a\u00ab\u00bb\u27e8\u27e9\u3008-\u3011]+(?=[^\W_])',
        " ",
    ),
    (
        "quotation_marks",
        r"""["\u201c-\u201f\u2039\u203a\u00ab\u00bb\u27e8\u27e9\u3008-\u3011]+|(?<!\w)'(?=[^\W_]{2}[^']{0,40}'(?!\w))|(?<=[^\Ws_])'(?!\w)""",
        "",
    ),
    # Bullets and semicolons between words, which spaCy takes for a part of a word.
    ("", r"[\u00b7\u2022\u2023\u2219\u25aa\u25cf\u25e6\u30fb]|(?<=\w);(?=\w)", " ; "),
    ("", r"\s+", " "),
    ("", r"\A | \Z", ""),
)


class Normalized(NamedTuple):
    """A text as it is read.

    Attributes:
        kinds: what was changed, sorted; [] if only spaces, apostrophes and hyphens.
        spans: start and end of each character in the given text; None if they are those in
            ``text``.
    """

    text: str
    kinds: Sequence[str] = ()
    spans: list[tuple[int, int]] | None = None

    def given(self, start: int, end: int) -> tuple[int, int]:
        """Return the offsets in the given text of the characters from ``start`` to ``end``
        (exclusive).
        """
        if self.spans is None:
            return start, end
        return self.spans[start][0], self.spans[end - 1][1]


def normalize(text: str) -> Normalized:
    """Return a text as it is read: composed (NFKC), without invisible characters, markup, entities
    and quotes.
    """
    if not _UNUSUAL.search(text):
        return Normalized(text)
    spans = [(offset, offset + 1) for offset in range(len(text))]
    kinds = set[str]()
    for kind, pattern, replacement in _RULES:
        matches = list(re.finditer(pattern, text))
        if not matches:  # of most rules
            continue
        characters = list(text)
        for match in matches:
            new = replacement(match) if callable(replacement) else replacement
            if new != match[0] or kind == "mixed_scripts":
                begin, end = match.span()
                # All that is new is at the place of the first character.
                characters[begin:end] = [new] + [""] * (end - begin - 1)
                spans[begin] = spans[begin][0], spans[end - 1][1]
                kinds.add(kind)
        text = "".join(characters)
        spans = [span for new, span in zip(characters, spans, strict=True) for _ in new]
    return Normalized(text, sorted(kinds - {""}), spans)


def tidy_id(text: str) -> str:
    """Return an id or a path without invisible characters and ``./``, composed (NFC), stripped and
    on one line.
    """
    # macOS decomposes file names.
    composed = unicodedata.normalize("NFC", INVISIBLE.sub("", text))
    return re.sub(r"(^|/)(\./+)+", r"\1", re.sub(r"[^\S ]", " ", composed).strip())
