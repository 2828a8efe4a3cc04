"""The output of a model's frozen part for each image or caption, or pixels, in a file mapped into
memory.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import torch

from compclip.clip.device import is_gpu, to_device, to_device_at_once
from compclip.core.artifacts.disk import check_space
from compclip.core.artifacts.sealed import is_whole, sealed
from compclip.core.progress import Progress

GPU_FRACTION = 0.5  # of a GPU's free memory; the training needs the rest


@dataclass
class Activations:
    """An array of ``shape`` (rows, ...) in a file and, if it fits, its copy on the GPU."""

    file: Path
    shape: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device

    def __post_init__(self) -> None:
        self.size = math.prod(self.shape) * self.dtype.itemsize  # bytes

    def write(self, batches: Iterable[torch.Tensor], description: str) -> None:
        """Report the file's size and write it from ``batches`` of rows, in order; keep an undamaged
        file.
        """
        if is_whole(self.file, "computed again"):
            return
        self.file.parent.mkdir(parents=True, exist_ok=True)
        check_space(self.size, self.file.parent, f"computing once: {description}")
        # Hashing and writing take about as long as computing on a GPU.
        writer = ThreadPoolExecutor(1)
        with sealed(self.file) as file, writer, Progress(self.shape[0], "rows") as progress:
            writing: Future[int] | None = None
            for batch in batches:
                # numpy has no bfloat16, so the bytes are written.
                data = batch.cpu().contiguous().view(torch.uint8)
                if writing:
                    writing.result()
                writing = writer.submit(file.write, data.numpy().data)
                progress.add(len(batch))
            if writing:
                writing.result()

    def open(self) -> Self:
        """Map the file into memory, or copy it to the GPU; return the object."""
        n = math.prod(self.shape)  # without the seal at the end of the file
        rows = torch.from_file(str(self.file), size=n, dtype=self.dtype)
        self.table = rows.view(self.shape)
        if is_gpu(self.device):
            free, _ = torch.cuda.mem_get_info(self.device)
            if self.size < GPU_FRACTION * free:
                self.table = self.table.to(self.device)
        return self

    def batches(self, numbers: Sequence[torch.Tensor]) -> Iterator[torch.Tensor]:
        """Yield the rows of each batch, on the device; ``numbers``: of its rows, (k,) int64."""
        for rows in to_device_at_once(numbers, self.table.device):
            yield to_device(self.table.index_select(0, rows), self.device)
