"""Derive the random generator of a step from the config's seed, the step's name and its keys."""

import hashlib
import json

import numpy as np


def derive_seed(seed: int, *keys: str | int) -> int:
    """Return a 63-bit seed that depends on ``seed`` and on every key, in order, and on nothing else."""
    text = json.dumps([int(seed), *keys], ensure_ascii=True)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


def rng(seed: int, *keys: str | int) -> np.random.Generator:
    """Return the generator for ``keys``; the same keys give the same stream, whatever ran before."""
    return np.random.Generator(np.random.PCG64(derive_seed(seed, *keys)))
