"""Other people's data sets: every format is streamed, what is skipped is counted, an epoch's order can be resumed."""

import io
import itertools
import json
import os
import random
import tarfile
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from workflow_scripts.core.errors import UserError
from workflow_scripts.specs import chunks, cut_captions, data, sources
from workflow_scripts.specs.chunks import Chunker
from workflow_scripts.specs.data import Example, open_examples
from workflow_scripts.specs.sources import read_entries
from workflow_scripts.specs.steps import CutCaptions

MODEL = "en_core_web_sm"
TEXTS = [f"A bird with {n} wings is sitting on a branch." for n in range(7)]


@pytest.fixture(scope="module")
def chunker() -> Chunker:
    return Chunker(MODEL)


@pytest.fixture(autouse=True)
def one_chunker(monkeypatch, chunker):
    """Load the pipeline once."""
    monkeypatch.setattr(chunks, "Chunker", lambda model: chunker)


def png(shade: int) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (4, 4), (shade, shade, shade)).save(out, "PNG")
    return out.getvalue()


def record(image: object, text: object) -> dict:
    turns = [{"from": "human", "value": "What do you see?\n<image>"}, {"from": "gpt", "value": text}]
    return {"id": "17", "image": image, "conversations": [*turns, {"from": "gpt", "value": "And more."}]}


def pictures(folder: Path, count: int = len(TEXTS)) -> list[str]:
    """Write images below ``folder``; returns their paths."""
    names = [f"coco/train/{n}.png" for n in range(count)]
    (folder / "coco" / "train").mkdir(parents=True, exist_ok=True)
    for n, name in enumerate(names):
        (folder / name).write_bytes(png(n))
    return names


def write_json(folder: Path, texts: list[str]) -> tuple[Path, Path]:
    names = pictures(folder / "images", len(texts))
    (folder / "share.json").write_text(json.dumps([record(*row) for row in zip(names, texts, strict=True)]))
    return folder / "share.json", folder / "images"


def write_parquet(folder: Path, texts: list[str]) -> tuple[Path, Path]:
    names = pictures(folder / "images", len(texts))
    (folder / "tables").mkdir()
    table = pd.DataFrame({"other": 1, "text": texts, "image": names})
    half = len(texts) // 2
    table[:half].to_parquet(folder / "tables" / "a.parquet")
    table[half:].to_parquet(folder / "tables" / "b.parquet")
    return folder / "tables", folder / "images"


def add(shard: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    shard.addfile(member, io.BytesIO(content))


def write_tars(folder: Path, texts: list[str]) -> tuple[Path, None]:
    (folder / "shards").mkdir()
    half = len(texts) // 2
    for name, numbers in (("0.tar", range(half)), ("1.tar", range(half, len(texts)))):
        with tarfile.open(folder / "shards" / name, "w") as shard:
            for n in numbers:
                add(shard, f"./{n:06}.png", png(n))
                add(shard, f"./{n:06}.json", b"{}")
                add(shard, f"./{n:06}.txt", texts[n].encode())
    return folder / "shards", None


LAYOUTS = [write_json, write_parquet, write_tars]
layouts = pytest.mark.parametrize("layout", LAYOUTS, ids=["json", "parquet", "tar"])


def read(source: Path, images: Path | None = None) -> Iterator[Example]:
    """Yield the usable examples of a source in its order."""
    folder = sources.folder_of(source, images)
    for entry in sources.check_images(read_entries(source), folder):
        if not entry.fault:
            yield Example(sources.read_image(entry, folder), entry.text, entry.name)


def shade(example: Example) -> int:
    image = io.BytesIO(example.image) if isinstance(example.image, bytes) else example.image
    return Image.open(image).getpixel((0, 0))[0]


@layouts
def test_by_number_with_chunks_and_the_same_again_from_the_cache(tmp_path, layout, chunker, monkeypatch):
    source, images = layout(tmp_path, TEXTS)
    first = open_examples(source, images, MODEL, tmp_path / "cache", 1)
    assert len(first) == len({example.name for example in read(source, images)}) == len(TEXTS)
    assert [shade(example) for example in read(source, images)] == list(range(len(TEXTS)))
    assert [first[n] for n in range(len(first))] == list(zip(read(source, images), chunker.cut(TEXTS), strict=True))
    assert first.summary == {"examples": len(TEXTS), "left_out": {"count": 0, "reasons": {}, "names": []}}
    monkeypatch.setattr(data, "check_images", None)
    monkeypatch.setattr(data, "chunk_all", None)
    monkeypatch.setattr(chunks, "Chunker", None)
    again = open_examples(source, images, MODEL, tmp_path / "cache", 2)
    assert [again[n] for n in range(len(again))] == [first[n] for n in range(len(first))]
    assert again.identity == first.identity


@layouts
def test_an_epoch_can_be_resumed_anywhere(tmp_path, layout):
    source, images = layout(tmp_path, TEXTS)
    examples = open_examples(source, images, MODEL, tmp_path / "cache", 1)
    whole = [list(examples.stream(3, epoch)) for epoch in range(3)]
    for epoch in whole:
        assert sorted(example.text for example, _ in epoch) == TEXTS
    assert whole[0] != whole[1] != whole[2]
    elsewhere = open_examples(source, images, MODEL, tmp_path / "other", 1)
    assert elsewhere.identity == examples.identity
    for epoch, start in itertools.product(range(3), range(len(TEXTS) + 1)):
        assert list(elsewhere.stream(3, epoch, start)) == whole[epoch][start:]
    assert list(examples.stream(4, 0)) != whole[0]


def test_all_orders_are_equally_likely(tmp_path):
    examples = open_examples(*write_json(tmp_path, TEXTS), MODEL, tmp_path / "cache", 1)
    places = np.zeros((len(TEXTS), len(TEXTS)))
    for epoch in range(3000):
        places[examples.order(0, epoch), np.arange(len(TEXTS))] += 1
    expected = 3000 / len(TEXTS)
    # Chi-squared of a table with fixed margins: 36 degrees of freedom, 1 in 1,000 beyond 68.
    assert ((places - expected) ** 2 / expected).sum() < 68


def test_skipped_examples_are_named_and_counted(tmp_path, caplog, monkeypatch):
    names = pictures(tmp_path)
    (tmp_path / names[1]).write_bytes(png(1)[:40])
    (tmp_path / names[2]).write_text("no image")
    (tmp_path / names[3]).unlink()
    records = [
        *(record(name, text) for name, text in zip(names[:5], TEXTS, strict=False)),
        record(names[5], " "), record(names[6], None), {"image": names[0]}, {"image": names[0], "conversations": 3},
        record(None, "text alone"), 3,
    ]  # fmt: skip
    (tmp_path / "s.json").write_text(json.dumps(records))
    examples = open_examples(tmp_path / "s.json", None, MODEL, tmp_path / "cache", 1)
    assert "skipped: coco/train/1.png: not a readable image" in caplog.text
    assert [examples[n][0].text for n in range(len(examples))] == [TEXTS[0], TEXTS[4]]
    summary = examples.summary["left_out"]
    assert summary["reasons"] == {"names no image": 2, "no caption": 4, "not a readable image": 3}
    assert examples.summary["examples"] == 2 and summary["count"] == 9
    assert summary["names"][1:5] == [
        f"{names[2]}: not a readable image (no image of a known format)",
        f"{names[3]}: not a readable image (no such file)",
        f"{names[5]}: no caption (s.json: record 6)",
        f"{names[6]}: no caption (s.json: record 7)",
    ]
    assert summary["names"][-1] == "s.json: record 11: names no image"
    assert str(tmp_path) not in json.dumps(summary)


def rewrite(image: Path, content: bytes) -> None:
    """Write a file with a later modification time."""
    before = image.stat().st_mtime_ns
    image.write_bytes(content)
    os.utime(image, ns=(before + 10**9,) * 2)


def test_other_pictures_have_another_identity(tmp_path):
    """Even with the same names and sizes; the same bytes written again, or elsewhere, have the same identity."""
    source, images = write_json(tmp_path, TEXTS)
    before = open_examples(source, images, MODEL, tmp_path / "cache", 1)
    assert len(png(5)) == len(png(3))
    rewrite(images / "coco/train/3.png", png(5))
    after = open_examples(source, images, MODEL, tmp_path / "cache", 1)
    assert shade(after[3][0]) == 5 and len(after) == len(before) and after.identity != before.identity
    rewrite(images / "coco/train/3.png", png(3))
    assert open_examples(source, images, MODEL, tmp_path / "cache", 1).identity == before.identity
    (tmp_path / "there").mkdir()
    elsewhere = open_examples(*write_json(tmp_path / "there", TEXTS), MODEL, tmp_path / "cache", 1)
    assert elsewhere.folder != before.folder and elsewhere.identity == before.identity


def test_other_pictures_in_a_shard(tmp_path):
    source, _ = write_tars(tmp_path, TEXTS)
    before = open_examples(source, None, MODEL, tmp_path / "cache", 1)
    shard = max(source.glob("*.tar"))
    image = before[len(before) - 1][0].image
    rewrite(shard, shard.read_bytes().replace(image, png(9)))
    after = open_examples(source, None, MODEL, tmp_path / "cache", 1)
    assert shade(after[len(after) - 1][0]) == 9 and after.identity != before.identity


@pytest.mark.parametrize("spoil", [Path.unlink, lambda image: rewrite(image, b"no image")], ids=["gone", "broken"])
def test_an_image_that_is_lost_later_is_skipped(tmp_path, spoil):
    source, images = write_json(tmp_path, TEXTS)
    before = open_examples(source, images, MODEL, tmp_path / "cache", 1)
    image = images / "coco/train/3.png"
    whole = image.read_bytes()
    spoil(image)
    after = open_examples(source, images, MODEL, tmp_path / "cache", 1)
    assert len(after) == len(before) - 1 and after.summary["left_out"]["count"] == 1
    assert after.identity != before.identity
    image.write_bytes(whole)
    assert open_examples(source, images, MODEL, tmp_path / "cache", 1).identity == before.identity


def test_a_damaged_index_is_made_again(tmp_path, monkeypatch, caplog):
    source, images = write_json(tmp_path, TEXTS)

    def contents():
        examples = open_examples(source, images, MODEL, tmp_path / "cache", 1)
        return [examples[number][1:] for number in range(len(examples))], examples.identity, examples.summary

    before = contents()
    files = [path for path in (tmp_path / "cache" / "specs").glob("*_*.*")]
    assert len(files) == 3
    draw = random.Random(0)
    for file in files:
        whole = file.read_bytes()
        for _ in range(5):
            raw = bytearray(whole)
            raw[draw.randrange(len(raw))] ^= 1 << draw.randrange(8)
            file.write_bytes(raw)
            assert contents() == before and file.read_bytes() == whole
            assert f"{file}: damaged; " in caplog.text
            caplog.clear()


def test_a_changed_source_is_read_again(tmp_path):
    source, images = write_json(tmp_path, TEXTS)
    before = open_examples(source, images, MODEL, tmp_path / "cache", 1)
    source.write_text(json.dumps([record("coco/train/0.png", "another text")]))
    after = open_examples(source, images, MODEL, tmp_path / "cache", 1)
    assert after[0][0].text == "another text" and after.identity != before.identity


def test_no_usable_example(tmp_path):
    (tmp_path / "s.json").write_text(json.dumps([record("gone.png", "a bird")]))
    with pytest.raises(UserError, match="none of 1 examples is usable; check that --images"):
        open_examples(tmp_path / "s.json", None, MODEL, tmp_path / "cache", 1)


@pytest.mark.parametrize("path", ["../secret.png", "/etc/passwd", "a/../../b.png", "a\\..\\b.png", "a//b.png"])
@pytest.mark.parametrize("kind", ["json", "parquet"])
def test_paths_outside_the_folder_are_refused(tmp_path, path, kind):
    if kind == "json":
        (tmp_path / "s.json").write_text(json.dumps([record(path, "a bird")]))
    else:
        pd.DataFrame({"image": [path], "text": ["a bird"]}).to_parquet(tmp_path / "s.parquet")
    with pytest.raises(UserError, match=rf"s\.{kind}: record 1: image path .* is outside the folder of images"):
        list(read(tmp_path / f"s.{kind}"))


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["../1.png"], r"s.tar: unsafe member path '\.\./1.png'"),
        (["1.png", "1.txt", "2.txt", "./1.txt"], r"s.tar: contains '1.txt' twice; repack it with one"),
    ],
)
def test_bad_members_of_a_shard(tmp_path, names, message):
    with tarfile.open(tmp_path / "s.tar", "w") as shard:
        for name in names:
            add(shard, name, png(1))
    with pytest.raises(UserError, match=message):
        list(read(tmp_path / "s.tar"))


def test_incomplete_samples_of_a_shard(tmp_path):
    with tarfile.open(tmp_path / "s.tar", "w") as shard:
        for name, content in [
            ("a/1.png", png(1)), ("a/1.txt", b"\xef\xbb\xbf one "), ("a/2.png", png(2)), ("a/3.txt", b"three"),
            ("a/4.png", png(4)), ("a/4.txt", b"\xff\xfe"), ("b/4.JPG", png(5)), ("b/4.txt", b"five"),
            ("b/6.png", b"no image"), ("b/6.txt", b"six"), ("b/7.png", png(7)), ("b/7.txt", b"\n"),
        ]:  # fmt: skip
            add(shard, name, content)
        link = tarfile.TarInfo("b/8.png")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        shard.addfile(link)
        add(shard, "b/8.txt", b"eight")
    examples = open_examples(tmp_path / "s.tar", None, MODEL, tmp_path / "cache", 1)
    found = [examples[n][0] for n in range(len(examples))]
    assert [(e.name, e.text, shade(e)) for e in found] == [("s/a/1", "one", 1), ("s/b/4", "five", 5)]
    assert examples.summary["left_out"]["names"] == [
        "s/a/2: no caption", "s/a/3: no image", "s/a/4: the caption is not UTF-8",
        "s/b/6: not a readable image (no image of a known format)", "s/b/7: no caption",
        "s/b/8: no image",
    ]  # fmt: skip


@pytest.mark.parametrize("size", [700, 1024, 3000, None])
def test_a_damaged_shard_is_not_a_shorter_shard(tmp_path, size):
    """It is truncated to ``size`` bytes, or has a damaged header."""
    shard = write_tars(tmp_path, TEXTS)[0] / "1.tar"
    raw = bytearray(shard.read_bytes())
    if size is None:
        raw[3072:3084] = b"\xff" * 12  # in the name of the fourth member, or its first block
        raw[3072 + 148 : 3072 + 156] = b"garbage!"
    shard.write_bytes(raw[:size])
    with pytest.raises(UserError, match=r"1.tar: truncated, damaged or not a tar file"):
        list(read(shard))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('[{"image": "a.png"}, {"ima', "invalid JSON after record 1"),
        ("[1, 2", "invalid JSON after record 1"),
        ("[] x", "invalid JSON after record 0"),
        ('{"a": 1}', ".*expected a list of objects"),
        ("", ".*expected a list of objects"),
        ("plain", ".*expected a list of objects"),
        ('[{"image": "a.png", "image": "b.png"}]', ".*duplicate key 'image'"),
    ],
)
def test_a_damaged_json(tmp_path, content, message):
    (tmp_path / "s.json").write_text(content)
    with pytest.raises(UserError, match=rf"s.json: {message}"):
        list(read(tmp_path / "s.json"))


def test_a_byte_order_mark_and_half_a_character(tmp_path):
    text = json.dumps([record("a.png", "half \ud800"), record("b.png", "naïve 鳥")])
    (tmp_path / "s.json").write_bytes(b"\xef\xbb\xbf" + text.encode())
    texts = [entry.text for entry in read_entries(tmp_path / "s.json")]
    assert texts[1] == "naïve 鳥" and texts[0].encode()


def test_other_files(tmp_path):
    pd.DataFrame({"url": ["a"], "text": ["b"]}).to_parquet(tmp_path / "s.parquet")
    with pytest.raises(UserError, match="s.parquet: no column 'image'; columns: 'url', 'text'"):
        list(read(tmp_path / "s.parquet"))
    (tmp_path / "s.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(UserError, match="s.parquet: not a readable Parquet file"):
        list(read(tmp_path / "s.parquet"))
    (tmp_path / "s.json").write_text("[]")
    with pytest.raises(UserError, match=r"has \.json and \.parquet files; choose one"):
        list(read(tmp_path))
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "0.tar.gz").touch()
    with pytest.raises(UserError, match="neither a file nor a folder of files .*with gunzip"):
        list(read(tmp_path / "empty"))
    with pytest.raises(UserError, match="gone: no such folder of images"):
        list(read(tmp_path / "s.json", tmp_path / "gone"))
    with pytest.raises(UserError, match="s.csv: neither a file nor"):
        list(read(tmp_path / "s.csv"))


def peak(source: Path) -> int:
    """Return the peak memory in bytes of a pass over the entries."""
    tracemalloc.start()
    try:
        assert sum(1 for _ in read_entries(source)) > 0
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", ["json", "parquet", pytest.param("tar", marks=pytest.mark.slow)])
def test_memory_does_not_grow_with_the_entries(tmp_path, kind):
    sizes = []
    for count in (2_000, 8_000):
        source = tmp_path / f"{count}.{kind}"
        texts = [f"{n} {'word ' * 200}" for n in range(count)]
        if kind == "json":
            source.write_text(json.dumps([record(f"{n}.png", text) for n, text in enumerate(texts)]))
        elif kind == "parquet":
            frame = pd.DataFrame({"image": [f"{n}.png" for n in range(count)], "text": texts})
            frame.to_parquet(source, row_group_size=1000)
        else:
            with tarfile.open(source, "w") as shard:
                for n, text in enumerate(texts):
                    add(shard, f"{n}.png", b"")
                    add(shard, f"{n}.txt", text.encode())
        sizes.append(peak(source))
    # Four times as many captions are 6 MB more; of a shard, 12,000 more names are held to find duplicates.
    names = 100 * 12_000 if kind == "tar" else 0
    assert sizes[1] < 1.2 * sizes[0] + names + 100_000


def test_images_are_read_no_further_than_a_few_ahead(tmp_path):
    source, images = write_json(tmp_path, TEXTS * 30)
    taken = itertools.count()
    entries = (entry for entry in read_entries(source) if next(taken) >= 0)
    looked_at = sources.check_images(entries, images)
    for _ in range(50):
        next(looked_at)
    assert next(taken) <= 50 + sources.IMAGES_IN_MEMORY
    looked_at.close()


def test_the_step(tmp_path):
    source, images = write_json(tmp_path, TEXTS)
    paths = {"examples": source, "images": images, "cache": tmp_path / "cache", "summary": tmp_path / "s.json"}
    cut_captions.main(CutCaptions(**paths, processes=1))
    assert json.loads((tmp_path / "s.json").read_text())["examples"] == len(TEXTS)
