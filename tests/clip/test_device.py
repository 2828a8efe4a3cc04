"""The settings of torch."""

import platform
import subprocess
import sys

import pytest

# 20 MB have 5,000 pages. The first tensors still come from the kernel.
FAULTS = """
import resource, torch
from workflow_scripts.clip.device import settle
settle(1)
faults = []
for _ in range(20):
    torch.ones(20, 2**18)
    faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)
print(faults[-1] - faults[9])
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs mallopt")
def test_freed_memory_is_used_again() -> None:
    done = subprocess.run([sys.executable, "-c", FAULTS], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 5000, "the kernel cleared pages again"
