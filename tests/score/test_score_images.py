"""The whole step on a tiny data set with a judge that can read, against a naive count; pools of
distractors.
"""

import os
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks.schedule import EMBEDDED
from compclip.clip.tokens import WordTokenizer
from compclip.core.artifacts.files import read_json
from compclip.core.artifacts.parquet import read_table, write_table
from compclip.core.errors import UserError
from compclip.core.settings.arguments import AS_TEXT
from compclip.core.tables import MANIFEST, PROMPTS, SCORES, SWAPPED
from compclip.score.config import Scoring
from compclip.score.entries import EntrySet, number_set, share_derived
from compclip.score.score_images import score_with_judge
from compclip.split.pools import class_names, pool_captions
from compclip.stats.r_precision import expected_top1, r_precision
from tests.score.world import FakeJudge, build, make_job
from workflow_scripts.score.score_images import main


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> FakeJudge:
    fake = FakeJudge()
    monkeypatch.setattr("compclip.clip.model.load_judge", lambda *_: fake)
    return fake


def run(results: Path, generator: str, output: str = "out", **scoring: Any) -> tuple[Path, dict]:
    folder = results.parent / output
    main(make_job(results, generator, scores=folder, scoring=scoring))
    return folder, read_json(folder / "summary.json")


def test_processes_change_no_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="compclip")
    results = build(tmp_path)
    monkeypatch.setattr("compclip.clip.embed.BATCHES_HELD", 1)

    def load(folder: Path, *_: Any) -> FakeJudge:
        """Return a judge that notes its processes; those of the two folders disagree."""
        sign = float(folder.name)

        def embed(text: str) -> np.ndarray:
            (tmp_path / "processes" / str(os.getpid())).touch()
            return sign * FakeJudge.embed(text)

        judge = FakeJudge()
        judge.name, judge.embed = folder.name, embed
        judge.hash = judge.name * 8
        return judge

    monkeypatch.setattr("compclip.clip.model.load_judge", load)

    def files_by(processes: int) -> dict[str, bytes]:
        """Score with an empty cache, and return what is written."""
        (tmp_path / "processes").mkdir()
        folder = tmp_path / f"by {processes}"
        job = make_job(results, "good", scores=folder, batch=8, cache=folder / "cache")
        names = ["1", "-1"]
        job.params.judges = names
        job.input.judges = [Path(name) for name in names]
        job.output.scores = [folder / "scores" / name for name in names]
        job.output.bias = [folder / "bias" / f"{name}.json" for name in names]
        main(replace(job, threads=processes))
        files = [*folder.glob("scores/*/*"), *folder.glob("bias/*")]
        return {str(file.relative_to(folder)): file.read_bytes() for file in files}

    one = files_by(1)
    assert [file.name for file in (tmp_path / "processes").iterdir()] == [str(os.getpid())]
    (tmp_path / "processes").rename(tmp_path / "process")
    assert files_by(3) == one
    assert len(one) == 2 * (2 * 3 + 2)
    assert len(EMBEDDED.findall(caplog.text)) == 2
    # No judge has encoded in the process that divides the work.
    assert str(os.getpid()) not in {file.name for file in (tmp_path / "processes").iterdir()}


read = cache(pd.read_parquet)


def naive(
    results: Path, row, split: str, own: str, shown: np.ndarray, swapped_distractors: bool = False
) -> tuple[float, float]:
    """g and t of an entry whose image has the embedding ``shown``, counted caption by caption."""
    captions = read(results / "d" / "captions.parquet")
    splits = read(results / "d" / "color" / "splits.parquet").set_index("image_id")["split"]
    swapped = read(results / "d" / "color" / "swapped.parquet")
    source = "test_seen" if split == "test_swapped" else split
    classes = captions.drop_duplicates("image_id").set_index("image_id")["class_id"]
    value = float(shown @ FakeJudge.embed(own))
    fractions = []
    for image in classes.index:
        mine, other = classes[row.image_id], classes[image]
        same = image == row.image_id if pd.isna(mine) else mine == other
        if (
            splits[image] != source
            or same
            or (split == "test_swapped" and image not in set(swapped["image_id"]))
        ):
            continue
        texts = captions.loc[captions["image_id"] == image, "text"]
        if swapped_distractors:
            texts = swapped.loc[swapped["image_id"] == image, "swapped_text"]
        scores = [float(shown @ FakeJudge.embed(text)) for text in texts]
        # Sums of the same words in another order are equal for a reader.
        tied = [abs(score - value) < 1e-6 for score in scores]
        above = [score > value and not tie for score, tie in zip(scores, tied, strict=True)]
        fractions.append((np.mean(above), np.mean(tied)))
    return tuple(np.mean(fractions, axis=0))


@pytest.mark.parametrize("classes", [6, None])
def test_scores_equal_a_naive_count(tmp_path: Path, judge: FakeJudge, classes: int | None) -> None:
    results = build(tmp_path, classes=classes)
    folder, summary = run(results, "partial", distractors=["original", "swapped"])
    prompts = pd.read_parquet(results / "d" / "color" / "prompts.parquet")
    names = ["test_seen", "test_unseen", "test_swapped", "test_swapped.distractors-swapped"]
    assert sorted(p.stem for p in folder.glob("*.parquet")) == sorted(names)
    for name in names:
        split = name.split(".")[0]
        table = read_table(folder / f"{name}.parquet", SCORES)
        asked = prompts[prompts["split"] == split].set_index(["image_id", "caption_id"])["text"]
        assert table["image_id"].is_monotonic_increasing
        without = table[table["similarity"].isna()]
        assert (without[["p_beaten", "p_tied", "expected_top1", "hit"]] == [1, 0, 0, False]).all(
            axis=None
        )
        assert len(without) == 2 * (name == "test_seen")
        for row in table.dropna(subset="similarity").itertuples():
            own = asked[row.image_id, row.caption_id]
            shown = FakeJudge.embed(" ".join(own.split()[:3]))
            expected = naive(results, row, split, own, shown, name.endswith("-swapped"))
            assert (row.p_beaten, row.p_tied) == pytest.approx(expected, abs=2e-6)
    assert summary["class_rule"] == ("other class" if classes else "other image")
    assert summary["images_without_class"] == (0 if classes else 24)
    assert (summary["seed"], summary["train_on"], summary["candidates"]) == (0, "train", 5)


def test_a_reader_wins_also_with_plain_tables_and_similarities(
    tmp_path: Path, judge: FakeJudge
) -> None:
    results = build(tmp_path)
    folder, summary = run(results, "good")
    prompts = pd.read_parquet(results / "d" / "color" / "prompts.parquet")
    swapped = pd.read_parquet(results / "d" / "color" / "swapped.parquet").set_index(
        ["image_id", "caption_id"]
    )
    for score in summary["scores"]:
        entries = prompts[prompts["split"] == score["split"]].set_index(["image_id", "caption_id"])
        if (score["split"], score["prompts"]) == ("test_seen", "swapped"):
            entries = entries[entries.index.isin(swapped.index)]
        blind = np.mean([FakeJudge.embed(text) for text in entries["text"]], axis=0)
        chances = [
            naive(results, r, score["split"], r.text, blind)
            for r in entries.reset_index().itertuples()
        ]
        assert score["blind_control"] == pytest.approx(
            expected_top1(*np.transpose(chances), 5).mean(), abs=2e-6
        )
    scores = {(s["set"], s["prompts"]): s for s in summary["scores"]}
    assert set(scores) == {
        ("test_seen", "pairs"),
        ("test_seen", "swapped"),
        ("test_unseen", "pairs"),
        ("test_swapped", "swapped"),
    }
    for score in scores.values():
        assert score["exact"] > max(0.6, score["blind_control"] + 0.15)
        assert abs(score["exact"] - score["sampled_mean"]) < 0.25
    assert scores["test_seen", "swapped"]["judged"] == 12
    assert scores["test_swapped", "swapped"]["balance"]["cut"]
    assert scores["test_seen", "pairs"]["pool"] == {
        "images": 12,
        "captions": 24,
        "distinct": scores["test_seen", "pairs"]["pool"]["distinct"],
        "eligible_least": 16,
        "entries_with_fewer_than_candidates": 0,
    }
    place = results / "d" / "color"
    captions, prompts = read(results / "d/captions.parquet"), read(place / "prompts.parquet")
    prompts = prompts.assign(path=f"{place}/generated/good/images/" + prompts["file_name"])
    by_split = captions.merge(read(place / "splits.parquet"), on="image_id").groupby("split")
    columns = [
        "image_id",
        "caption_id",
        "similarity",
        "p_beaten",
        "p_tied",
        "expected_top1",
        "hit",
        "adjective_first",
    ]
    entries = {
        split: prompts[prompts["split"] == split]
        for split in ("test_seen", "test_unseen", "test_swapped")
    }
    for split, variants in (
        ("test_unseen", None),
        ("test_swapped", read(place / "variants.parquet")),
    ):
        pool = by_split.get_group("test_seen" if split == "test_swapped" else split)
        found = score_with_judge(
            entries[split], judge, pool, variants, scoring=Scoring(candidates=5)
        )
        pd.testing.assert_frame_equal(
            found.table[columns], read(folder / f"{split}.parquet")[columns]
        )
    pool = by_split.get_group("test_unseen").reset_index(drop=True)
    asked = entries["test_unseen"].sort_values(["image_id", "caption_id"])
    texts, shown = (np.stack([*map(FakeJudge.embed, table["text"])]) for table in (pool, asked))
    # Element by element, because a matrix product may round equal captions differently.
    similarity = (shown[:, None] * texts).sum(axis=2)
    plain = r_precision(
        similarity, np.arange(len(pool)), pool["image_id"], pool["class_id"], candidates=5
    )
    table = read(folder / "test_unseen.parquet")
    np.testing.assert_allclose(plain.expected, table["expected_top1"], atol=1e-6)
    assert plain.hit.tolist() == table["hit"].tolist()


def test_generators_and_judges_together_are_scored_as_each_alone(
    tmp_path: Path, judge: FakeJudge
) -> None:
    """The captions are encoded once; a missing manifest ends the step before it scores."""
    results = build(tmp_path)
    alone = {name: run(results, name, output=name)[0] for name in ("good", "partial")}
    judge.texts_seen.clear()
    main(make_job(results, *alone, scores=tmp_path / "both", cache=tmp_path / "cold"))
    assert len(judge.texts_seen) == len(set(judge.texts_seen)) > 20
    for name, folder in alone.items():
        assert {file.name: file.read_bytes() for file in folder.iterdir()} == {
            file.name: file.read_bytes() for file in (tmp_path / "both" / name).iterdir()
        }
    (results / "d/color/generated/partial/manifest.parquet").unlink()
    with pytest.raises(FileNotFoundError):
        main(make_job(results, *alone, scores=tmp_path / "broken"))
    assert not (tmp_path / "broken").exists()
    # Each judge has its folder of scores and its bias check, whose captions and images are those of
    # the scores.
    job = make_job(results, "good", scores=tmp_path / "first", cache=tmp_path / "cool")
    job.params.judges, job.params.faithful_generator = ["4", "7"], "good"
    job.input.judges *= 2
    job.output.scores.append(tmp_path / "second")
    job.output.bias.append(tmp_path / "second.json")
    judge.texts_seen.clear()
    main(job)
    assert len(judge.texts_seen) == len(set(judge.texts_seen))
    for folder in (tmp_path / "first", tmp_path / "second"):
        assert read_json(folder / "summary.json") == read_json(alone["good"] / "summary.json")
        assert (folder / "test_seen.parquet").read_bytes() == (
            alone["good"] / "test_seen.parquet"
        ).read_bytes()
    one, two = map(read_json, job.output.bias)
    assert one == two and one["judge_hash"] == judge.hash
    # The reader chooses the adjective of each drawn caption that has variants.
    assert one["images"]["drawn"]["held_out"]["accuracy"] == 1 and one["images"]["real"][
        "seen"
    ] == {"n": 0}


def test_candidates_are_bounded_and_missing_images_counted(
    tmp_path: Path, judge: FakeJudge
) -> None:
    """As many candidates as the smallest split allows; more are refused before anything is
    encoded.
    """
    results = build(tmp_path)
    _, summary = run(results, "good", candidates=None)
    least = min(score["pool"]["eligible_least"] for score in summary["scores"])
    assert summary["candidates"] == least + 1
    judge.texts_seen.clear()
    message = f"{least + 2} candidates .* has only {least}; set it to at most {least + 1}"
    with pytest.raises(UserError, match=message):
        run(results, "good", candidates=least + 2)
    assert not judge.texts_seen and run(results, "good", candidates=least + 1)
    with pytest.raises(UserError, match="no image of another class"):
        run(build(tmp_path / "alone", classes=1), "good")
    _, summary = run(results, "partial")
    seen = summary["scores"][0]
    assert (
        seen["set"] == "test_seen"
        and seen["judged"] == 24
        and len(seen["missing"]) == len(seen["broken"]) == 1
    )
    assert sum(len(s["missing"]) + len(s["broken"]) for s in summary["scores"]) == 2
    file = results / "d/color/generated/good/manifest.parquet"
    manifest = pd.read_parquet(file)
    write_table(manifest.iloc[3:], file, MANIFEST)
    _, summary = run(results, "good", output="short")
    assert sum(len(s["missing"]) for s in summary["scores"]) == 3
    write_table(
        manifest.assign(path=None, status="missing").astype({"path": "str"}), file, MANIFEST
    )
    folder, summary = run(results, "good", output="none")
    assert {s["exact"] for s in summary["scores"]} == {0} and len(
        summary["scores"][0]["missing"]
    ) == 24
    wrong = read_table(folder / "test_seen.parquet", SCORES)
    assert len(wrong) == 24 and wrong["similarity"].isna().all() and not wrong["hit"].any()


def test_draws_are_entries_of_one_image_and_nothing_may_be_swapped(
    tmp_path: Path, judge: FakeJudge
) -> None:
    results = build(tmp_path)
    place = results / "d/color"
    for file, schema in (
        (place / "prompts.parquet", PROMPTS),
        (place / "generated/good/manifest.parquet", MANIFEST),
    ):
        table = pd.read_parquet(file)
        second = table.assign(draw=1)
        if "file_name" in table:
            second["file_name"] = "1/" + table["file_name"]
        write_table(pd.concat([table, second]), file, schema)
    folder, summary = run(results, "good")
    table = pd.read_parquet(folder / "test_seen.parquet")
    assert len(table) == 48 and summary["scores"][0]["images"] == 12
    first, second = (table[table["draw"] == d].reset_index(drop=True) for d in (0, 1))
    assert first["expected_top1"].equals(second["expected_top1"])
    assert not first["hit"].equals(second["hit"])
    # A data set that offers no swaps still has scores of the other splits.
    results = build(tmp_path / "plain")
    for name, schema in (("prompts", PROMPTS), ("generated/good/manifest", MANIFEST)):
        table = pd.read_parquet(results / f"d/color/{name}.parquet")
        write_table(
            table[table["split"] != "test_swapped"], results / f"d/color/{name}.parquet", schema
        )
    swapped = pd.read_parquet(results / "d/color/swapped.parquet")
    write_table(swapped.iloc[:0], results / "d/color/swapped.parquet", SWAPPED)
    folder, summary = run(results, "good", distractors=["original", "swapped"])
    assert [s["judged"] for s in summary["scores"]] == [24, 0, 24, 0, 0]
    assert summary["scores"][3]["balance"]["rule"] == "no cut: 0 pairs, 2 needed"
    assert len(read_table(folder / "test_swapped.parquet", SCORES)) == 0


@pytest.fixture
def tables(tmp_path: Path) -> dict[str, pd.DataFrame]:
    results = build(tmp_path)
    found = {
        name: pd.read_parquet(results / "d" / f"{name}.parquet") for name in ("captions", "images")
    }
    for name in ("splits", "swapped", "prompts"):
        found[name] = pd.read_parquet(results / "d" / "color" / f"{name}.parquet")
    return found


def test_pools_by_split(tables: dict[str, pd.DataFrame]) -> None:
    captions, swapped = tables["captions"], tables["swapped"].iloc[2:]
    # One judged image fewer than the split has.
    judged = tables["splits"].iloc[2:]
    seen = set(judged.loc[judged["split"] == "test_seen", "image_id"])

    def pool(split: str, kind: str = "original") -> pd.DataFrame:
        return pool_captions(captions, judged, swapped, split, kind)

    assert set(pool("test_seen")["image_id"]) == seen and len(pool("test_seen")) == 2 * len(seen)
    assert not set(pool("test_unseen")["image_id"]) & seen
    originals = pool("test_swapped")
    assert set(originals["image_id"]) == seen & set(swapped["image_id"]) and len(originals) == 20
    assert set(originals["text"]) <= set(captions["text"])
    others = pool("test_swapped", "swapped")
    assert set(others["image_id"]) == set(originals["image_id"]) and len(others) == 10
    assert set(others["text"]) <= set(swapped["swapped_text"])
    # As the released code draws them: what was swapped, as it was before.
    published = pool("test_swapped", "published")
    assert published[["image_id", "caption_id"]].equals(others[["image_id", "caption_id"]])
    assert (
        published.merge(captions, on=["image_id", "caption_id", "text"]).shape[0]
        == len(published)
        == 10
    )


def test_an_image_without_class_is_its_own_and_a_pool_not_empty(
    tables: dict[str, pd.DataFrame],
) -> None:
    captions = pd.DataFrame(
        {"image_id": ["a", "a", "b", "c", "image a"], "class_id": [None, None, "x", "x", "a"]}
    )
    classes = class_names(captions)
    assert classes["b"] == classes["c"] != classes["a"]
    assert len(set(classes)) == 3
    captions = tables["captions"]
    entries = captions.assign(draw=0, pair=None, path="x").iloc[:1]
    with pytest.raises(UserError, match="no captions"):
        number_set(
            EntrySet(
                "test_seen",
                "test_seen",
                "original",
                entries,
                captions.iloc[:0],
                class_names(captions),
                entries.iloc[:0],
            )
        )


def test_sets_that_differ_only_in_paths_are_numbered_once(tables: dict[str, pd.DataFrame]) -> None:
    captions = tables["captions"]
    classes = class_names(captions)
    sets = []
    for path, n in (("a.png", 4), ("b.png", 4), ("c.png", 3)):
        entries = captions.assign(draw=0, pair=None, path=path).iloc[:n]
        variants = entries.assign(split="test_seen").iloc[:0]
        sets.append(
            EntrySet("test_seen", "test_seen", "original", entries, captions, classes, variants)
        )
    share_derived(sets)
    assert sets[1].numbered is sets[0].numbered
    assert sets[1].draws(3, 0) is sets[0].draws(3, 0)
    assert len(sets[2].numbered.entries.own) == 3
    # A copy may have other texts.
    assert replace(sets[1], pool=captions.iloc[:9]).numbered is not sets[0].numbered


@pytest.fixture
def asked(tmp_path: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Entries with ids that numbers would lose, each with an image that shows its text, and a
    variant of each.
    """
    texts = [f"a {color} {part}" for color in ("red", "blue", "green") for part in ("wing", "bill")]
    ids = [f"{n:04d}" for n in range(len(texts))]
    for name, text in zip(ids, texts, strict=True):
        (tmp_path / name).write_text(text)
    entries = pd.DataFrame(
        {"image_id": ids, "caption_id": 0, "text": texts, "path": [str(tmp_path / i) for i in ids]}
    )
    return entries, entries[["image_id", "caption_id"]].assign(text="a black tail")


def test_entries_and_variants_join_or_are_named(asked: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    entries, variants = asked
    assert score_with_judge(entries, FakeJudge(), entries, variants).adjective_accuracy.value == 1
    numbers = entries["image_id"].astype(int)
    for given, name in (
        ({"entries": entries.assign(image_id=numbers)}, "entries"),
        ({"variants": variants.assign(image_id=numbers)}, "variants"),
    ):
        with pytest.raises(UserError) as raised:
            score_with_judge(
                **{
                    "entries": entries,
                    "judge": FakeJudge(),
                    "captions": entries,
                    "variants": variants,
                }
                | given
            )
        assert str(raised.value).startswith(f"{name}: ") and AS_TEXT in str(raised.value)
    for column, values, fault in (
        ("image_id", numbers.astype(float), "entries: column image_id: ids are floating"),
        ("text", [np.nan, *entries["text"][1:]], "entries: column text: row 0"),
        ("text", [" ", *entries["text"][1:]], "entries: column text: row 0: blank text"),
        ("path", ["nowhere", *entries["path"][1:]], "entries: row 0: nowhere: no such image file"),
        ("path", ["/", *entries["path"][1:]], "entries: row 0: /: no such image file"),
        (
            "path",
            ["/dev/zero", *entries["path"][1:]],
            "entries: row 0: /dev/zero: no such image file",
        ),
        ("image_id", "0000", "entries: row 1: expected each caption once"),
    ):
        with pytest.raises(UserError, match=fault):
            score_with_judge(entries.assign(**{column: values}), FakeJudge(), entries)
    for wrong, fault in (
        (variants.assign(caption_id=7), "variants: .*not among the entries and captions"),
        (
            variants.assign(text=entries["text"].str.upper() + " "),
            "variants: .*equals its entry's text",
        ),
        (
            variants.assign(text=entries["text"].str.replace(" ", "\u00a0")),
            "variants: .*equals its entry's text",
        ),
        (variants.assign(text="\u200b" + entries["text"]), "variants: .*equals its entry's text"),
        (
            variants.assign(text=entries["text"].str.replace("a", "\uff41")),
            "variants: .*equals its entry's text",
        ),
        (pd.concat([variants, variants]), "variants: duplicate"),
        (variants.drop(columns="caption_id"), "variants: no column caption_id"),
    ):
        with pytest.raises(UserError, match=fault):
            score_with_judge(entries, FakeJudge(), None, wrong)
    more = pd.concat([entries, entries.assign(caption_id=1)])
    with pytest.raises(UserError, match="variants: none is of an entry"):
        score_with_judge(entries, FakeJudge(), more, variants.assign(caption_id=1))


def test_texts_of_other_captions_are_said(
    asked: tuple[pd.DataFrame, pd.DataFrame], caplog: pytest.LogCaptureFixture
) -> None:
    entries = asked[0]
    score_with_judge(entries.assign(text=entries["text"] + " "), FakeJudge(), entries)
    assert "another text" not in caplog.text
    mixed = entries.assign(text=entries["text"].tolist()[:-2] + entries["text"].tolist()[:-3:-1])
    score_with_judge(mixed, FakeJudge(), entries)
    assert "entries: 2 of 6 rows have another text than their caption, the first 4; " in caplog.text


def test_equal_images_and_repeated_rows_are_said(
    asked: tuple[pd.DataFrame, pd.DataFrame], caplog: pytest.LogCaptureFixture
) -> None:
    entries = asked[0]
    for file in entries["path"]:
        Path(file).write_text("a red wing")
    score_with_judge(entries, FakeJudge())
    assert "6 of 6 rows have the image of another image_id, the first 0" in caplog.text
    score_with_judge(
        pd.concat([entries, entries[:1].assign(caption_id=1)], ignore_index=True), FakeJudge()
    )
    assert "1 of 7 rows repeat an image and its text, the first 6" in caplog.text


def test_truncated_texts_are_counted_and_said(
    asked: tuple[pd.DataFrame, pd.DataFrame], caplog: pytest.LogCaptureFixture
) -> None:
    class Short(FakeJudge):
        tokenizer = WordTokenizer([*"abcdef", "wing", "bill"], 4)

    entries, variants = asked
    summary = score_with_judge(entries, Short(), None, variants).summary
    assert (summary["texts"], summary["truncated_texts"]) == (
        7,
        0,
    ) and "longer than" not in caplog.text
    summary = score_with_judge(
        entries, Short(), None, variants.assign(text="a very long black tail")
    ).summary
    assert (summary["texts"], summary["truncated_texts"]) == (7, 1)
    assert "1 of 7 captions are longer than the model reads" in caplog.text
