"""The trees of many texts: what is parsed, and as what they come back."""

from pathlib import Path

import pytest

from tests.divergence.weighing import samples_of
from workflow_scripts.core.cache import Cache
from workflow_scripts.divergence.subgraphs import find_subgraphs
from workflow_scripts.divergence.trees import Forest, plant, read_forest
from workflow_scripts.pairs.engine import Extractor, decode_tree
from workflow_scripts.pairs.tree import Tree
from workflow_scripts.text.lexicon import load_lexicon
from workflow_scripts.text.parsing import fill

LEXICONS = Path(__file__).resolve().parents[2] / "lexicons"
TEXTS = ["a red bird", " ", "its beak is long", "!", "a red bird", "wings that are grey, and a long tail"]


@pytest.fixture(scope="module")
def extractor() -> Extractor:
    adjectives = [load_lexicon(LEXICONS / "adjectives" / f"{name}.yaml") for name in ("color", "shape")]
    return Extractor("en_core_web_sm", adjectives, load_lexicon(LEXICONS / "nouns" / "birds.yaml"))


def uproot(forest: Forest) -> list[Tree]:
    """The trees of a forest."""
    result = []
    for begin, end in zip(forest.offsets, forest.offsets[1:], strict=False):
        labels = [forest.label_names[c] for c in forest.labels[begin:end]]
        relations = [forest.relation_names[c] for c in forest.relations[begin:end]]
        result.append(Tree(labels, forest.heads[begin:end].tolist(), relations))
    return result


def test_a_forest_holds_its_trees() -> None:
    planted = [Tree(["a", "b", "a"], [1, -1, 1], ["r", "ROOT", "s"]), Tree([], [], []), Tree(["b"], [-1], ["ROOT"])]
    forest = plant(planted)
    assert uproot(forest) == planted and len(forest) == 3
    assert sorted(forest.label_names) == ["a", "b"] and len(plant([])) == 0


@pytest.mark.parametrize("processes", [1, 2])
def test_only_what_is_not_known_is_parsed(tmp_path, extractor, monkeypatch, processes: int) -> None:
    blocks = [TEXTS[:2], TEXTS[2:]]
    expected = [decode_tree(value) for value in extractor.parse(TEXTS)]
    with Cache(tmp_path / "c.sqlite") as cache:
        assert fill(extractor, cache, [TEXTS[:3]], processes) == 2  # as stage pairs does
        assert uproot(read_forest(extractor, cache, lambda: blocks, len(TEXTS), processes)) == expected
        monkeypatch.setattr(Extractor, "parse", None)
        assert uproot(read_forest(extractor, cache, lambda: [TEXTS[::-1]], len(TEXTS), processes)) == expected[::-1]


def test_compounds_of_real_captions(tmp_path, extractor) -> None:
    """Read by eye: canonical words, children in the order of their names."""
    with Cache(tmp_path / "c.sqlite") as cache:
        texts = ["a bird with a small yellow beak", "a long bill"]
        found = find_subgraphs(read_forest(extractor, cache, lambda: [texts], 2, 1))
    samples = samples_of(found, [[0], [1]])
    assert samples.atom_names == ["a", "bill", "bird", "long", "small", "with", "yellow"]
    assert samples.atoms.toarray().tolist() == [[2, 1, 1, 0, 1, 1, 1], [1, 1, 0, 1, 0, 0, 0]]
    assert samples.compound_names == [
        "bill(amod:long det:a)", "bill(det:a)",
        "bird(det:a prep:with(pobj:bill(amod:small)))", "bird(det:a prep:with(pobj:bill(amod:yellow)))",
        "bird(det:a prep:with(pobj:bill(det:a)))", "bird(prep:with(pobj:bill(amod:small amod:yellow)))",
        "bird(prep:with(pobj:bill(amod:small det:a)))", "bird(prep:with(pobj:bill(amod:yellow det:a)))",
    ]  # fmt: skip
    weights = samples.compounds.toarray().tolist()
    assert weights[0] == [0, 0.5, 1, 1, 1, 1, 1, 1] and weights[1] == [1, 0.5, 0, 0, 0, 0, 0, 0]
