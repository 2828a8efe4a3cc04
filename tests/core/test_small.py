"""Seeds, plugins, progress, memory."""

import logging
import platform
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compclip.core import seeds
from compclip.core.errors import UserError
from compclip.core.progress import Progress, track
from compclip.core.settings import plugins

KEYS = st.lists(st.one_of(st.text(max_size=4), st.integers(0, 99)), max_size=3)


@given(st.integers(0, 9), KEYS, st.integers(0, 9), KEYS)
def test_seeds_differ_where_their_keys_do(one: int, a: list, two: int, b: list) -> None:
    same = (one, a) == (two, b)
    assert (seeds.derive_seed(one, *a) == seeds.derive_seed(two, *b)) == same
    assert 0 <= seeds.derive_seed(one, *a) < 2**63


def test_a_stream_depends_on_its_keys_alone() -> None:
    first = seeds.rng(0, "step", "a").random(5)
    seeds.rng(0, "step", "b").random(100)
    assert (seeds.rng(0, "step", "a").random(5) == first).all()
    # The published numbers of this version: a change of them changes every artifact.
    assert seeds.derive_seed(0, "step", 1) == seeds.derive_seed(np.int64(0), "step", 1)
    known = plugins.available("compclip.dataset.sources")
    assert {"cub", "sketch", "table"} <= set(known) and list(known) == sorted(known)
    assert plugins.load("compclip.dataset.sources", "cub").Settings
    with pytest.raises(UserError, match=r"dataset.sources: unknown 'os'; allowed: cub, "):
        plugins.load("compclip.dataset.sources", "os")


def test_progress_counts_and_speaks(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    from compclip.core import progress

    now = iter(range(0, 1000, 10))
    monkeypatch.setattr(progress.time, "monotonic", lambda: float(next(now)))
    with caplog.at_level(logging.INFO), Progress(4, "birds") as bar:
        for _ in range(4):
            bar.add()
    assert bar.done == 4
    assert [record.getMessage().split(" (")[0] for record in caplog.records] == [
        "2 of 4 birds",
        "4 of 4 birds",
    ]
    assert list(track(iter("abc"), None, "letters")) == ["a", "b", "c"]


# Prints the page faults of 8 blocks of 40 MiB, each freed before the next. By default, malloc keeps
# blocks of up to 32 MiB.
PAGE_FAULTS = """
import resource
from compclip.core.memory import keep_freed_memory
if {keeps}:
    keep_freed_memory()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for number in range(8):
    block = b"x" * (40 << 20)
    del block
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries have no mallopt")
def test_freed_memory_serves_again() -> None:
    faults = {}
    for keeps in (False, True):
        code = PAGE_FAULTS.format(keeps=keeps)
        command = [sys.executable, "-c", code]
        faults[keeps] = int(subprocess.run(command, check=True, capture_output=True).stdout)
    # Eight blocks have the pages of one, and a few more.
    assert faults[True] < faults[False] / 4
