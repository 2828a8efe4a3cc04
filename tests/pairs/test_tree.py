"""Trees: real captions read by eye, spaCy's own heads and lemmas, and what holds for any text."""

import pytest
import spacy
from hypothesis import given, settings
from hypothesis import strategies as st

from compclip.core.reading.normal import Normalized, normalize
from compclip.pairs.engine import decode_tree
from compclip.pairs.tree import Tree
from compclip.text.language import installed_name

from .conftest import MODEL

READ = {
    "this bird has a yellow belly, and its beak is long.": (
        "this<det<bird bird<nsubj<have have<ROOT< a<det<belly yellow<amod<belly belly<dobj<have "
        "and<cc<have"
        " its<poss<bill bill<nsubj<be be<conj<have long<acomp<be"
    ),
    # A form of several words is one node, however it is written. (The parser hangs the last on
    # `bird`, the `and` not.)
    "a grey bird with white eye rings and a wing-bar": (
        "a<det<bird gray<amod<bird bird<ROOT< with<prep<bird white<amod<eyering eyering<pobj<with "
        "and<cc<eyering"
        " a<det<wingbar wingbar<conj<bird"
    ),
    # Two sentences, two roots; an adjective that no lexicon lists stays as it stands.
    "it flies. its spotted wings are seen by all": (
        "it<nsubj<fly fly<ROOT< its<poss<wing spotted<amod<wing wing<nsubjpass<see be<auxpass<see "
        "see<ROOT<"
        " by<agent<see all<pobj<by"
    ),
}
WORDS = (
    "a the bird wings wing bars beak eye ring grey pointed spotted has is flying and with".split()
)
WORDS += "on , . - / ( ) !".split()


@pytest.fixture(scope="module")
def read(extractor):
    return lambda text: decode_tree(extractor.parse([text])[0])


def written(tree: Tree) -> str:
    heads = [tree.labels[head] if head >= 0 else "" for head in tree.heads]
    return " ".join("<".join(node) for node in zip(tree.labels, tree.relations, heads, strict=True))


def test_what_hangs_on_punctuation_hangs_on_its_head(extractor) -> None:
    """spaCy seldom hangs a word on a comma: here it is told to."""
    from spacy.tokens import Doc

    words = ["red", ",", "bird", "-", "sings"]
    for heads, expected in (([1, 2, 4, 4, 4], [1, 2, -1]), ([1, 3, 1, 3, 2], [-1, -1, 1])):
        tags = ["JJ", ",", "NN", "HYPH", "VBZ"]
        doc = Doc(
            extractor.nlp.vocab, words=words, heads=heads, deps=["a", "b", "c", "d", "e"], tags=tags
        )
        tree = decode_tree(extractor._encode(doc, Normalized(doc.text)))
        assert tree == (["red", "bird", "sing"], expected, ["a", "c", "e"])


@settings(max_examples=60)
@given(st.lists(st.sampled_from(WORDS), max_size=20).map(" ".join) | st.text(max_size=30))
def test_any_text_gives_a_forest(extractor, read, text: str) -> None:
    tree = read(text)
    n = len(tree.labels)
    assert len(tree.heads) == len(tree.relations) == n
    assert all(any(map(str.isalnum, label)) for label in tree.labels)
    for v in range(n):
        steps = 0
        while v >= 0:
            v, steps = tree.heads[v], steps + 1
        assert steps <= n  # no ring
    doc = extractor.nlp(normalize(text).text)
    nodes = [token for token in doc if any(map(str.isalnum, token.text))]
    if len(nodes) == n:  # no form of several words: heads are spaCy's
        for token, head in zip(nodes, tree.heads, strict=True):
            above = next((t for t in token.ancestors if t in nodes), None)
            assert head == (nodes.index(above) if above is not None else -1)


def test_real_captions_texts_without_words_and_lemmas_of_spacy(read) -> None:
    """Of words that are neither adjectives nor nouns: what the whole pipeline says of them in their
    sentence.
    """
    for text, tree in READ.items():
        assert written(read(text)) == tree
    for text in ("", "!?", " - . "):
        assert read(text) == ([], [], [])
    whole = spacy.load(installed_name(MODEL))
    for text in (
        "it was flying over the water while they were sitting there and have seen us",
        "the birds, which had been eating seeds, sat on it and didn't sing",
        "he goes quickly to them; she's standing with both of its feet upon it and holding on",
    ):
        lemmas = dict(
            zip(
                [t.lower_ for t in whole(text)],
                [t.lemma_.lower() for t in whole(text)],
                strict=True,
            )
        )
        for word, label in zip(
            [t for t in whole(text) if not t.is_punct], read(text).labels, strict=True
        ):
            if word.pos_ not in ("NOUN", "ADJ"):
                assert label == lemmas[word.lower_], text
