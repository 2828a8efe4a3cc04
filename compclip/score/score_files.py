"""Score the images of a table by a judge."""

from pathlib import Path
from typing import Literal

import pandas as pd
from pydantic import Field

from compclip.core.artifacts.files import atomic
from compclip.core.errors import require
from compclip.core.reading.normal import VISIBLE
from compclip.core.reading.records import is_count, read_records
from compclip.core.settings.cli import Command
from compclip.core.settings.section import Count, Seed, Threads
from compclip.plot.labels import interval, percent
from compclip.score.config import Scoring
from compclip.stats.estimates import ScoreEstimate

NUMBERS = ("caption_id", "draw")


class ScoreFiles(Command):
    """Score the images of a table by a judge: R-precision and, with --variants, adjective accuracy.

    Prints each score with its 95 % intervals. Tables are CSV, TSV, JSON lines or Parquet. Paths of
    images are relative to the table.
    """

    entries: Path = Field(
        description="a row for each image: path, image_id, text; optionally caption_id, draw, "
        "class_id and pair"
    )
    judge: Path = Field(description="folder of the judge")
    captions: Path | None = Field(
        None,
        description="distractors: image_id, text; optionally caption_id, class_id; default: those "
        "of --entries",
    )
    variants: Path | None = Field(
        None, description="captions with another adjective: image_id, caption_id, text"
    )
    candidates: Count | None = Field(
        None, ge=2, description=Scoring.model_fields["candidates"].description
    )
    batch: Count = Field(
        256, ge=1, description="items encoded at once; changes floating-point rounding"
    )
    threads: Threads
    device: Literal["auto", "cpu", "cuda"] = Field(
        "auto", description="auto: a GPU if there is one"
    )
    seed: Seed
    output: Path | None = Field(None, description="CSV with the scores of each image")


def read_rows(file: Path, required: list[str], optional: list[str]) -> pd.DataFrame:
    """Return the rows of a table, caption_id and draw as integers; UserError if there are none or
    one is faulty.
    """
    rows, faults = read_records(file, required, optional)
    # Names each row in messages.
    locations = rows["where"]
    # Both are optional, and files may have them as texts or floats.
    numbers = [name for name in NUMBERS if name in rows]
    for name in numbers:
        faults += list(locations[~is_count(rows[name])] + f": {name} is not a whole number")
    for name in required:
        # A text of invisible characters alone is blank, too.
        has_text = rows[name].fillna("").map(VISIBLE.search).astype(bool)
        faults += list(locations[~has_text] + f": no {name}")
    require(not faults, file, faults[0] if faults else "", "correct it")
    require(len(rows), file, "no rows", "add some")
    return rows.drop(columns="where").astype(dict.fromkeys(numbers, "int64"))


def as_line(name: str, score: ScoreEstimate, entries: int) -> str:
    """Return a line with a score, its intervals in percent, and the number of entries."""
    # An interval is missing for too few images or pairs.
    same_pairs = interval(score.same_pairs_low, score.same_pairs_high) or "–"
    new_pairs = interval(score.new_pairs_low, score.new_pairs_high) or "–"
    intervals = f"{same_pairs} for the same pairs, {new_pairs} for new pairs"
    return f"{name}: {percent(score.value)} % {intervals}; n = {entries}"


def main(command: ScoreFiles) -> None:
    # Imported here, because torch is slow to import.
    from compclip.clip.model import load_judge
    from compclip.score.score_images import score_with_judge

    entries = read_rows(
        command.entries, ["path", "image_id", "text"], [*NUMBERS, "class_id", "pair"]
    )
    folder = command.entries.parent
    entries["path"] = [str(folder / path) for path in entries["path"]]
    captions = command.captions and read_rows(
        command.captions, ["image_id", "text"], ["caption_id", "class_id"]
    )
    variants = command.variants and read_rows(
        command.variants, ["image_id", "caption_id", "text"], []
    )
    judge = load_judge(command.judge, command.threads, command.device)
    scores = score_with_judge(
        entries,
        judge,
        captions,
        variants,
        scoring=Scoring(candidates=command.candidates),
        batch=command.batch,
        seed=command.seed,
    )
    name = f"R-precision ({scores.candidates} candidates)"
    print(as_line(name, scores.r_precision, len(entries)))
    if scores.adjective_accuracy is not None:
        # Prompts without variants have no adjective accuracy.
        has_variants = scores.table["adjective_first"].notna()
        with_variants = int(has_variants.sum())
        print(as_line("Adjective accuracy", scores.adjective_accuracy, with_variants))
    if command.output:
        with atomic(command.output) as temporary:
            scores.table.to_csv(temporary, index=False, float_format="%.6f", lineterminator="\n")
        print(command.output)
