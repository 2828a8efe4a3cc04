"""Archives as small as can be, in the layout of the real ones."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image


def jpeg(seed: int = 0, size: tuple[int, int] = (40, 30)) -> bytes:
    """Noise: a file whose damage shows."""
    pixels = np.random.default_rng(seed).integers(0, 255, (size[1], size[0], 3), dtype="uint8")
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "JPEG", quality=90)
    return buffer.getvalue()


def tar(path: Path, members: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


def zipped(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return path


BIRDS = [
    "001.Black_footed_Albatross/Black_Footed_Albatross_0001_796111",
    "001.Black_footed_Albatross/Black_Footed_Albatross_0002_55",
    "182.Yellow_Warbler/Yellow_Warbler_0026_176337",
    "200.Common_Yellowthroat/Common_Yellowthroat_0003_190521",
]


@pytest.fixture
def cub_archives(tmp_path: Path) -> Path:
    """Captions of four birds; photographs of the first three, and one that has no captions."""
    root = tmp_path / "archives"
    root.mkdir()
    captions = {f"text/{b}.txt": f"a red bird {n}\nits bill is short {n}\n".encode() for n, b in enumerate(BIRDS)}
    zipped(root / "cub_captions.zip", captions)
    with_photograph = [*BIRDS[:3], "003.Sooty_Albatross/Sooty_Albatross_0001_1"]
    images = {f"CUB_200_2011/images/{b}.jpg": jpeg(n) for n, b in enumerate(with_photograph)}
    lists = {
        "CUB_200_2011/images.txt": "".join(f"{n} {b}.jpg\n" for n, b in enumerate([*with_photograph, BIRDS[3]], 1)),
        "CUB_200_2011/bounding_boxes.txt": "".join(f"{n} {n}.0 2.0 20.0 10.5\n" for n in range(1, 6)),
        "CUB_200_2011/classes.txt": "1 001.Black_footed_Albatross\n",
        "CUB_200_2011/images/001.Black_footed_Albatross/._note.jpg": "a Mac's",
    }
    tar(root / "CUB_200_2011.tgz", {name: text.encode() for name, text in lists.items()} | images)
    return root
