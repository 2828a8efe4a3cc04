"""How this process gives memory back."""

import ctypes

M_TRIM_THRESHOLD = -1
M_MMAP_THRESHOLD = -3
KEPT = 2**30  # bytes


def keep_freed_memory() -> None:
    """Let glibc's malloc keep up to 1 GiB of freed memory, and so serve large blocks again.

    By default it returns blocks of more than 32 MiB at once, and the kernel clears new pages for
    the next large array: a fifth of the time of a training, a sixth of that of a divergence. It
    changes no result.
    """
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):  # other C libraries than glibc have none
        for parameter in (M_TRIM_THRESHOLD, M_MMAP_THRESHOLD):
            libc.mallopt(parameter, KEPT)
