"""Find what a caption denies, supposes, compares with or excepts: `no red bill`, `if it were red`, `like a red ball`.

A caption is written as a string of letters, one a word. Regular expressions find in it each word that opens a scope (by
the lists of ``lexicons/grammar.yaml``), and the phrases that belong to it. A phrase that does not fit is asserted, so
that a scope also ends in captions without commas: `a bird with no neck black wings` has black wings. The dependency
parse does not decide, because it is unreliable on such captions.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from compclip.pairs.words import Role, Word
from compclip.text.grammar import WORDS

if TYPE_CHECKING:
    from spacy.tokens import Doc

# Letters of listed words and phrases; the further words of a phrase are `_`.
LETTERS = {phrase: letter for letter, phrases in WORDS.scopes.items() for phrase in phrases}
LONGEST = 3  # words of a phrase
# Letters of other words. O: verbs that are not finite, and prepositions that are not of a place.
ROLES = {
    Role.ADJECTIVE: "A", Role.NOUN: "N", Role.AND: "&", Role.MODIFIER: "M", Role.BE: "O", Role.THAT: "R",
    Role.START: "S", Role.PLACE: "P", Role.OTHER: "O",
}  # fmt: skip
TAGS = {"IN": "P", "PRP": "Y", "VBZ": "V", "VBP": "V", "MD": "V"}

# Phrases as regular expressions of letters; `<name>` stands for an earlier one.
PHRASES = {
    # Adjectives in a row (A listed, U unlisted, a participles), and those joined: `red, blue or green`.
    "run": "[Mrz]*[AUa]+",
    "predicate": "(?:<run>(?:(?:,<run>)*,?[&|]<run>)*(?!N)|<run>(?:(?:,<run>)*,?[|d]<run>)*N*)",
    # A noun with its adjectives, and a list of those.
    "stack": "(?:<run>)+",
    "adjectives": "<stack>(?:(?:,<stack>)*,?[&|]<stack>)*",
    "noun": "[MSITDru]*(?:<adjectives>)?M*N+",
    "nouns": "<noun>(?:(?:,<noun>)*,?[|]<noun>)*",
    # With what follows a noun and belongs to it. A place that is known exists: `no spots on its red wings`.
    "phrase": "<nouns>(?:(?:M*(?:P(?![TD])|O))+<nouns>|R[VH]M*(?:<predicate>|<nouns>))*",
    "with": "<phrase>(?:W(?!D)<phrase>)*",
    "joined": "<with>(?:&(?![TD])<with>)*",
    "clause": "[VHOMYn]*(?:<predicate>|<joined>)",
    "verb": "(?:[YMr]*|<with>)[VHm]<clause>",
}
# What precedes a scope, and what it reaches.
REACHES = {
    "[WH][M|]*d_*": "(?:<phrase>|<predicate>)",  # `with no bill`
    "(?:^|[^WHM|])[M|]*d_*": "(?:<with>|<predicate>)",
    "(?:^|[.,])[^WHV.,]*d_*": "<with>[VH]<clause>",  # `no bill is red`
    "[dn]_*": "[VH](?:Y|<noun>)<clause>",  # `nor is the bill red`
    "l_*": "<phrase>(?:&(?![TD])<phrase>)*",
    "n_*": "(?:[MVHOYa]*[VHOa](?:[MVHOWa]|P(?![TD]))*(?:<predicate>|<joined>)|<predicate>|M*[SITDu]<phrase>)",
    "s_*": "<clause>",
    "m": "[MYn]*[VHO]<clause>",  # but `may red wings` are many
    "c_*": "<verb>",
    "h_*": "(?:<verb>|<with>|<predicate>)",
    "(?<!n)g_*": "<predicate>",
    "p_*(?![STD])": "<nouns>",
    "j_*(?![TD])": "<with>",
    "(?<!SNV)(?<![YRSO]V)k_*(?=I)": "<nouns>",  # but `what looks like a red mask`
    "z[MAUa]+z(?=I)": "<nouns>",  # `as red as a red rose`
    "(?:u|(?:^|[.])[^A.]*u[^A.]*)[xb]_*(?!D)": "<joined>",  # but `all black except its bill`
    "e": r"[^.,|]{1,8}\|(?:<nouns>|<predicate>)",
    r"(?:^|(?<=[.?]))": r"[^.?]+\?",
}
# `a plate on the table is not visible`, `its bill is missing`
ABSENT = re.compile(r"(?P<absent>N)(?:P[MSITDAaU]*N+)*[MVOR]*(?:q|l(?![MSITDAUaNru])|(?:[ns]_*[MVO]*r|n_*M*P))")


def _expanded(pattern: str) -> str:
    """Return a pattern with the phrases that it names."""
    for name in reversed(PHRASES):
        pattern = pattern.replace(f"<{name}>", PHRASES[name])
    return pattern


RULES = [re.compile(f"{before}(?=(?P<reach>{_expanded(reach)}))") for before, reach in REACHES.items()]


def _letter(doc: Doc, word: Word) -> str:
    """Return the letter of a word by its role and tag."""
    tag = doc[word.last].tag_
    if word.part is Role.ADJECTIVE and not word.group:
        return "a" if tag.startswith("VB") else "U"
    if word.part is Role.BE and tag == "VBD":
        return "V"
    return TAGS.get(tag, ROLES[word.part]) if word.part in (Role.BE, Role.OTHER) else ROLES[word.part]


def _letters(doc: Doc, words: list[Word]) -> str:
    """Return the letters of words, by the longest listed phrase at each."""
    letters = ""
    while len(letters) < len(words):
        following = words[len(letters) : len(letters) + LONGEST]
        phrases = ["_".join(word.lower for word in following[:length]) for length in range(len(following), 0, -1)]
        phrase = next((phrase for phrase in phrases if phrase in LETTERS and not following[0].group), None)
        letters += LETTERS[phrase] + "_" * phrase.count("_") if phrase else _letter(doc, following[0])
    return letters


def denied(doc: Doc, words: list[Word]) -> tuple[set[int], set[int]]:
    """Return the words in a scope, and the nouns that are said to be absent, as positions among the words."""
    letters = _letters(doc, words)
    reached = {i for rule in RULES for match in rule.finditer(letters) for i in range(*match.span("reach"))}
    return reached, {match.start("absent") for match in ABSENT.finditer(letters)}
