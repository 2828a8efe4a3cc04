"""The dependency trees of many texts as flat arrays."""

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from workflow_scripts.core.cache import Cache
from workflow_scripts.core.cli import log
from workflow_scripts.core.progress import Progress
from workflow_scripts.pairs.engine import Extractor, decode_tree
from workflow_scripts.pairs.tree import Tree
from workflow_scripts.text.parsing import fill, values

# Texts in memory at once.
BATCH = 4096


@dataclass(frozen=True)
class Forest:
    """The dependency trees of texts, nodes in the order of the text; a text without words has an empty tree."""

    label_names: list[str]
    relation_names: list[str]
    labels: np.ndarray  # of each node, a position in ``label_names`` (int32)
    relations: np.ndarray  # of each node, a position in ``relation_names`` (int32)
    heads: np.ndarray  # of each node, a position in its own tree; -1 at roots (int32)
    offsets: np.ndarray  # where each tree begins, and the end (int64)

    def __len__(self) -> int:
        return len(self.offsets) - 1


def plant(trees: Iterable[Tree]) -> Forest:
    labels, relations, heads, offsets = array("i"), array("i"), array("i"), array("q", [0])
    label_codes, relation_codes = dict[str, int](), dict[str, int]()
    for tree in trees:
        labels.extend([label_codes.setdefault(label, len(label_codes)) for label in tree.labels])
        relations.extend([relation_codes.setdefault(name, len(relation_codes)) for name in tree.relations])
        heads.extend(tree.heads)
        offsets.append(len(heads))
    nodes = [np.frombuffer(values, np.int32) for values in (labels, relations, heads)]
    return Forest(
        list(label_codes), list(relation_codes), nodes[0], nodes[1], nodes[2], np.frombuffer(offsets, np.int64)
    )


def read_forest(extractor: Extractor, cache: Cache, texts: Sequence[str] | pd.Index, processes: int) -> Forest:
    """Return the trees of ``texts``; those that are not in the cache of stage ``pairs`` are parsed."""

    def batches() -> Iterable[list[str]]:
        return (list(texts[start : start + BATCH]) for start in range(0, len(texts), BATCH))

    with Progress(len(texts), "texts") as progress:
        parsed = fill(extractor, cache, batches(), processes, progress.add)
    if parsed:
        log.info("%d texts parsed; the others were cached", parsed)

    def trees() -> Iterable[Tree]:
        for batch in batches():
            for value in values(extractor, cache, batch):
                yield Tree([], [], []) if value is None else decode_tree(value)

    return plant(trees())
