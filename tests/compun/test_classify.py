"""Which image a model chooses: against a plain loop, by hand, and with real small models of every kind."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.compun.asked import tiny_align, tiny_blip
from tests.score.world import FakeJudge
from tests.specs.evaluated import drawn, picture, real_judge, refused
from workflow_scripts.clip.embed import Embedder
from workflow_scripts.compun import classify
from workflow_scripts.compun.choices import is_tied
from workflow_scripts.compun.classify import choose, stand
from workflow_scripts.compun.config import Asked, NamedModel
from workflow_scripts.compun.steps import Classify
from workflow_scripts.core.cache import Cache
from workflow_scripts.core.io import read_table, write_json, write_table
from workflow_scripts.core.tables import CHOICES, COMPOUND_IMAGES, COMPOUNDS, RETRIEVAL, ROLES

# What the images show: of the compound, of its first noun, of its second.
SHOWN = {
    "red ball": ("red ball", "red", "ball wood"),
    "snow man": ("snow", "man tall", "snow man"),  # its second distractor is the better one
    "blue wing": ("blue wing", "blue wing", "wing"),  # a tie: two files alike
    "goldfish": ("goldfish", "gold", "fish"),
}
CAPTIONS = {
    "red ball": ["a red ball", "ball in red", "red ball and tree"],
    "snow man": ["snow man", "man in snow", "a tall man"],
    "blue wing": ["blue wing", "wing"],
}
DESCRIPTIONS = {"goldfish": ["orange scales", "is small"]}
TEMPLATES = ["a photo of a {}", "the {}", "bad {}"]


def write(folder: Path, shown: dict[str, tuple[str, ...]] = SHOWN, draw: Any = drawn) -> dict[str, Path]:
    """Write the inputs of a run below ``folder``; return the step's paths."""
    rows, images = [], []
    for compound, texts in shown.items():
        first, _, second = compound.partition(" ")
        whole = all(texts)
        rows.append((compound, first if second else None, second or None, None, None, None, whole))
        for role, text in zip(ROLES, texts, strict=True):
            path = f"{compound}_{role}.png" if text else None
            images.append((compound, role, path))
            if path:
                draw(folder / "images" / path, text)
    columns = ["compound", "first", "second", "kind", "n1", "n2", "complete"]
    table = pd.DataFrame(rows, columns=columns).astype(dict.fromkeys(columns[:-1], "str"))
    write_table(table.where(table.notna(), None), folder / "compounds.parquet", COMPOUNDS)
    paths = pd.DataFrame(images, columns=["compound", "role", "path"]).astype({"path": "str"})
    write_table(paths, folder / "images.parquet", COMPOUND_IMAGES)
    write_json(CAPTIONS, folder / "captions.json")
    write_json(DESCRIPTIONS, folder / "descriptions.json")
    (folder / "templates.txt").write_text("\n".join(TEMPLATES))
    names = {"compounds": "compounds.parquet", "images": "images.parquet", "folder": "images", "choices": "out",
             "captions": "captions.json", "descriptions": "descriptions.json", "cache": "cache"}  # fmt: skip
    return {name: folder / file for name, file in names.items()}


def run(paths: dict[str, Path], models: list[dict[str, str]], **asked: Any) -> Path:
    templates = str(paths["compounds"].parent / "templates.txt")
    settings = Asked(**{"templates": templates, "batch": 4, "device": "cpu", **asked})
    classify.main(Classify(**paths, models=[NamedModel(**model) for model in models], asked=settings, threads=1))
    return paths["choices"]


def results(out: Path) -> tuple[pd.DataFrame, pd.DataFrame, dict[str, Any], dict[str, Any]]:
    choices = read_table(out / "choices.parquet", CHOICES), read_table(out / "retrieval.parquet", RETRIEVAL)
    return *choices, *(json.loads((out / name).read_text()) for name in ("models.json", "choices.json"))


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeJudge:
    """A model that reads images which consist of text."""
    judge = FakeJudge()

    @contextmanager
    def opened(*_: object) -> Iterator[Embedder]:
        with Cache(tmp_path / "fake.sqlite") as cache:
            yield Embedder(judge, cache, 4, "made")

    monkeypatch.setattr(classify, "open_model", opened)
    return judge


def unit(vector: np.ndarray) -> np.ndarray:
    return vector / np.linalg.norm(vector)


def expected(compound: str, prompt: str) -> list[float]:
    """The similarities to the three images, one text after another, from the definition."""
    templates = TEMPLATES if prompt.endswith("_ensemble") else TEMPLATES[:1]
    base = prompt.removesuffix("_ensemble")
    name, ends = compound, [""]
    if base == "reversed":
        first, second = compound.split()
        name = f"{second} {first}"
    elif base.startswith("examples_"):
        ends = [f". An example of {name} in an image is {c}" for c in CAPTIONS[name][: int(base[-1])]]
    elif base == "descriptions":
        ends = [", which has orange scales", ", which is small"]
    found = []
    for shown in SHOWN[compound]:
        image = FakeJudge.embed(shown).astype(float)
        means = []
        for end in ends:
            vectors = [FakeJudge.embed(t.replace("{}", name) + end).astype(float) for t in templates]
            means.append(image @ unit(np.mean(vectors, axis=0)))
        found.append(float(np.mean(means)))
    return found


def test_choices_are_the_definitions(tmp_path: Path, fake: FakeJudge) -> None:
    choices, ranks, models, summary = results(run(write(tmp_path), [{"judge": "a"}, {"judge": "b"}]))
    assert [one["model"] for one in models["loaded"]] == ["a", "b"] and models["not_loaded"] == []
    one = choices[choices["model"] == "a"]
    bases = {
        "template": 4, "reversed": 3, "examples_1": 3, "examples_2": 3, "examples_3": 2, "descriptions": 1,
    }  # fmt: skip
    counts = one["prompt"].value_counts().to_dict()
    assert counts == bases | {f"{name}_ensemble": n for name, n in bases.items()}
    for row in one.itertuples():
        three = expected(row.compound, row.prompt)
        assert [row.similarity_compound, row.similarity_n1, row.similarity_n2] == pytest.approx(three, abs=2e-6)
        assert row.right == (three[0] > max(three[1:]) + 1e-6) and row.right == (row.answer == "compound")
        if not row.right:
            assert three[ROLES.index(row.answer)] == pytest.approx(max(three), abs=1e-6)
    # All twelve images, of which two have the same bytes.
    everything = [text for texts in SHOWN.values() for text in texts]
    assert set(ranks["images"]) == {11}
    for row in ranks[ranks["model"] == "a"].itertuples():
        if row.prompt == "template":
            text = FakeJudge.embed(f"a photo of a {row.compound}")
            values = {shown: float(FakeJudge.embed(shown) @ text) for shown in everything}
            own = values[SHOWN[row.compound][0]]
            assert row.above == sum(value > own + 1e-7 for value in values.values()) and row.tied == 0
    # Models of one judge: the same answers.
    other = choices[choices["model"] == "b"].drop(columns="model").reset_index(drop=True)
    assert other.equals(one.drop(columns="model").reset_index(drop=True))
    assert summary["prompts"]["reversed"]["lacking"] == {"count": 1, "names": ["goldfish"]}
    assert summary["prompts"]["template"]["for_example"] == "a photo of a red ball"
    assert summary["prompts"]["examples_3_ensemble"]["texts"] == 2 * 3 * 3


def test_ties_are_no_wins(tmp_path: Path, fake: FakeJudge) -> None:
    choices, _, _, summary = results(run(write(tmp_path), [{"judge": "a"}]))
    tied = choices[is_tied(choices)]
    assert set(tied["compound"]) == {"blue wing"} and not tied["right"].any() and set(tied["answer"]) == {"n1"}
    assert summary["ties"] == len(tied) == (choices["compound"] == "blue wing").sum()


def test_parts_change_nothing(tmp_path: Path, fake: FakeJudge, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = write(tmp_path)
    whole = results(run(paths, [{"judge": "a"}]))
    monkeypatch.setattr(classify, "MAX_SIMILARITIES", 12)
    parts = results(run(paths, [{"judge": "a"}]))
    # But for the last bits of matrix products of another shape.
    similar = [f"similarity_{role}" for role in ROLES]
    assert parts[0][similar].to_numpy() == pytest.approx(whole[0][similar].to_numpy(), abs=2e-6)
    assert parts[0].drop(columns=similar).equals(whole[0].drop(columns=similar)) and parts[1].equals(whole[1])


def test_incomplete_compounds_are_left_out_and_named(tmp_path: Path, fake: FakeJudge) -> None:
    """One without an image in the list, and one whose image is gone since; their other images are candidates still."""
    paths = write(tmp_path, {**SHOWN, "tea pot": ("tea pot", "", "pot")})
    (tmp_path / "images" / "goldfish_n2.png").unlink()
    choices, ranks, _, summary = results(run(paths, [{"judge": "a"}]))
    assert set(choices["compound"]) == {"red ball", "snow man", "blue wing"} == set(ranks["compound"])
    assert summary["incomplete"] == {"count": 1, "names": ["tea pot"]}
    assert summary["compounds_lost"] == {"count": 1, "names": ["goldfish"]}
    assert summary["images_lost"] == {"count": 1, "names": ["goldfish_n2.png"]}
    assert set(ranks["images"]) == {12}
    write(tmp_path, {"tea pot": ("tea pot", "", "pot")})
    assert "none of 1 compounds is complete" in refused(lambda: run(paths, [{"judge": "a"}]))


def test_without_texts(tmp_path: Path, fake: FakeJudge) -> None:
    paths = write(tmp_path)
    kept = {name: path for name, path in paths.items() if name not in ("captions", "descriptions")}
    choices, _, _, summary = results(run(kept, [{"judge": "a"}], templates="none"))
    assert list(choices["prompt"].unique()) == ["template", "reversed"] and summary["templates"] is None
    assert "no such file; use imagenet" in refused(lambda: run(kept, [{"judge": "a"}], templates="x"))


def test_choose() -> None:
    three = np.array([[3, 1, 2], [1, 3, 2], [1, 2, 3], [3, 3, 1], [3, 1, 3], [2, 3, 3], [1, 1, 1]], float)
    answers, right = choose(three)
    assert answers.tolist() == ["compound", "n1", "n2", "n1", "n2", "n1", "n1"]
    assert right.tolist() == [True, *[False] * 6]


def test_standings_are_a_sort() -> None:
    draw = np.random.default_rng(0)
    classes, images = draw.standard_normal((40, 8)).astype(np.float32), draw.standard_normal((90, 8)).astype(np.float32)
    columns = np.stack([draw.choice(90, 3, replace=False) for _ in range(40)])
    three, above, tied = stand(classes, images, columns)
    values = classes.astype(float) @ images.T.astype(float)
    order = [list(np.argsort(-row)).index(own) for row, own in zip(values, columns[:, 0], strict=True)]
    assert above.tolist() == order and not tied.any()
    assert three == pytest.approx(np.take_along_axis(values, columns, axis=1), abs=2e-6)


def painted(path: Path, text: str) -> None:
    picture(path, tuple(np.random.default_rng(list(text.encode())).integers(256, size=3)))


def test_models_of_every_kind(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A judge, an open_clip model, BLIP, ALIGN and what cannot be loaded, in one run: a row or a reason for each."""
    paths = write(tmp_path, draw=painted)
    judge = real_judge(tmp_path / "judge")
    open_clip = {"open_clip": str(judge / "tiny.json"), "pretrained": str(judge / "weights.safetensors")}
    models = [
        {"judge": str(judge)}, {**open_clip, "name": "tiny"}, {"transformers": "ALBEF"},
        {"transformers": str(tiny_blip(tmp_path / "blip")), "name": "BLIP"},
        {"transformers": str(tiny_align(tmp_path / "ALIGN"))}, {"judge": str(tmp_path / "none"), "name": "lost"},
    ]  # fmt: skip
    out = run(paths, models)
    assert any("2 of 6 models were not asked" in line and "--forcerun classify" in line for line in caplog.messages)
    choices, ranks, about, _ = results(out)
    assert (
        list(choices["model"].unique()) == ["judge", "tiny", "BLIP", "ALIGN"] == [m["model"] for m in about["loaded"]]
    )
    assert [one["model"] for one in about["not_loaded"]] == ["ALBEF", "lost"]
    assert "LAVIS" in about["not_loaded"][0]["reason"] and "not a judge's folder" in about["not_loaded"][1]["reason"]
    assert set(choices.groupby("model").size()) == {32} and len(ranks) == len(choices)
    # Two names of one model: the same answers. Two models: others.
    of = {name: part["similarity_compound"].tolist() for name, part in choices.groupby("model")}
    assert of["judge"] == of["tiny"] != of["BLIP"] != of["ALIGN"]
    # The words of this judge's context are eight: what is longer is counted.
    assert about["loaded"][0]["texts_cut"] > 0
    # Equal bytes again, from warm caches and from cold ones; no place of this machine in any file.
    written = {path.name: path.read_bytes() for path in sorted(out.iterdir())}
    assert set(written) == {"choices.parquet", "retrieval.parquet", "models.json", "choices.json"}
    run(paths, models)
    for folder in (out, run({**paths, "cache": tmp_path / "cold", "choices": tmp_path / "again"}, models)):
        assert {path.name: path.read_bytes() for path in sorted(folder.iterdir())} == written
    assert not any(str(tmp_path).encode() in content for content in written.values())


def test_none_can_be_loaded(tmp_path: Path) -> None:
    paths = write(tmp_path, draw=painted)
    said = refused(lambda: run(paths, [{"transformers": "ALBEF"}, {"judge": str(tmp_path / "none")}]))
    assert "none of 2 models could be asked: ALBEF: no maintained library" in said
    assert not (tmp_path / "out").exists()


def test_a_model_that_gives_no_numbers(tmp_path: Path, fake: FakeJudge, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = write(tmp_path)
    monkeypatch.setattr(fake, "encode_texts", lambda texts, batch: np.full((len(texts), 16), np.nan, np.float32))
    said = refused(lambda: run(paths, [{"judge": "a"}]))
    assert re.search(r"a: caption '.+': its embedding by judge fake \(0123456789abcdef\) is NaN or infinite", said)
