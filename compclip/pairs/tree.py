"""The dependency tree of a caption: its words as nodes, lemmatized as in the lexicons."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from compclip.pairs.words import Vocabulary, Word

if TYPE_CHECKING:
    from spacy.tokens import Token


class Tree(NamedTuple):
    """A node per word, in the text's order; several sentences have several roots."""

    labels: list[str]  # canonical words and lemmas
    heads: list[int]  # positions among the nodes; -1 at a root
    relations: list[str]  # the dependency label of each node


def tree(
    tokens: Sequence[Token],
    words: list[Word],
    vocabulary: Vocabulary,
    word_of_token: dict[int, int],
) -> Tree:
    """Return the tree of a parsed caption.

    A form of several words in a lexicon (`eye ring`) is one node. Words without a letter or a digit
    are not nodes: their children get their head.
    """
    tops = [_top(tokens, word) for word in words]
    head_words = [word_of_token[top.head.i] for top in tops]  # a root is its own head
    labels = [vocabulary.label(word, top) for word, top in zip(words, tops, strict=True)]
    node_words = [n for n, label in enumerate(labels) if label]
    node_of_word = {n: node for node, n in enumerate(node_words)}
    heads = []
    for n in node_words:
        head = head_words[n]
        # Climb over words that are not nodes, up to a root.
        while head not in node_of_word and head_words[head] != head:
            head = head_words[head]
        heads.append(-1 if head == n else node_of_word.get(head, -1))
    relations = [tops[n].dep_ for n in node_words]
    return Tree([labels[n] for n in node_words], heads, relations)


def _top(tokens: Sequence[Token], word: Word) -> Token:
    """Return the token of a word that is closest to the root, so that words cannot form a cycle."""
    if word.first == word.last:
        return tokens[word.last]

    def depth(token: Token) -> tuple[int, int]:
        return sum(1 for _ in token.ancestors), -token.i

    return min(tokens[word.first : word.last + 1], key=depth)
