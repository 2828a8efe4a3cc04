"""Too little memory is said to be that, and a good file is not blamed for it."""

import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

# Reads the file with so many bytes of address space more than the imports have taken.
READ = """
import resource, sys
from pathlib import Path
import pandas, pyarrow.parquet
import pandas.io.parquet
from compclip.io import read_frame
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
limit = used + int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
    print(len(read_frame(sys.argv[1])))
except MemoryError:
    print("memory")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited as Linux does")
def test_parquet_without_memory(tmp_path: Path) -> None:
    file = tmp_path / "table.parquet"
    pd.DataFrame({"text": [f"caption {number}" for number in range(200_000)]}).to_parquet(file)
    said = []
    for megabytes in (15, 25, 60, 4000):
        arguments = [sys.executable, "-c", READ, str(file), str(megabytes << 20)]
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=120)
        said.append(done.stdout.strip())
        assert done.stdout in ("200000\n", "memory\n"), done.stderr
    assert said[-1] == "200000" and "memory" in said
