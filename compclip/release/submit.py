"""Score a model's images on a release, and write its submission with a page."""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pandas as pd
from pydantic import Field

from compclip.core.cli import Command
from compclip.core.digests import sha256
from compclip.core.errors import require
from compclip.core.log import log
from compclip.core.pictures import BrokenImage, image_size
from compclip.core.progress import track
from compclip.core.section import NAME, CacheFolder
from compclip.core.tables import TESTS
from compclip.generate.generator import KEYS
from compclip.generate.generators.folder import find_images
from compclip.io import write_text
from compclip.release.released import Release, ReleasePart, open_release
from compclip.release.submission import (
    FAILED,
    JudgeWeights,
    ReleaseId,
    ScoresByJudge,
    Submission,
    SubmittedComposition,
    TrainingData,
    check_name,
    environment,
    figures_of,
    submitted_scores,
)
from compclip.score.choices import Embed
from compclip.score.entries import entry_sets
from compclip.score.score_images import embed_once, score_images
from compclip.score.scores import SetScores


class Submit(Command):
    """Score a model's images on a release: writes submission.json and submission.html.

    Images are named by the column file_name of the prompts; manifest.jsonl in their folder has the
    texts from which they were made.
    """

    release: Path = Field(description="folder of the release")
    images: Path = Field(description="folder of the images")
    name: str = Field(pattern=NAME, description="the model's name")
    judge_weights: JudgeWeights = Field(
        "none",
        description="whether the model is guided, or its images re-ranked, by the weights of a "
        "judge",
    )
    training_data: TrainingData = Field(
        "unknown",
        description="split: the model was trained on the release's train images alone; else no "
        "verdict",
    )
    missing: bool = Field(
        False, description="accept missing and unreadable images, which count as wrong"
    )
    sizes: bool = Field(False, description="accept images of different sizes")
    device: str = Field("cpu", pattern="^(auto|cpu|cuda)$", description="cpu, cuda or auto")
    cache: CacheFolder
    output: Path = Field(
        Path("submission.json"), description="the submission; its page is beside it"
    )


@dataclass(frozen=True)
class Pictures:
    """The images of one composition's prompts.

    Args:
        manifest: columns of ``tables.MANIFEST``, with paths of files.
        digests: by file_name, the sha256 of the image, ``missing`` or ``unreadable``.
        sizes: numbers of images by width and height.
    """

    manifest: pd.DataFrame
    digests: dict[str, str]
    sizes: Counter[tuple[int, int]]


def find_pictures(folder: Path, prompts: pd.DataFrame) -> Pictures:
    """Find and check the image of each prompt."""
    chosen, _ = find_images(folder, prompts)
    names, paths = prompts["file_name"], dict[str, str]()
    digests, sizes = dict.fromkeys(names, "missing"), Counter[tuple[int, int]]()
    for name in track(names, len(names), "images checked"):
        if name in chosen:
            try:
                sizes[image_size(chosen[name])] += 1
                digests[name], paths[name] = sha256(chosen[name]), str(chosen[name])
            except BrokenImage:
                digests[name] = "unreadable"
    status = names.map(digests).where(~names.isin(paths), "ok")
    return Pictures(prompts[KEYS].assign(path=names.map(paths), status=status), digests, sizes)


def all_pictures(release: Release, folder: Path) -> dict[str, Pictures]:
    """Find and check the images of all compositions."""
    return {
        name: find_pictures(folder, part.tables["prompts"]) for name, part in release.parts.items()
    }


def check_pictures(
    folder: Path, composition: str, pictures: Pictures, missing: bool, sizes: bool
) -> None:
    """Raise UserError for missing and unreadable images and for different sizes, unless
    accepted.
    """
    lacking = [name for name, digest in pictures.digests.items() if digest in FAILED]
    fault = (
        f"{len(lacking)} of {len(pictures.digests)} images of {composition} are missing or "
        "unreadable"
    )
    remedy = "draw them, or add --missing to count them as wrong"
    require(missing or not lacking, folder, f"{fault}, the first {lacking[:1]}", remedy)
    if lacking:
        log.warning("warning: %s: %s; they count as wrong", folder, fault)
    counts = ", ".join(
        f"{n} of {width} x {height} pixels" for (width, height), n in pictures.sizes.most_common()
    )
    fault = f"images of {composition} have {len(pictures.sizes)} sizes ({counts})"
    require(sizes or len(pictures.sizes) < 2, folder, fault, "draw all at one size, or add --sizes")


def score_part(
    part: ReleasePart,
    manifest: pd.DataFrame,
    judge: str,
    texts: Callable[[Sequence[str]], Embed],
    images: Embed,
    splits: Sequence[str] = TESTS,
) -> dict[str, SetScores]:
    """Score the images of one composition by one judge, by set.

    Args:
        manifest: as in ``Pictures``.
        texts: given all texts, returns a function that maps some of them to their embeddings.
        images: maps paths to embeddings.
    """
    tables = {name: part.tables[name] for name in ("prompts", "swapped")}
    tables |= {"captions": part.release.captions, "judged": part.judged}
    sets = entry_sets(splits, part.rules.scoring.distractors, manifest=manifest, **tables)
    variants = part.tables["variants"]
    variants = variants[variants["split"].isin(splits)]
    used = {text for of in sets for table in (of.entries, of.pool) for text in table["text"]}
    embed = texts([*sorted(used), *variants["text"]])
    return score_images(sets, part.rules, variants, embed, images, part.adjustment(judge))


def score_parts(
    release: Release, pictures: Mapping[str, Pictures], device: str, cache: Path
) -> dict[str, ScoresByJudge]:
    """Return the scores of each composition by each judge."""
    from compclip.clip.embed import open_embedders  # torch is slow to import

    contents, scores = release.contents, dict[str, ScoresByJudge]()
    for name, part in release.parts.items():
        judges = part.about.judges
        folders = [release.folder / about.folder for about in judges.values()]
        with open_embedders(folders, contents.batch, contents.threads, device, cache) as embedders:
            for (judge, about), folder, embedder in zip(
                judges.items(), folders, embedders, strict=True
            ):
                log.info("%s: judge %s", name, judge)
                fault = f"its hash is {embedder.judge.hash}, not {about.hash} as in the release"
                require(
                    embedder.judge.hash == about.hash, folder, fault, "download the release again"
                )
                texts = partial(embed_once, embedder)
                scored = score_part(part, pictures[name].manifest, judge, texts, embedder.files)
                scores.setdefault(name, {})[judge] = submitted_scores(about.hash, scored)
    return scores


def submit(release: Release, pictures: Mapping[str, Pictures], command: Submit) -> Submission:
    """Return the submission of a model's images."""
    scores = score_parts(release, pictures, command.device, command.cache)
    compositions = {
        composition: SubmittedComposition(
            prompts=part.prompts_digest,
            images=pictures[composition].digests,
            judges=scores[composition],
        )
        for composition, part in release.parts.items()
    }
    about = ReleaseId(
        name=release.contents.name, version=release.contents.version, digest=release.digest
    )
    return Submission(
        name=command.name,
        judge_weights=command.judge_weights,
        training_data=command.training_data,
        release=about,
        environment=environment(),
        compositions=compositions,
        scores=figures_of(release, command.name, scores),
    )


def main(command: Submit) -> None:
    from compclip.release.submission_page import write_submission_page

    started, release = time.monotonic(), open_release(command.release)
    check_name("--name", command.name, release)
    pictures = all_pictures(release, command.images)
    for name, of in pictures.items():
        check_pictures(command.images, name, of, command.missing, command.sizes)
    submission = submit(release, pictures, command)
    write_text(submission.model_dump_json() + "\n", command.output)
    page = command.output.with_suffix(".html")
    lines = write_submission_page(release, submission, page)
    made = sum(of.sizes.total() for of in pictures.values())
    log.info("%d images scored in %.0f s", made, time.monotonic() - started)
    print(*lines, f"submission: {command.output}", f"page: {page}", sep="\n")
