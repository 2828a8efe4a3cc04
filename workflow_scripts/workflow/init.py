"""Write a config to start from: ``compclip init captions.csv``, or without a file for drawn birds.

The table is read as source ``table`` reads it. Columns with unknown names are guessed by their
content. What can be held out is estimated by the order of words alone, in moments; the run itself
parses the captions.
"""

import json
import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field
from pydantic_settings import CliPositionalArg

from compclip.core.artifacts.files import write_text
from compclip.core.artifacts.parquet import read_frame
from compclip.core.errors import UserError, printable, require
from compclip.core.limits import IMAGE_SUFFIXES
from compclip.core.log import log
from compclip.core.reading.records import first_rows, looks_like_row
from compclip.core.settings.cli import Command
from compclip.dataset.sources.table import (
    KNOWN_AS,
    TableColumn,
    find_files,
    spool_rows,
    survey,
)
from compclip.text.lexicon import SHARED, find_lexicon
from workflow_scripts.places import CONFIG_SUFFIXES, check_writable
from workflow_scripts.root import run_command, workflow_version

# Rows by which a column is guessed, images by which a folder is, captions whose words are counted.
ROWS_SEEN = 1000
IMAGES_SOUGHT = 50
CAPTIONS_COUNTED = 50_000
WORDS_OF_A_CAPTION = 3  # on average, at least
NAMES_OF_IMAGES = re.compile(r"image|img|photo|picture|pic|file|path|id$", re.IGNORECASE)
# How often a pair must occur to be ranked: as often as by default if there are pairs enough.
MIN_COUNTS = (10, 5, 3, 2)
PAIRS_WANTED = 20
PAIRS_NEEDED = 10
# Words that follow an adjective and are no nouns.
NO_NOUNS = set("a an the and or but with without in on of at by to from is are was its it".split())
PLAIN_YAML = re.compile(r"(?!(?:null|true|false|yes|no|on|off)$)[A-Za-z][\w./-]*", re.IGNORECASE)
GENERATORS = "[photographs, shuffled, usual_photographs, pair_photographs]"


class Init(Command):
    """Write a commented config to start from, for a table of captions or, without one, for drawn
    birds.
    """

    captions: CliPositionalArg[Path | None] = Field(
        None, description="CSV, TSV, JSON lines or Parquet with an image and a caption in each row"
    )
    images: Path | None = Field(
        None, description="folder of the images; by default searched beside the captions"
    )
    output: Path = Field(Path("mine.yaml"), description="config to write; must not exist yet")


@dataclass(frozen=True)
class Findings:
    """What is known of a table."""

    columns: dict[TableColumn, str]  # those with names that the source does not know
    captions: int
    images: int
    found: int  # images with a file
    folder: str | None  # of the images
    compositions: list[str]
    min_count: int


def guess_columns(table: Path) -> dict[TableColumn, str]:
    """Return the table's columns of images and captions that have names unknown to the source."""
    columns, rows = first_rows(table, ROWS_SEEN)
    shown = ", ".join(map(repr, columns[:20]))[:400] or "none"
    is_known = {*columns} & {*KNOWN_AS["caption"], *KNOWN_AS["image_id"]}
    has_header = is_known or not looks_like_row(columns)
    remedy = "write the names of its columns above: image_id and caption"
    require(has_header, table, f"no header: its first line is {shown}", remedy)
    guessed: dict[TableColumn, str] = {}
    if not {*columns} & {*KNOWN_AS["caption"]}:
        words = {column: _mean_words(row.get(column) for row in rows) for column in columns}
        longest = max(words, key=words.__getitem__, default="")
        has_captions = bool(rows) and words[longest] >= WORDS_OF_A_CAPTION
        fault = f"no column with captions; its columns: {shown}"
        require(has_captions or not rows, table, fault, "name it caption")
        if has_captions:
            guessed["caption"] = longest
    if not {*columns} & {*KNOWN_AS["image_id"]}:
        others = [column for column in columns if column not in guessed.values()]
        candidates = [column for column in others if _names_files(rows, column)]
        candidates += [column for column in others if NAMES_OF_IMAGES.search(column)]
        fault = f"no column with the image of each caption; its columns: {shown}"
        require(candidates or not rows, table, fault, "name it image_id")
        if candidates:
            guessed["image_id"] = candidates[0]
    return guessed


def _mean_words(cells: Iterable[Any]) -> float:
    counts = [len(cell.split()) if isinstance(cell, str) else 0 for cell in cells]
    return sum(counts) / max(1, len(counts))


def _names_files(rows: list[dict[str, Any]], column: str) -> bool:
    """Return whether most cells of a column are names of image files."""
    are_names = [str(row.get(column)).lower().endswith(IMAGE_SUFFIXES) for row in rows]
    return sum(are_names) > len(are_names) / 2


def find_folder(table: Path, ids: list[str], paths: Mapping[str, str]) -> Path | None:
    """Return the folder beside the table that has most of its first images; None if none has."""
    beside = table.parent
    below = sorted(path for path in beside.iterdir() if path.is_dir() and path.name[0] != ".")
    counts = {folder: _count_files(folder, ids, paths) for folder in (*below, beside)}
    best = max(counts, key=counts.__getitem__)
    return best if counts[best] else None


def _count_files(folder: Path, ids: list[str], paths: Mapping[str, str]) -> int:
    count = 0
    for image_id in ids[:IMAGES_SOUGHT]:
        names = [f"{image_id}{suffix}" for suffix in IMAGE_SUFFIXES]
        if image_id in paths:
            names = [paths[image_id]]
        count += any((folder / name).is_file() for name in names)
    return count


def count_pairs(texts: Iterable[str], composition: str) -> Counter[tuple[str, str]]:
    """Return how many captions have each of a composition's adjectives directly before a word."""
    forms = find_lexicon(composition, "adjectives").forms
    counts = Counter[tuple[str, str]]()
    for text in texts:
        words = re.findall(r"\w+|[^\w\s]", text.lower())
        pairs = {
            (forms[word], following)
            for word, following in zip(words, words[1:], strict=False)
            if word in forms and following.isalpha() and following not in NO_NOUNS
        }
        counts.update(pair for pair in pairs if pair[1] not in forms)
    return counts


def choose_compositions(table: Path, texts: list[str]) -> tuple[list[str], int]:
    """Return the compositions with pairs enough, and how often a ranked pair must occur.

    Raises:
        UserError: no composition has them.
    """
    counts = {name: count_pairs(texts, name) for name in SHARED}
    for wanted in (PAIRS_WANTED, PAIRS_NEEDED):
        for min_count in MIN_COUNTS:
            compositions = [
                name
                for name, pairs in counts.items()
                if sum(count >= min_count for count in pairs.values()) >= wanted
            ]
            if compositions:
                return compositions, min_count
    repeated = max(sum(count > 1 for count in pairs.values()) for pairs in counts.values())
    raise UserError(
        f"{table}: too few captions: {len(texts)} captions repeat {repeated} pairs of an adjective "
        f"of {' or '.join(SHARED)} and a noun, {PAIRS_NEEDED} are needed; add captions"
    )


def survey_table(table: Path, images: Path | None) -> Findings:
    """Return what the config must say of a table."""
    columns = guess_columns(table)
    with tempfile.TemporaryDirectory() as scratch:
        rows = Path(scratch, "rows.parquet")
        unreadable, _ = spool_rows(table, columns, rows)
        described, paths, summary = survey(table, rows, unreadable)
        texts = read_frame(rows, ["caption"])["caption"]
    texts = [text for text in texts if text]
    skipped = summary["rows_unreadable"]["count"]
    if skipped:
        log.warning("%s: %d rows cannot be read and are skipped", table, skipped)
    ids = list(described["image_id"])
    compositions, min_count = choose_compositions(table, texts[:CAPTIONS_COUNTED])
    folder = images or find_folder(table, ids, paths)
    found = 0
    if folder is not None:
        # Results would be among them.
        is_here = folder.resolve() == Path.cwd()
        remedy = "move them to a folder, such as images"
        require(not is_here, folder.resolve(), "the images are in the working folder", remedy)
        found = len(find_files(folder, ids, paths)[0])
    path = None if folder is None else str(folder)
    return Findings(columns, len(texts), len(ids), found, path, compositions, min_count)


def config_of_table(table: Path, findings: Findings, output: Path) -> list[str]:
    """Return the lines of a config for a table."""
    size = f"{findings.captions:,} captions of {findings.images:,} images"
    lines = [f"# {table.name}: {size}, {findings.found:,} of them found.", *_heading(output)]
    lines += [
        f"compositions: [{', '.join(findings.compositions)}]    # kinds of adjectives",
        "dataset:",
        "  source: table",
        "  # limit: 500    # images, for a first try",
        "  table:",
        f"    file: {_quoted(str(table))}",
    ]
    if findings.columns:
        named = ", ".join(f"{name}: {_quoted(user)}" for name, user in findings.columns.items())
        lines.append(f"    columns: {{{named}}}")
    if findings.folder is None:
        lines.append("    images: null    # none found: splits and prompts only, no scores")
    else:
        lines.append(f"    images: {_quoted(findings.folder)}")
    lines += [
        "pairs:",
        "  nouns: null    # any noun, or a lexicon of yours: lexicons/nouns/NAME.yaml",
        f"  selection: {{min_count: {findings.min_count}}}    # occurrences of a ranked pair",
    ]
    if findings.folder is not None:
        lines += [
            "generate:    # photographs and controls; your model's images: docs/generators.md",
            f"  generators: {GENERATORS}",
            "judge: {model: RN50, pretrained: openai}    # trained on the train images; downloaded",
        ]
    return lines


def config_of_birds(output: Path) -> list[str]:
    """Return the lines of a config for drawn birds."""
    return [
        "# The default run, small: birds that compclip draws itself.",
        *_heading(output),
        "base: config.yaml    # the default run; without the lines below, it takes 8 minutes",
        "compositions: [color]    # kinds of adjectives; shape, too, by default",
        "dataset: {sketch: {images: 1000}}",
        "judge: {seeds: [0], epochs: 3}    # a verdict needs two judges",
        "generate: {generators: [photographs, shuffled, faithful, memorizer, usual]}",
    ]


def _heading(output: Path) -> list[str]:
    name = re.sub(r"\W+", "_", output.stem).strip("_") or "mine"
    check = run_command("check", output)
    return [
        f"# Check it with `{check}`, run it with `{run_command('', output)}`.",
        "# All keys with their meaning: docs/config.md in compclip's repository.",
        f"version: {workflow_version()}    # of compclip; another one is refused",
        f"results: results/{name}",
    ]


def _quoted(text: str) -> str:
    """Return a text as YAML has it."""
    return text if PLAIN_YAML.fullmatch(text) else json.dumps(text, ensure_ascii=False)


def main(command: Init) -> None:
    output = command.output
    require(not output.exists(), output, "output file already exists", "choose another --output")
    is_config = output.suffix in CONFIG_SUFFIXES
    require(is_config, output, "compclip run takes names that end in .yaml", "choose such a name")
    check_writable(output.absolute().parent)
    if command.captions is None:
        lines = config_of_birds(output)
    else:
        findings = survey_table(command.captions, command.images)
        lines = config_of_table(command.captions, findings, output)
        if findings.found < findings.images:
            log.warning("%s: %s", output, lines[0].removeprefix("# "))
    # A line break in a file's name would end its comment, and begin a key.
    text = "\n".join(map(printable, lines))
    write_text(f"{text}\n", output)
    log.info("%s: written; `%s` runs it", output, run_command("", output))
