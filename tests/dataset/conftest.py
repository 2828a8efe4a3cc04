"""Archives as small as can be, in the layout of the real ones."""

import io
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from scipy.io import savemat

from compclip.core.identity.fingerprint import fingerprint
from compclip.dataset.source import Loaded
from compclip.dataset.sources import table
from tests.loopback import Handler, serving
from tests.scripts import job
from workflow_scripts.job import Job


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


def load_job(root: Path, source: str, limit: int | None = None, /, **settings: Any) -> Job:
    """The job for a source; data set ``mine`` below ``root / "results"``."""
    place = root / "results" / "mine"
    files = {
        "captions": "captions.parquet",
        "images": "images.parquet",
        "folder": "images",
        "summary": "dataset.json",
    }
    return job(
        {},
        {name: place / file for name, file in files.items()} | {"tables": []},
        source=source,
        settings=settings,
        limit=limit,
        seed=0,
        files=[],
        contents=fingerprint(),
        cache=root / "cache",
        results=f"{root}/results",
    )


def load_table(file: Path, folder: Path, limit: int | None = None, **settings: Any) -> Loaded:
    """What source ``table`` loads, with all captions in one table."""
    folder.mkdir(exist_ok=True)
    given = table.Settings(file=str(file), **settings)
    loaded = table.load(given, seed=0, limit=limit, folder=folder, cache=folder, scratch=folder)
    return replace(loaded, captions=pd.concat(loaded.captions, ignore_index=True))


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
    captions = {
        f"text/{b}.txt": f"a red bird {n}\nits bill is short {n}\n".encode()
        for n, b in enumerate(BIRDS)
    }
    zipped(root / "cub_captions.zip", captions)
    with_photograph = [*BIRDS[:3], "003.Sooty_Albatross/Sooty_Albatross_0001_1"]
    images = {f"CUB_200_2011/images/{b}.jpg": jpeg(n) for n, b in enumerate(with_photograph)}
    lists = {
        "CUB_200_2011/images.txt": "".join(
            f"{n} {b}.jpg\n" for n, b in enumerate([*with_photograph, BIRDS[3]], 1)
        ),
        "CUB_200_2011/bounding_boxes.txt": "".join(
            f"{n} {n}.0 2.0 20.0 10.5\n" for n in range(1, 6)
        ),
        "CUB_200_2011/classes.txt": "1 001.Black_footed_Albatross\n",
        "CUB_200_2011/images/001.Black_footed_Albatross/._note.jpg": "a Mac's",
    }
    tar(root / "CUB_200_2011.tgz", {name: text.encode() for name, text in lists.items()} | images)
    return root


def flowers_files(root: Path, labels: list[int], captioned: list[int] | None = None) -> Path:
    """Photographs of one flower a label, in the published layout; captions of those numbers, or of
    all.
    """
    root.mkdir(exist_ok=True)
    tar(
        root / "102flowers.tgz",
        {f"jpg/image_{n:05d}.jpg": jpeg(n) for n in range(1, len(labels) + 1)},
    )
    savemat(root / "imagelabels.mat", {"labels": np.array([labels], dtype="uint8")})
    members = {
        "cvpr2016_flowers/allclasses.txt": b"class_00001\n",
        "cvpr2016_flowers/images/class_00001.t7": b"\0",
    }
    for number in captioned or range(1, len(labels) + 1):
        folder = f"cvpr2016_flowers/text_c10/class_{dict(enumerate(labels, 1)).get(number, 1):05d}"
        members |= {
            f"{folder}.t7": b"\0\1",
            f"{folder}/image_{number:05d}.txt": f"a red flower {number}\nits petals are long "
            f"{number}\n".encode(),
            f"{folder}/image_{number:05d}.t7": b"\0\2",
            f"{folder}/class.txt": b"not a caption",
        }
    tar(root / "cvpr2016_flowers.tar.gz", members)
    return root


@dataclass
class Site:
    """A server. ``files``: what each path holds; ``failing``: answers that end early; ``asked``:
    paths.
    """

    address: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    failing: int = 0
    asked: list[str] = field(default_factory=list)


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr("pooch.core.time.sleep", lambda seconds: None)
    state = Site()

    class Files(Handler):
        def do_GET(self) -> None:
            state.asked.append(self.path)
            content = state.files.get(self.path)
            if content is None:
                self.send_error(404)
            elif state.failing:
                state.failing -= 1
                self.answer(200, content[: len(content) // 2], {"Content-Length": len(content)})
                self.close_connection = True
            else:
                self.answer(200, content)

    with serving(Files) as state.address:
        yield state
