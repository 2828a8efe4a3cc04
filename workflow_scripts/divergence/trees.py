"""The dependency trees of many texts as flat arrays."""

from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from workflow_scripts.core.cache import Cache
from workflow_scripts.core.cli import log
from workflow_scripts.core.progress import Progress
from workflow_scripts.divergence.scratch import Scratch
from workflow_scripts.pairs.engine import Extractor, decode_tree
from workflow_scripts.pairs.tree import Tree
from workflow_scripts.text.parsing import fill, values


@dataclass(frozen=True)
class Forest:
    """The dependency trees of texts, nodes in the order of the text; a text without words has an empty tree."""

    label_names: list[str]
    relation_names: list[str]
    labels: np.ndarray  # of each node, a position in ``label_names`` (int32)
    relations: np.ndarray  # of each node, a position in ``relation_names`` (int32)
    heads: np.ndarray  # of each node, a position in its own tree; -1 at roots (int32)
    offsets: np.ndarray  # where each tree begins, and the end (int64)
    scratch: Scratch  # has the nodes

    def __len__(self) -> int:
        return len(self.offsets) - 1


def plant(trees: Iterable[Tree], folder: Path | None = None) -> Forest:
    """Put ``trees`` into files in ``folder``."""
    offsets, label_codes, relation_codes = array("q", [0]), dict[str, int](), dict[str, int]()
    scratch = Scratch(folder)
    with scratch.file() as labels, scratch.file() as relations, scratch.file() as heads:
        for tree in trees:
            labels.write(array("i", [label_codes.setdefault(label, len(label_codes)) for label in tree.labels]))
            relations.write(
                array("i", [relation_codes.setdefault(name, len(relation_codes)) for name in tree.relations])
            )
            heads.write(array("i", tree.heads))
            offsets.append(offsets[-1] + len(tree.heads))
        nodes = [scratch.map(file, np.int32) for file in (labels, relations, heads)]
    ends = np.frombuffer(offsets, np.int64)
    return Forest(list(label_codes), list(relation_codes), nodes[0], nodes[1], nodes[2], ends, scratch)


def read_forest(
    extractor: Extractor,
    cache: Cache,
    texts: Callable[[], Iterable[list[str]]],
    n: int,
    processes: int,
    folder: Path | None = None,
) -> Forest:
    """Return the trees of n texts; those that are not in the cache of stage ``pairs`` are parsed.

    Args:
        texts: yields them anew at each call, in blocks, of which one is held at a time.
    """
    with Progress(n, "texts") as progress:
        parsed = fill(extractor, cache, texts(), processes, progress.add)
    if parsed:
        log.info("%d texts parsed; the others were cached", parsed)

    def trees() -> Iterable[Tree]:
        for block in texts():
            for value in values(extractor, cache, block):
                yield Tree([], [], []) if value is None else decode_tree(value)

    return plant(trees(), folder)
