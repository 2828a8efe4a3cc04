"""Which image a model chooses: against a plain loop, by hand, and with real small models of every
kind.
"""

import json
import re
from contextlib import AbstractContextManager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from compclip.clip.embed import Embedder
from compclip.compun import classify as library
from compclip.compun.asked_models import Runtime, keep_open_clip, open_model
from compclip.compun.classify import ask_model, choose_compound
from compclip.compun.config import NamedModel
from compclip.core.artifacts.files import read_json, write_json
from compclip.core.artifacts.parquet import read_table, write_table
from compclip.core.errors import UserError
from compclip.core.tables import CHOICES, COMPOUND_IMAGES, COMPOUNDS, ROLES
from tests.score.world import FakeJudge
from tests.scripts import job
from tests.specs.evaluated import drawn, opener, picture, real_judge, refused
from workflow_scripts.compun import classify

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


def write(
    folder: Path, shown: dict[str, tuple[str, ...]] = SHOWN, draw: Any = drawn
) -> dict[str, Path]:
    """Write the inputs of a run below ``folder``; return the step's paths."""
    rows, images = [], []
    for compound, texts in shown.items():
        nouns = compound.split() if " " in compound else [None, None]
        rows.append((compound, *nouns, None, None, None, all(texts)))
        for role, text in zip(ROLES, texts, strict=True):
            images.append((compound, role, f"{compound}_{role}.png" if text else None))
            if text:
                draw(folder / "images" / f"{compound}_{role}.png", text)
    for name, schema, table in (
        ("compounds", COMPOUNDS, rows),
        ("images", COMPOUND_IMAGES, images),
    ):
        names = [*schema.columns]
        texts_of = dict.fromkeys([column for column in names if column != "complete"], "str")
        write_table(
            pd.DataFrame(table, columns=names).astype(texts_of), folder / f"{name}.parquet", schema
        )
    write_json(CAPTIONS, folder / "captions.json")
    write_json(DESCRIPTIONS, folder / "descriptions.json")
    names = {
        "compounds": "compounds.parquet",
        "images": "images.parquet",
        "folder": "images",
        "choices": "out",
        "captions": "captions.json",
        "descriptions": "descriptions.json",
        "cache": "cache",
    }
    return {name: folder / file for name, file in names.items()}


def run(
    paths: dict[str, Path], models: list[dict[str, str]]
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return choices.parquet and choices.json."""
    settings = {"models": models, "device": "cpu", "threads": 1, "cache": paths["cache"]}
    classify.main(job(paths, {"choices": paths["choices"]}, **settings))
    return read_table(paths["choices"] / "choices.parquet", CHOICES), read_json(
        paths["choices"] / "choices.json"
    )


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeJudge:
    """A model that reads images which consist of text."""
    judge = FakeJudge()
    monkeypatch.setattr(library, "open_model", opener(judge, tmp_path))
    return judge


def expected(compound: str, prompt: str) -> list[float]:
    """The similarities to the three images, one text after another, from the definition."""
    name, ends = compound, [""]
    if prompt == "reversed":
        first, second = compound.split()
        name = f"{second} {first}"
    elif prompt.startswith("examples_"):
        ends = [
            f". An example of {name} in an image is {c}" for c in CAPTIONS[name][: int(prompt[-1])]
        ]
    elif prompt == "descriptions":
        ends = [", which has orange scales", ", which is small"]
    texts = [FakeJudge.embed(f"a photo of a {name}{end}").astype(float) for end in ends]
    return [
        float(np.mean([FakeJudge.embed(shown) @ text for text in texts]))
        for shown in SHOWN[compound]
    ]


def test_choices_are_the_definitions(tmp_path: Path, fake: FakeJudge) -> None:
    choices, summary = run(write(tmp_path), [{"judge": "a"}, {"judge": "b"}])
    one = choices[choices["model"] == "a"]
    counts = {
        "template": 4,
        "reversed": 3,
        "descriptions": 1,
        "examples_1": 3,
        "examples_2": 3,
        "examples_3": 2,
    }
    assert one["prompt"].value_counts(sort=False).to_dict() == counts
    # All twelve images; two have the same bytes.
    everything = dict.fromkeys(text for texts in SHOWN.values() for text in texts)
    assert [model["images"] for model in summary["models"]] == [len(everything)] * 2 == [11, 11]
    for row in one.itertuples():
        three = expected(row.compound, row.prompt)
        assert [row.similarity_compound, row.similarity_n1, row.similarity_n2] == pytest.approx(
            three, abs=2e-6
        )
        assert row.right == (three[0] > max(three[1:]) + 1e-6) and row.right == (
            row.answer == "compound"
        )
        if not row.right:
            assert three[ROLES.index(row.answer)] == pytest.approx(max(three), abs=1e-6)
        if row.prompt == "template":
            text = FakeJudge.embed(f"a photo of a {row.compound}")
            values = [float(FakeJudge.embed(shown) @ text) for shown in everything]
            assert row.rank == 1 + sum(value > three[0] + 1e-6 for value in values)
    # Models of one judge: the same answers.
    other = choices[choices["model"] == "b"].drop(columns="model").reset_index(drop=True)
    assert other.equals(one.drop(columns="model").reset_index(drop=True))
    assert summary["prompts"]["reversed"]["lacking"] == {"count": 1, "names": ["goldfish"]}
    assert summary["prompts"]["template"]["for_example"] == "a photo of a red ball"


def test_without_texts_or_an_image_a_compound_is_not_asked(tmp_path: Path, fake: FakeJudge) -> None:
    """Images of incomplete compounds are candidates."""
    paths = write(tmp_path, {**SHOWN, "tea pot": ("tea pot", "", "pot")})
    choices, summary = run(paths, [{"judge": "a"}])
    assert set(choices["compound"]) == set(SHOWN) and summary["models"][0]["images"] == 13
    write(tmp_path, {"tea pot": ("tea pot", "", "pot")})
    assert "none of 1 compounds is complete" in refused(lambda: run(paths, [{"judge": "a"}]))
    write(tmp_path)
    del paths["captions"], paths["descriptions"]
    assert list(run(paths, [{"judge": "a"}])[0]["prompt"].unique()) == ["template", "reversed"]


def test_a_model_that_cannot_be_asked_is_named(
    tmp_path: Path, fake: FakeJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = write(tmp_path)
    monkeypatch.setattr(
        fake, "encode_texts", lambda texts, batch: np.full((len(texts), 16), np.nan, np.float32)
    )
    message = refused(lambda: run(paths, [{"judge": "a"}]))
    assert re.search(
        r"caption '.+': its embedding by judge fake \(0123456789abcdef\) is NaN or infinite",
        message,
    )
    monkeypatch.undo()
    message = refused(lambda: run(paths, [{"judge": str(tmp_path / "none")}]))
    assert "compun.models: " in message and "none: not a judge's folder" in message
    assert not paths["choices"].exists()


def test_choose_and_rank_ties() -> None:
    three = np.array(
        [[3, 1, 2], [1, 3, 2], [1, 2, 3], [3, 3, 1], [3, 1, 3], [2, 3, 3], [1, 1, 1]], float
    )
    answers, right = choose_compound(three)
    assert answers.tolist() == ["compound", "n1", "n2", "n1", "n2", "n1", "n1"]
    assert right.tolist() == [True, *[False] * 6]
    embedder = SimpleNamespace(texts=lambda texts: np.ones((len(texts), 3)))
    columns = pd.DataFrame(dict.fromkeys(ROLES, [0]), index=["c"])
    assert ask_model(embedder, "m", {"plain": {"c": ["c"]}}, ["c"], np.eye(3), columns)[
        "rank"
    ].tolist() == [3]


def painted(path: Path, text: str) -> None:
    picture(path, tuple(np.random.default_rng(list(text.encode())).integers(256, size=3)))


def test_models_of_every_kind(tmp_path: Path) -> None:
    """A judge, the same as a model of open_clip, and another judge, in one run."""
    paths = write(tmp_path, draw=painted)
    judge = real_judge(tmp_path / "judge")
    models = [
        {"judge": str(judge)},
        {
            "open_clip": str(judge / "tiny.json"),
            "pretrained": str(judge / "weights.safetensors"),
            "name": "tiny",
        },
        {"judge": str(real_judge(tmp_path / "other", seed=1))},
    ]
    choices, summary = run(paths, models)
    names = ["judge", "tiny", "other"]
    assert (
        list(choices["model"].unique()) == names == [model["model"] for model in summary["models"]]
    )
    assert set(choices.groupby("model").size()) == {16}
    # Two names of one model: the same answers. Two models: others.
    of = {name: part["similarity_compound"].tolist() for name, part in choices.groupby("model")}
    assert of["judge"] == of["tiny"] != of["other"]
    # The words of this judge's context are eight: what is longer is counted.
    assert summary["models"][0]["texts_truncated"] > 0
    # Equal bytes again, from warm caches and from cold ones; no place of this machine in any file.
    written = {path.name: path.read_bytes() for path in paths["choices"].iterdir()}
    assert set(written) == {"choices.parquet", "choices.json"}
    again = {**paths, "cache": tmp_path / "cold", "choices": tmp_path / "again"}
    for asked in (paths, again):
        run(asked, models)
        assert {path.name: path.read_bytes() for path in asked["choices"].iterdir()} == written
    assert not any(str(tmp_path).encode() in content for content in written.values())


def opened(model: NamedModel, folder: Path) -> AbstractContextManager[Embedder]:
    return open_model(model, 4, Runtime("cpu", 1, folder / "cache"))


def test_open_clip_is_the_judge_of_no_epochs(tmp_path: Path) -> None:
    """The same hash as the judge that it comes from, so the same cached embeddings; kept, and made
    once.
    """
    from compclip.clip.model import judge_hash

    judge = real_judge(tmp_path / "judge")
    named = NamedModel(
        open_clip=str(judge / "tiny.json"), pretrained=str(judge / "weights.safetensors")
    )
    kept = keep_open_clip(named, tmp_path / "cache")
    settings = json.loads((kept / "model.json").read_text())
    assert settings["name"] == "tiny" and str(tmp_path) not in json.dumps(settings)
    # The judge was saved without a crop, which stage judge's config has; nothing else may differ.
    assert settings == json.loads((judge / "model.json").read_text()) | {"crop": 0.75}
    assert (judge / "weights.safetensors").read_bytes() == (
        kept / "weights.safetensors"
    ).read_bytes()
    with opened(named, tmp_path) as ours, opened(NamedModel(judge=str(kept)), tmp_path) as theirs:
        assert (
            ours.judge.hash == theirs.judge.hash == judge_hash(kept)
            and ours.cache.path == theirs.cache.path
        )
        assert np.array_equal(ours.texts(["red wing"]), theirs.texts(["red wing"]))
    # Other weights under the same name are another model.
    other = real_judge(tmp_path / "other", seed=1)
    again = NamedModel(
        open_clip=str(judge / "tiny.json"), pretrained=str(other / "weights.safetensors")
    )
    assert (
        keep_open_clip(again, tmp_path / "cache")
        != kept
        == keep_open_clip(named, tmp_path / "cache")
    )
    # So are other weights in the same file.
    (judge / "weights.safetensors").write_bytes((other / "weights.safetensors").read_bytes())
    renewed = keep_open_clip(named, tmp_path / "cache")
    assert renewed != kept and judge_hash(renewed) != judge_hash(kept)


def test_models_are_named_and_what_cannot_be_loaded_says_why(tmp_path: Path) -> None:
    models = [
        NamedModel(open_clip="ViT-L-14", pretrained="openai", name="CLIP"),
        NamedModel(judge="results/d/color/judge"),
        NamedModel(open_clip="ViT-B-32", pretrained="laion2b_s34b_b79k"),
    ]
    assert [model.title for model in models] == [
        "CLIP",
        "results/d/color/judge",
        "ViT-B-32 laion2b_s34b_b79k",
    ]
    for values, fault in (
        ({"judge": "none"}, "none: not a judge's folder"),
        (
            {"open_clip": "ViT-B-32", "pretrained": "none"},
            "'none' is neither a file nor a tag of ViT-B-32",
        ),
        ({"open_clip": "ViT-X", "pretrained": "openai"}, "unknown"),
    ):
        model = NamedModel.model_validate(values)
        with pytest.raises(UserError) as caught, opened(model, tmp_path):
            pass
        message = str(caught.value)
        assert (
            message.startswith(f"compun.models: {model.title}: ")
            and fault in message
            and "\n" not in message
        )
