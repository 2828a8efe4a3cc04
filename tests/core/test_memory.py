"""Too little memory to read a good file is not blamed on the file, and no reader waits for memory forever."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import safetensors.torch
import torch
from PIL import Image

from compclip import io

# Each reads a file whose content takes more than the bytes that remain.
READERS = {
    "table.parquet": "from compclip.io import read_frame as read; import pyarrow.parquet",
    "own.parquet": "from compclip.core.records import read_records as r; read = lambda file: r(file, ['text'])",
    "image.png": "from compclip.core.pictures import read_rgb as read",
    "other.png": "from compclip.core.pictures import image_size as read",
    "weights.safetensors": "from compclip.clip.weights import read_weights as read",
}
LIMITED = """
import resource
from pathlib import Path
from compclip.core.cli import one_line_errors, start_logging
{reader}
start_logging()
used = resource.getpagesize() * int(Path("/proc/self/statm").read_text().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (used + {left}, used + {left}))
with one_line_errors():
    read({file!r})
"""


@pytest.mark.skipif(sys.platform != "linux", reason="sizes of processes are read from /proc")
@pytest.mark.parametrize("name", READERS)
def test_too_little_memory_is_named(name: str, tmp_path: Path) -> None:
    file = tmp_path / name
    draw = np.random.default_rng(0)
    if file.suffix == ".parquet":
        texts = draw.integers(0, 1 << 62, (200_000, 2)).astype(str)
        io.write_frame(pd.DataFrame(texts, columns=["image_id", "text"]).astype("str"), file)
    elif file.suffix == ".png":
        Image.fromarray(draw.integers(0, 255, (2000, 2000, 3), dtype=np.uint8)).save(file, compress_level=1)
    else:
        safetensors.torch.save_file({"a": torch.zeros(10_000_000)}, file)
    script = LIMITED.format(reader=READERS[name], left=2_000_000, file=str(file))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr == f"error: {file}: not enough memory to read it; close other programs and run again\n"
