"""What the frozen part of a model gives, once for each image and caption, in a file mapped into memory."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

import torch

from workflow_scripts.clip.device import is_gpu
from workflow_scripts.core.disk import check_space
from workflow_scripts.core.io import atomic
from workflow_scripts.core.progress import Progress

# Of a GPU's free memory; the rest is the training's.
SHARE_OF_GPU = 0.5


class Activations:
    """A table of floats, as large as they come: a file, and on a GPU its copy there where that fits.

    shape: (rows, ...). The file holds the rows one after another, in the type in which they were computed.
    """

    def __init__(self, file: Path, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> None:
        self.file, self.shape, self.dtype, self.device = file, shape, dtype, device
        self.size = math.prod(shape) * dtype.itemsize

    def write(self, parts: Iterable[torch.Tensor], what: str) -> None:
        """Make the file of ``parts``, rows in order; the cost is said first. One that is there is kept."""
        if self.file.is_file():
            return
        self.file.parent.mkdir(parents=True, exist_ok=True)
        check_space(self.size, self.file.parent, f"computing what is frozen, once: {what}")
        with atomic(self.file) as temporary, temporary.open("wb") as file, Progress(self.shape[0], "rows") as progress:
            for part in parts:
                file.write(part.cpu().contiguous().view(torch.uint8).numpy())
                progress.add(len(part))

    def open(self) -> Activations:
        """Map the file, or copy it to the GPU; returns itself."""
        table = torch.from_file(str(self.file), size=math.prod(self.shape), dtype=self.dtype).view(self.shape)
        if is_gpu(self.device) and self.size < SHARE_OF_GPU * torch.cuda.mem_get_info(self.device)[0]:
            table = table.to(self.device)
        self.table = table
        return self

    def __getitem__(self, rows: torch.Tensor) -> torch.Tensor:
        """Rows by number, (k,) int64, on the device."""
        found = self.table.index_select(0, rows.to(self.table.device))
        if found.device.type != self.device.type:
            found = found.pin_memory().to(self.device, non_blocking=True)
        return found
