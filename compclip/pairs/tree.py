"""The dependency tree of a caption: its words as nodes, lemmatized as in the lexicons."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from compclip.pairs.words import Vocabulary, Word

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token


class Tree(NamedTuple):
    """A node per word, in the text's order; several sentences have several roots."""

    labels: list[str]  # canonical words and lemmas
    heads: list[int]  # positions among the nodes; -1 at a root
    relations: list[str]  # the dependency label of each node


def tree(doc: Doc, words: list[Word], vocabulary: Vocabulary, at: dict[int, int]) -> Tree:
    """Return the tree of a parsed caption.

    A form of several words in a lexicon (`eye ring`) is one node. Words without a letter or a digit
    are not nodes: their children get their head.
    """
    tops = [doc[word.last] if word.first == word.last else _top(doc, word) for word in words]
    above = [at[top.head.i] for top in tops]  # a root is its own head
    labels = [vocabulary.label(word, top) for word, top in zip(words, tops, strict=True)]
    position = {n: k for k, n in enumerate(n for n, label in enumerate(labels) if label)}
    heads = []
    for n in position:
        head = above[n]
        while head not in position and above[head] != head:
            head = above[head]
        heads.append(-1 if head == n else position.get(head, -1))
    return Tree([labels[n] for n in position], heads, [tops[n].dep_ for n in position])


def _top(doc: Doc, word: Word) -> Token:
    """Return the token of a word that is closest to the root, so that words cannot form a cycle."""
    return min(
        doc[word.first : word.last + 1],
        key=lambda token: (sum(1 for _ in token.ancestors), -token.i),
    )
