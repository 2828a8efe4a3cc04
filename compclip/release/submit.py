"""Score a model's images on a release, and write its submission with a page."""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pandas as pd
from pydantic import Field

from compclip.core.artifacts.files import write_text
from compclip.core.errors import require
from compclip.core.identity.digests import sha256
from compclip.core.log import log
from compclip.core.progress import track
from compclip.core.reading.pictures import BrokenImage, image_size
from compclip.core.settings.cli import Command
from compclip.core.settings.section import NAME, CacheFolder
from compclip.core.tables import TESTS
from compclip.generate.generator import PROMPT_KEYS
from compclip.generate.generators.folder import find_images
from compclip.release.file_models import DOWNLOAD
from compclip.release.open_release import Release, ReleasedTables, open_release
from compclip.release.submission import (
    FAILED,
    ComparedSubmissions,
    JudgeWeights,
    ScoresByJudge,
    Submission,
    SubmittedComposition,
    TrainingData,
    check_name,
    compare_submissions,
    environment,
    figures_in,
    release_id,
    repeated_images,
    submitted_scores,
)
from compclip.score.choices import Embed
from compclip.score.entries import EntrySet, entry_sets
from compclip.score.score_images import embed_once, score_images
from compclip.score.score_table import SetScores
from compclip.split.pools import Pools


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
        False, description="accept missing and broken images, which count as wrong"
    )
    sizes: bool = Field(False, description="accept images of different sizes")
    allow_equal: bool = Field(
        False,
        description="accept equal images of different texts, as of a memorizer; the submission and "
        "its pages say so",
    )
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
        digests: by file_name, the sha256 of the image, ``missing`` or ``broken``.
        sizes: numbers of images by width and height.
        repeated: what is wrong if images repeat for different texts, else "".
        digest_by_path: the sha256 of each image by its path in the manifest.
    """

    manifest: pd.DataFrame
    digests: dict[str, str]
    sizes: Counter[tuple[int, int]]
    repeated: str
    digest_by_path: dict[str, str]


def find_pictures(folder: Path, prompts: pd.DataFrame) -> Pictures:
    """Find and check the image of each prompt."""
    files, _ = find_images(folder, prompts)
    names = prompts["file_name"]
    paths = dict[str, str]()
    digests = dict.fromkeys(names, "missing")
    sizes = Counter[tuple[int, int]]()
    for name in track(names, len(names), "images checked"):
        # Its digest stays ``missing``.
        if name not in files:
            continue
        try:
            sizes[image_size(files[name])] += 1
        except BrokenImage:
            digests[name] = "broken"
        else:
            digests[name] = sha256(files[name])
            paths[name] = str(files[name])
    # A digest stands for an image; the manifest has its status instead.
    status = names.map(digests).where(~names.isin(paths), "ok")
    manifest = prompts[PROMPT_KEYS].assign(path=names.map(paths), status=status)
    repeated = repeated_images(prompts, digests)
    digest_by_path = {path: digests[name] for name, path in paths.items()}
    return Pictures(manifest, digests, sizes, repeated, digest_by_path)


def all_pictures(release: Release, folder: Path) -> dict[str, Pictures]:
    """Find and check the images of all compositions."""
    return {
        name: find_pictures(folder, composition.tables["prompts"])
        for name, composition in release.parts.items()
    }


def check_pictures(composition: str, pictures: Pictures, command: Submit) -> None:
    """Raise UserError for missing and broken images, for different sizes and for equal images,
    unless accepted.
    """
    folder = command.images
    lacking = [name for name, digest in pictures.digests.items() if digest in FAILED]
    counts = f"{len(lacking)} of {len(pictures.digests)} images of {composition}"
    fault = f"{counts} are missing or broken"
    remedy = "draw them, or add --missing to count them as wrong"
    require(command.missing or not lacking, folder, f"{fault}, the first {lacking[:1]}", remedy)
    if lacking:
        log.warning("warning: %s: %s; they count as wrong", folder, fault)
    size_counts = [
        f"{n} of {width} x {height} pixels" for (width, height), n in pictures.sizes.most_common()
    ]
    number = len(pictures.sizes)
    fault = f"images of {composition} have {number} sizes ({', '.join(size_counts)})"
    require(command.sizes or number < 2, folder, fault, "draw all at one size, or add --sizes")
    fault = pictures.repeated and f"{composition}: {pictures.repeated}"
    remedy = "draw an image for each text, or add --allow-equal, which marks the submission"
    require(command.allow_equal or not fault, folder, fault, remedy)
    if fault:
        log.warning("warning: %s: %s; the submission is marked", folder, fault)


def sets_to_score(
    composition: ReleasedTables, manifest: pd.DataFrame, splits: Sequence[str] = TESTS
) -> list[EntrySet]:
    """Return the sets of one composition, which all judges share.

    Args:
        manifest: as in ``Pictures``.
        splits: a metric (``compclip.metrics``) scores one split alone.
    """
    tables = composition.tables
    return entry_sets(
        splits,
        composition.release.contents.scoring.distractors,
        prompts=tables["prompts"],
        manifest=manifest,
        pools=Pools(composition.release.captions, composition.judged, tables["swapped"]),
        classes=composition.release.classes,
        variants=tables["variants"],
    )


def score_part(
    composition: ReleasedTables,
    sets: Sequence[EntrySet],
    judge: str,
    texts: Callable[[Sequence[str]], Embed],
    images: Embed,
) -> dict[str, SetScores]:
    """Score the images of one composition by one judge, by set.

    Args:
        sets: as ``sets_to_score`` returns them.
        texts: given all texts, returns a function that maps some of them to their embeddings.
        images: maps paths to embeddings.
    """
    variants = composition.tables["variants"]
    variants = variants[variants["split"].isin([entry_set.split for entry_set in sets])]
    captions = set[str]()
    for entry_set in sets:
        captions |= entry_set.texts
    # Sorted, since a set has no fixed order, and other batches round differently.
    embed = texts([*sorted(captions), *variants["text"]])
    adjustment = composition.adjustment(judge)
    return score_images(sets, composition.rules, embed, images, adjustment)


def score_parts(
    release: Release, pictures: Mapping[str, Pictures], device: str, cache: Path
) -> dict[str, ScoresByJudge]:
    """Return the scores of each composition by each judge."""
    from compclip.clip.embed import open_embedders  # torch is slow to import

    settings = release.contents
    scores = dict[str, ScoresByJudge]()
    for name, composition in release.parts.items():
        judges = composition.contents.judges
        folders = [release.folder / judge.folder for judge in judges.values()]
        scores[name] = {}
        sets = sets_to_score(composition, pictures[name].manifest)
        # All judges at once, since an image is then read once for all of them.
        with open_embedders(folders, settings.batch, settings.threads, device, cache) as embedders:
            for (judge, released), embedder in zip(judges.items(), embedders, strict=True):
                log.info("%s: judge %s", name, judge)
                folder = release.folder / released.folder
                # Scores by another judge would not be comparable.
                actual_hash = embedder.judge.hash
                fault = f"its hash is {actual_hash}, not {released.hash} as in the release"
                require(actual_hash == released.hash, folder, fault, DOWNLOAD)
                texts = partial(embed_once, embedder)
                # The pictures are the user's files, which are in no table of images.
                images = partial(embedder.files, checked=pictures[name].digest_by_path)
                scored = score_part(composition, sets, judge, texts, images)
                scores[name][judge] = submitted_scores(released.hash, scored)
    return scores


def submit(
    release: Release, pictures: Mapping[str, Pictures], command: Submit
) -> tuple[Submission, list[ComparedSubmissions]]:
    """Return the submission of a model's images, and its tables of each composition."""
    # Values by judge; all figures follow from them.
    scores = score_parts(release, pictures, command.device, command.cache)
    compositions = {}
    tables = []
    for name, composition in release.parts.items():
        tables.append(compare_submissions(composition, [(command.name, scores[name])]))
        compositions[name] = SubmittedComposition(
            prompts=composition.prompts_digest,
            images=pictures[name].digests,
            judges=scores[name],
        )
    submission = Submission(
        name=command.name,
        judge_weights=command.judge_weights,
        training_data=command.training_data,
        repeats_images=any(part.repeated for part in pictures.values()),
        release=release_id(release),
        environment=environment(),
        compositions=compositions,
        # Anyone can compute these figures from the scores; ``compclip verify`` does.
        scores=figures_in(tables, command.name),
    )
    return submission, tables


def main(command: Submit) -> None:
    from compclip.release.submission_page import write_submission_page

    # A release that others wrote is checked before anything is scored.
    started = time.monotonic()
    release = open_release(command.release)
    # Early, because scoring takes long.
    check_name("--name", command.name, release)
    pictures = all_pictures(release, command.images)
    for name, images in pictures.items():
        check_pictures(name, images, command)
    submission, tables = submit(release, pictures, command)
    write_text(submission.model_dump_json() + "\n", command.output)
    # The scores are written even if drawing the page fails.
    page = command.output.with_suffix(".html")
    lines = write_submission_page(release, submission, tables, page)
    images_scored = sum(images.sizes.total() for images in pictures.values())
    log.info("%d images scored in %.0f s", images_scored, time.monotonic() - started)
    print(*lines, f"submission: {command.output}", f"page: {page}", sep="\n")
