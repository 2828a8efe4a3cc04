"""Find adjectives that a text denies, supposes or compares with, from the order of words alone: `no
red bill`.

As in ``pairs.scope``, with which only the word lists of ``lexicons/grammar.yaml`` are shared, a
text is a string of letters, one an item. Without tags, an unlisted word (o) may be an adverb, a
verb or a noun.
"""

import re
from collections.abc import Sequence

from compclip.text.grammar import scope_letters

# Letters of the items that are in none of the lists.
LETTERS = {"adjective": "A", "modifier": "A", "noun": "N", "other": "o"}
# Words that open a scope, by their letters, and the verb that they reach beyond.
OPENERS = (
    r"[dl]_*",
    r"l_+H",  # `instead of having a red bill`
    r"L(?=[ITDu])",  # `it lost its red tail`
    r"(?:^|[.,VP])d_*[oAN]*[PW](?![TD])",  # `there is no man in a red shirt`
    r"[pj]_*(?=[IAu])",  # `larger than a red bird`, but not `than its red bill`
    r"g_*(?=A)",
    r"h_*(?:P(?![TD]))?",
    r"(?:^|[.,])q_*[VHo]+r?",  # `nowhere is there a red bill`
    r"[ns]_*o*[VH]*P?",
    r"n_*W(?!D)",  # `not with a red bill`
    r"m[VHn]+",
    r"[ch]_*!?[^.,&VH!]*[VH]",
    r"(?:^|[.,])[^WHV.,]*d_*[^WHV.,&!]*[VH]",  # `no bill is red`
    # but `all black except its bill`
    r"(?:uN*|(?:^|[.])[^A.]*u[^A.]*)[xb]_*(?!D)(?:[IT]o*N*P(?![TD]))?",
    r"(?:(?<!V)k_*|z[oAMr]+z)(?=I)",  # `as red as a red rose`, but `looks like a red bird`
    r"(?:^|[.])[^A.]*y",
    r"e(?=[^.,|]{1,8}\|)",
)
# What an opener reaches. After a noun, only `or` and `of` continue: `no spots on its red wings`
# states red wings.
REACH = r"(?:[oISTurzvmM]|(?<!P)D|A+(?:,?[&|]?A)*|\||F|N+(?=[|oF]))*"
SCOPES = [re.compile(f"(?={opener}(?P<reach>{REACH}))") for opener in OPENERS]
SCOPES.append(re.compile(r"(?:^|(?<=[.?]))(?=(?P<reach>[^.?]+\?))"))  # `is it a red bill?`
# Nouns that are said to be absent: `its red bill is not visible`, `red bill: none`.
ABSENT = re.compile(
    r"N(?=(?:P[ITDAo]*N+)*[MVorH]*(?:q|(?:l|(?<=[VH])L)(?![ITDANru_o])|[ns]_*[oV]*r|[Vo]n_*P)|\.?(?:[hdql]|nr)_*(?:$|[.,]))"
)


def denied(words: Sequence[str], kinds: Sequence[str]) -> set[int]:
    """Return the positions of denied adjectives and absent nouns, given the words and kinds of all
    items of a text.
    """
    plain = ["n't" if word.endswith(("n't", "n’t")) else word for word in words]
    letters = scope_letters(plain, [LETTERS[kind] for kind in kinds])
    positions = {absent.start() for absent in ABSENT.finditer(letters)}
    for rule in SCOPES:
        for scope in rule.finditer(letters):
            reached = range(*scope.span("reach"))
            # A noun in a scope is not enough: in `a red bill, not a bill`, it is red.
            positions.update(i for i in reached if kinds[i] != "noun")
    return positions
