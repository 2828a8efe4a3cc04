"""Find what a caption denies, supposes, compares with or excepts: `no red bill`, `if it were red`,
`like a red ball`.

A caption is written as a string of letters, one a word. Regular expressions find in it each word
that opens a scope (by the lists of ``lexicons/grammar.yaml``), and the phrases that belong to it. A
phrase that does not fit is asserted, so that a scope also ends in captions without commas: `a bird
with no neck black wings` has black wings. The dependency parse does not decide, because it is
unreliable on such captions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from compclip.pairs.words import Role, Word
from compclip.text.grammar import scope_letters

if TYPE_CHECKING:
    from spacy.tokens import Token

# Letters of other words. O: verbs that are not finite, and prepositions that are not of a place.
ROLES = {
    Role.ADJECTIVE: "A",
    Role.NOUN: "N",
    Role.AND: "&",
    Role.MODIFIER: "M",
    Role.BE: "O",
    Role.THAT: "R",
    Role.START: "S",
    Role.PLACE: "P",
    Role.OTHER: "O",
}
TAGS = {"IN": "P", "PRP": "Y", "VBZ": "V", "VBP": "V", "MD": "V"}

# Phrases as regular expressions of letters; `<name>` stands for an earlier one.
PHRASES = {
    # Adjectives in a row (A listed, U unlisted, a participles), and those joined: `red, blue or
    # green`.
    "run": "[Mrz_]*[AUa]+",
    "predicate": "(?:<run>(?:(?:,<run>)*,?[&|]<run>)*(?!N)|<run>(?:(?:,<run>)*,?[|d]<run>)*N*)",
    # A noun with its adjectives, and a list of those.
    "stack": "(?:[Mrz_]*[AUa])+",
    "adjectives": "<stack>(?:(?:,|,?[&|])<stack>)*",
    "noun": "[MSITDru]*+(?:<adjectives>)?M*+N++",
    "nouns": "<noun>(?:(?:,<noun>)*,?[|]<noun>)*",
    # With what follows a noun and belongs to it. A place that is known exists: `no spots on its red
    # wings`.
    "part": "<nouns>(?:F<noun>|R[VH]M*(?:<predicate>|<nouns>))*",
    "phrase": "<part>(?:(?:M*+(?:P(?![TD])|O))+<part>)*",
    "with": "<phrase>(?:W(?!D)<phrase>)*",
    "joined": "<with>(?:&(?![TD])<with>)*",
    "clause": "(?:[VHOMYn]|P(?![TD]))*(?:<predicate>|<joined>)",
    "verb": "(?:[YMr]*P?|<with>)[VHm]<clause>",
}
# What precedes a scope, and what it reaches.
REACHES = {
    "d_*": "(?:<part>|<predicate>)",  # `with no hat in a red shirt`
    "(?:^|[.,VOPR])M*d_*": "<with>",  # `there is no man in a red shirt`
    "(?:(?:^|[.,])[^WHV.,]*|A&)d_*": "<with>[VH]<clause>",  # `no bill is red`
    "[dn]_*": "[VH](?:[Yr]|<noun>)<clause>",  # `nor is the bill red`
    "(?:^|[.,])q_*": "[VH](?:[Yr]<clause>|<joined>)",  # `nowhere is there a red bill`
    "l_*": "(?:<part>(?:&(?![TD])<part>)*|<predicate>)",
    "l_+[HO]": "<joined>",  # `instead of wearing a red shirt`
    "L(?=[MSITDu])": "<part>",
    "n_*": "(?:[MVHOYa]*[VHOa](?:[MVHOWa]|P(?![TD]))*(?:<predicate>|<joined>)|<predicate>|M*[SITDu]<phrase>)",  # noqa: E501
    "n_*M*(?:P(?![TD])|W(?!D))": "<phrase>",  # `not in a red shirt`
    "s_*": "<clause>",
    "m": "[MYn]*[VHO]<clause>",  # but `may red wings` are many
    "(?:c_*!?R?|n_*T?[UN]R)": "<verb>",  # `if the bill is red`, `it is not true that it is red`
    "h_*": "(?:<verb>|[WPY]?<with>|<predicate>)",
    "(?<!n)g_*": "<predicate>",
    "p_*(?![STD])": "<nouns>",
    "j_*(?![TD])": "<with>",
    "(?<!SNV)(?<![YRSO]V)k_*(?=I)": "<nouns>",  # but `what looks like a red mask`
    "z[MAUa]+z(?=I)": "<nouns>",  # `as red as a red rose`
    "(?:uN*|(?:^|[.])[^A.]*u[^A.]*)[xb]_*(?!D)": "<joined>",  # but `all black except its bill`
    "(?:^|[.])[^A.]*y": "<joined>",  # `plates minus a blue one`, but `all black minus a white tail`
    "e": r"[^.,|]{1,8}\|(?:<nouns>|<predicate>)",
    r"(?:^|(?<=[.?]))": r"[^.?]+\?",
}
# `a plate on the table is not visible`, `its bill is missing`, `red bill: none`
ABSENT = re.compile(
    r"(?P<absent>N)(?:(?:P[MSITDAaU]*N+)*[MVORHq]*"
    r"(?:q|(?:l|(?<=[VH])L)(?![MSITDAUaNru_])|(?:[ns]_*[MVO]*r|n_*M*P))|[.M]?(?:[hdql]|nr)_*(?=$|[.,]))"
)


def _expanded(pattern: str) -> str:
    """Return a pattern with the phrases that it names."""
    for name in reversed(PHRASES):
        pattern = pattern.replace(f"<{name}>", PHRASES[name])
    return pattern


RULES = [
    re.compile(f"{opener}(?=(?P<reach>{_expanded(reach)}))") for opener, reach in REACHES.items()
]


def _letter(tokens: Sequence[Token], word: Word) -> str:
    """Return the letter of a word by its role and tag."""
    tag = tokens[word.last].tag_
    if word.part is Role.ADJECTIVE and not word.group:
        return "a" if tag.startswith("VB") else "U"
    if word.part is Role.BE and tag == "VBD":
        return "V"
    if word.part in (Role.BE, Role.OTHER):
        return TAGS.get(tag, ROLES[word.part])
    return ROLES[word.part]


def denied(tokens: Sequence[Token], words: list[Word]) -> tuple[set[int], set[int]]:
    """Return the words in a scope, and the nouns that are said to be absent, as positions among the
    words.
    """
    lowers = ["" if word.group else word.lower for word in words]
    letters = scope_letters(lowers, [_letter(tokens, word) for word in words])
    reached: set[int] = set()
    for rule in RULES:
        for match in rule.finditer(letters):
            reached.update(range(*match.span("reach")))
    return reached, {match.start("absent") for match in ABSENT.finditer(letters)}
