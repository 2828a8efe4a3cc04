"""Check a release before it is used: which files it has, how large they get, and whether they fit
together.
"""

import stat
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from compclip.core import limits
from compclip.core.artifacts.files import read_json, safe_id
from compclip.core.errors import UserError, memory_for, one_line, require
from compclip.core.identity.digests import sha256
from compclip.core.reading.records import check_expansion
from compclip.core.tables import CAPTION_KEY, PROMPT_KEY, are_among
from compclip.release.file_models import DOWNLOAD, Contents
from compclip.score.entries import ENTRY
from compclip.split.pools import choose_candidates, least_distractors

if TYPE_CHECKING:
    from compclip.release.open_release import Release, ReleasedTables, Summarized

RELEASE_FILE = "release.json"
# What Snakemake, git and the Hub's client put at the top of a folder; it is never read.
OF_TOOLS = (".snakemake_timestamp", ".git", ".gitattributes", ".cache")
ROUNDING = 2e-6  # of numbers with six decimals, and of a sum of two


def files_in(folder: Path) -> Iterator[str]:
    """Yield the relative path of each file in a folder; UserError for links, devices and other
    special files.
    """
    for path in folder.rglob("*"):
        name = path.relative_to(folder)
        mode = path.lstat().st_mode
        if name.parts[0] in OF_TOOLS or stat.S_ISDIR(mode):
            continue
        # A link may lead out of the folder, and a device or a pipe has no end.
        require(stat.S_ISREG(mode), path, "not a regular file", DOWNLOAD)
        yield name.as_posix()


def check_files(folder: Path, contents: Contents) -> None:
    """Raise UserError unless the folder has exactly the listed files, with their digests, none of
    which explodes.
    """
    # A file cannot contain its own digest.
    actual = {*files_in(folder)} - {RELEASE_FILE}
    for name in sorted(actual ^ contents.files.keys()):
        fault = f"not listed in {RELEASE_FILE}" if name in actual else "missing"
        raise UserError(f"{folder / name}: {fault}; {DOWNLOAD}")
    for name, expected in contents.files.items():
        file = folder / name
        # Before the file is read, since strangers may have made it large.
        size = file.stat().st_size
        fault = limits.over("FILE_BYTES", f"{size:,} bytes")
        require(size <= limits.FILE_BYTES, file, fault, DOWNLOAD)
        fault = f"damaged: its sha256 is not that of {RELEASE_FILE}"
        require(sha256(file) == expected, file, fault, DOWNLOAD)
        if file.suffix == ".parquet":
            check_expansion(file)


def equal(a: Any, b: Any, tolerance: float = ROUNDING) -> bool:
    """Return whether two JSON values are equal, numbers within ``tolerance``."""
    if isinstance(a, int | float) and isinstance(b, int | float):
        return abs(a - b) <= tolerance
    return bool(a == b)


@contextmanager
def fitting(release: "Release") -> Iterator[None]:
    """Raise UserError if a stranger's tables and JSON files do not fit together."""
    try:
        with memory_for(release.folder):
            yield
    except (ArithmeticError, AttributeError, LookupError, OSError, TypeError, ValueError) as error:
        # Tables can contradict each other in more ways than are checked.
        fault = f"its files do not fit together ({one_line(error)[:200]})"
        raise UserError(f"{release.folder}: {fault}; {DOWNLOAD}") from error


def check_release(release: "Release") -> None:
    """Raise UserError unless all tables and JSON files can be read and fit together."""
    with fitting(release):
        for composition in release.parts.values():
            check_part(composition)


def check_part(composition: "ReleasedTables") -> None:
    """Raise UserError unless the files of a composition can be read and fit together."""
    contents = composition.release.contents
    settings = composition.contents
    release_file = composition.folder.parent / RELEASE_FILE
    where = f"{release_file}: {composition.name}"
    # None: the run has no such generator.
    named = {contents.reference, *chain.from_iterable(settings.anchors.values())} - {None}
    fault = "a reference or anchor is not one of its generators"
    require(named <= {*settings.generators}, where, fault, DOWNLOAD)
    # Other tables refer to the prompts, so these come first.
    _check_prompts(composition)
    prompts = composition.tables["prompts"]
    pools = {
        "captions": composition.release.captions,
        "judged": composition.judged,
        "swapped": composition.tables["swapped"],
    }
    choose_candidates(settings.candidates, least_distractors(prompts=prompts, **pools), where)
    # Read the files that are not read with the scores.
    _ = composition.bias_check, composition.matched, composition.variants
    _ = composition.divergences, composition.rules
    # What a submission's scores are compared with.
    for judge in settings.judges:
        _check_judge(composition, judge)
    for generator, by_judge in composition.summarized.items():
        for judge, control in by_judge.items():
            folder = composition.folder / "scores" / judge / generator
            _check_scores(folder, prompts, control)


def _check_prompts(composition: "ReleasedTables") -> None:
    """Raise UserError unless each prompt has a text, a path of its own and a caption."""
    prompts = composition.tables["prompts"]
    file = composition.folder / "prompts.parquet"
    has_texts = len(prompts) and prompts["text"].str.strip().all()
    require(has_texts, file, "no prompts, or a blank one", DOWNLOAD)
    dataset = composition.release.contents.dataset
    for name, split in zip(prompts["file_name"], prompts["split"], strict=True):
        # A model's image is looked for at this path.
        home = f"{dataset}/{composition.name}/{split}/"
        is_at_home = safe_id(name).startswith(home)
        require(is_at_home, file, f"file_name {name} is not in {home}", DOWNLOAD)
    _require_keys(file, prompts, composition.release.captions, CAPTION_KEY)
    variants_file = composition.folder / "variants.parquet"
    _require_keys(variants_file, composition.tables["variants"], prompts, PROMPT_KEY)


def _check_judge(composition: "ReleasedTables", judge: str) -> None:
    """Raise UserError unless the model exists and the adjustment fits its embeddings."""
    released = composition.contents.judges[judge]
    folder = composition.release.folder / released.folder
    model = folder / "model.json"
    require(model.is_file(), model, "missing", DOWNLOAD)
    adjustment = composition.adjustment(judge)
    # The mean embedding of the calibration images is compared with those of texts.
    model_settings = read_json(model)["model_cfg"]
    size = model_settings["embed_dim"]
    # None: no seen prompt has variants, so nothing was chosen.
    is_whole = adjustment is None or len(adjustment.mean) == size
    file = composition.folder / "adjustments" / f"{judge}.json"
    require(is_whole, file, f"mean has not {size} numbers", DOWNLOAD)


def _check_scores(folder: Path, prompts: pd.DataFrame, control: "Summarized") -> None:
    """Raise UserError unless the scores of a control are of the prompts, and possible."""
    for name, table in control.tables.items():
        file = folder / f"{name}.parquet"
        # A set is named after its split, with further distractors after a dot.
        split = name.partition(".")[0]
        in_split = prompts["split"] == split
        _require_keys(file, table, prompts[in_split], ENTRY)
        # NaN is possible: a missing image has no similarity.
        is_cosine = ~(table["similarity"].abs() > 1)
        is_chance = table["p_beaten"] + table["p_tied"] <= 1 + ROUNDING
        is_possible = (is_cosine & is_chance).all()
        require(is_possible, file, "impossible similarities or chances", DOWNLOAD)


def _require_keys(file: Path, table: pd.DataFrame, target: pd.DataFrame, key: list[str]) -> None:
    """Raise UserError unless each key of a table is in the table that it refers to."""
    is_known = are_among(table, target, key)
    require(is_known.all(), file, f"row {is_known.argmin()}: unknown {key}", DOWNLOAD)
