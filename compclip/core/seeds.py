"""Derive the random generator of a step from the config's seed, the step's name and its keys."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np


def derive_seed(seed: int, *keys: str | int) -> int:
    """Return a 63-bit seed that depends only on ``seed`` and the keys, in order."""
    text = json.dumps([int(seed), *keys], ensure_ascii=True)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


def rng(seed: int, *keys: str | int) -> np.random.Generator:
    """Return the random generator for ``seed`` and ``keys``; the same keys always give the same
    stream.
    """
    import numpy as np

    return np.random.Generator(np.random.PCG64(derive_seed(seed, *keys)))
