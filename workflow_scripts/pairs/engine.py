"""Occurrences and trees of many captions: each distinct text once, by worker processes, kept in a cache.

What a text gives depends on the text, the pipeline, the lexicons and this code alone, all of which are in
the cache's key: not on the batch, the process or the order.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from typing import TYPE_CHECKING

from workflow_scripts.common.cache import Cache, key
from workflow_scripts.common.code import code_hash
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.lexicon import Lexicon
from workflow_scripts.pairs.language import identity, load_language
from workflow_scripts.pairs.occurrences import Occurrence, occurrences
from workflow_scripts.pairs.tree import Tree, tree
from workflow_scripts.pairs.words import Vocabulary, spans

if TYPE_CHECKING:
    from spacy.tokens import Doc

CHUNK = 256  # texts that a worker takes at once
ENCODE = json.JSONEncoder(separators=(",", ":")).encode


class Extractor:
    """``extractor.parse(texts)`` in this process; ``keys`` names each text's place in the cache.

    Args:
        model: the pipeline's name in the config
        adjectives: the adjective lexicons
        nouns: the noun lexicon, or None where any noun goes
    """

    def __init__(self, model: str, adjectives: Sequence[Lexicon], nouns: Lexicon | None) -> None:
        self.nlp = load_language(model)
        self.vocabulary = Vocabulary(self.nlp, adjectives, nouns)
        lexicons = [[lexicon.name, sorted(lexicon.forms.items())] for lexicon in (*adjectives, nouns) if lexicon]
        self.context = key(
            code_hash(*(f"workflow_scripts.pairs.{module}" for module in ("language", "occurrences", "tree"))),
            identity(model),
            json.dumps([lexicons, nouns is None]),
        )

    def keys(self, texts: Iterable[str]) -> list[bytes]:
        return [key(self.context, text) for text in texts]

    def parse(self, texts: Sequence[str]) -> list[bytes]:
        """Each text's occurrences and, in a second line, its tree, encoded as they stand in the cache."""
        return [self._encode(doc) for doc in self.nlp.pipe(texts, batch_size=CHUNK)]

    def _encode(self, doc: Doc) -> bytes:
        words = self.vocabulary.words(doc)
        at = spans(words)
        found = occurrences(doc, words, at), tree(doc, words, self.vocabulary, at)
        return b"\n".join(ENCODE(part).encode() for part in found)


def decode(value: bytes) -> list[Occurrence]:
    """The occurrences that ``Extractor.parse`` encoded."""
    return [Occurrence(*row) for row in json.loads(value.partition(b"\n")[0])]


def decode_tree(value: bytes) -> Tree:
    """The tree that ``Extractor.parse`` encoded."""
    return Tree(*json.loads(value.partition(b"\n")[2]))


_extractor: Extractor | None = None


def _start(extractor: Extractor) -> None:
    global _extractor
    _extractor = extractor


def _work(texts: list[str]) -> list[bytes]:
    assert _extractor is not None
    return _extractor.parse(texts)


def parse_all(
    extractor: Extractor, items: Iterable[tuple[bytes, str]], processes: int
) -> Iterator[list[tuple[bytes, bytes]]]:
    """Parse texts given with their keys; yields keys with encoded occurrences, a chunk at a time, in any order.

    At most two chunks for each process are held at once, so that ``items`` may be endless.
    """
    source = iter(items)
    if processes == 1:
        while part := list(islice(source, CHUNK)):
            yield list(zip([k for k, _ in part], extractor.parse([t for _, t in part]), strict=True))
        return
    # A forked worker shares the loaded pipeline; elsewhere than on Linux forking is not safe.
    method = "fork" if sys.platform == "linux" else "spawn"
    context = multiprocessing.get_context(method)
    with ProcessPoolExecutor(processes, context, initializer=_start, initargs=(extractor,)) as pool:
        running: dict[Future[list[bytes]], list[bytes]] = {}
        try:
            while True:
                while len(running) < 2 * processes and (part := list(islice(source, CHUNK))):
                    running[pool.submit(_work, [t for _, t in part])] = [k for k, _ in part]
                if not running:
                    return
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    yield list(zip(running.pop(future), future.result(), strict=True))
        except BrokenProcessPool as error:
            raise UserError(
                "pairs: a worker process died, most likely for want of memory: run again, it resumes"
            ) from error
        finally:
            pool.shutdown(cancel_futures=True)


def fill(
    extractor: Extractor,
    cache: Cache,
    batches: Iterable[list[str]],
    processes: int,
    seen: Callable[[int], object] = lambda n: None,
) -> int:
    """Parse the distinct texts of ``batches`` that the cache does not hold, into it; how many there were.

    Blank texts are left out. ``seen`` is called with the size of each batch when its turn is over.
    """
    flying: set[bytes] = set()

    def new() -> Iterator[tuple[bytes, str]]:
        for texts in batches:
            keyed = {k: text for k, text in zip(extractor.keys(texts), texts, strict=True) if text.strip()}
            held = cache.get(list(keyed))
            # Claimed all at once: what is parsed while this batch is handed out must not be claimed again.
            mine = [k for k in keyed if k not in held and k not in flying]
            flying.update(mine)
            for k in mine:
                yield k, keyed[k]
            seen(len(texts))

    parsed = 0
    for part in parse_all(extractor, new(), processes):
        cache.put(part)
        flying.difference_update(k for k, _ in part)
        parsed += len(part)
    return parsed
