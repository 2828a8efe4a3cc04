"""The files of releases and submissions as strict models, because strangers write them.

A model has no free keys, converts no types, and its numbers are finite and bounded. What a field's
type cannot say is checked where files meet: ``release.check`` and ``release.submission``.
"""

import json
import os
import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    create_model,
    field_validator,
)

from compclip.core import limits
from compclip.core.artifacts.files import read_json, safe_id
from compclip.core.errors import UserError, require
from compclip.core.settings.arguments import Candidates
from compclip.core.settings.section import NAME, Section, SeedNumber
from compclip.core.tables import version_fault
from compclip.release.config import VERSION, Line
from compclip.score.config import Scoring
from compclip.stats.estimates import INTERVAL_COLUMNS

SCHEMA_VERSION = 3
# Between releases, compclip has the version of the next one, as 3.0.0.dev0.
COMPCLIP_VERSION = r"[0-9]+\.[0-9]+\.[0-9]+(\.dev[0-9]+)?"
MOST_CHUNKS = 10_000
SHOWN = 200  # characters of a key or a fault that are shown
DOWNLOAD = "download the release again"  # what users do about a faulty release


def _relative(name: str) -> str:
    """Refuse a path that could lead out of its folder, or that means something else on another
    system.
    """
    try:
        return safe_id(name.replace(":", "\\"))
    except UserError:
        raise ValueError(f"{name!r} is not a plain relative path") from None


def _distinct(values: list[Any]) -> list[Any]:
    if len(set(values)) < len(values):
        raise ValueError("a value is listed twice")
    return values


Name = Annotated[str, Field(pattern=NAME, max_length=100)]
RelativePath = Annotated[str, Field(max_length=500), AfterValidator(_relative)]
Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Count = Annotated[int, Field(ge=0, le=limits.EXACT_FLOAT)]
Chance = Annotated[float, Field(ge=0, le=1)]
Signed = Annotated[float, Field(ge=-1, le=1)]  # a cosine, or a difference of chances
Multiple = Annotated[float, Field(ge=-100, le=100)]
# As texts, since a mapping of literals is not one of texts.
TestSplit = Annotated[str, Field(pattern="^test_(seen|unseen|swapped)$")]
Split = Literal["test_seen", "test_unseen", "test_swapped"]
ImageKind = Literal["real", "drawn"]
BalanceKey = Literal["of", "kept"]


# Of a set; they need the images, and without these they are as told.
CONTROLS = ("blind_control", "hubness")


STRICT = Section.model_config | ConfigDict(strict=True)


class Strict(BaseModel):
    """Base of all models here."""

    model_config = STRICT


class ReleasedJudge(Strict):
    """The location of a judge. Kinds other than two towers need a newer compclip."""

    kind: Literal["two_towers"] = "two_towers"
    folder: RelativePath
    hash: Line


class ReleasedComposition(Strict):
    """A composition's judges by name, control generators, and reference and usual pair of each
    split.
    """

    candidates: Candidates
    judges: dict[Name, ReleasedJudge] = Field(min_length=1, max_length=100)
    generators: Annotated[
        list[Name], Field(min_length=1, max_length=1000), AfterValidator(_distinct)
    ]
    anchors: dict[TestSplit, tuple[Name | None, Name | None]] = Field(min_length=3)


class Contents(Strict):
    """The content of ``release.json``."""

    schema_version: Literal[3] = 3
    name: Name
    version: str = Field(pattern=VERSION, max_length=100)
    license: Line
    compclip: Line
    dataset: Name
    compositions: dict[Name, ReleasedComposition] = Field(min_length=1, max_length=1000)
    reference: Name | None
    scoring: Scoring
    seed: SeedNumber
    judge_half: SeedNumber
    train_on: Literal["train", "half", "all"]
    prompts: Literal["pairs", "all"]
    max_bias: Chance
    batch: Annotated[int, Field(ge=1, le=1 << 16)]
    threads: Annotated[int, Field(ge=1, le=1024)]
    files: dict[RelativePath, Sha256] = Field(max_length=1_000_000)

    @field_validator("scoring")
    @classmethod
    def _bounded(cls, scoring: Scoring) -> Scoring:
        """Refuse settings that a config may have, but that would exhaust memory or score a set
        twice.
        """
        _distinct(scoring.distractors)
        if scoring.chunks > MOST_CHUNKS:
            raise ValueError(f"expected at most {MOST_CHUNKS:,} chunks")
        return scoring


def strict(name: str, fields: dict[str, Any]) -> type[Strict]:
    """Return a strict model with fields of one kind for each text of names."""
    types = {field: kind for names, kind in fields.items() for field in names.split()}
    return create_model(name, __base__=Strict, **types)


# ``adjustments/J.json``: ``score.choices.Adjustment``.
AdjustmentFile = strict(
    "AdjustmentFile", {"multiple": Multiple, "of_seen": dict[Line, Multiple], "mean": list[Signed]}
)

# ``bias/J.json``, as ``score.measure_bias`` describes it. Of no entries, it has only ``n``.
INTERVALS = " ".join(INTERVAL_COLUMNS)
Accuracy = strict(
    "Accuracy",
    {
        "n": Count,
        "pairs": Annotated[Count, Field(default=0)],
        f"accuracy {INTERVALS} adjusted chance two_way": Annotated[
            Chance | None, Field(default=None)
        ],
    },
)
Loss = strict("Loss", {f"value {INTERVALS}": Signed | None})
BiasOfImages = strict(
    "BiasOfImages", {"seen matched held_out": Accuracy, "difference": Loss | None}
)
Synonyms = strict("Synonyms", {"n": Count, "agreement": Chance | None})
JudgeBias = strict(
    "JudgeBias",
    {
        "dataset composition judge judge_hash": Line,
        "images": dict[ImageKind, BiasOfImages],  # type: ignore[valid-type]
        "pairs": dict[Line, Accuracy],  # type: ignore[valid-type]
        "adjustment": Multiple | None,
        "synonyms": Synonyms,
    },
)

# ``variants.json``: numbers of prompts and variants, and the accuracy of people.
VariantsOfSplit = strict(
    "VariantsOfSplit",
    {
        "prompts with_variants variants": Count,
        "excluded": dict[Line, Count],
        "ceiling": Chance | None,
    },
)
VariantsFile = strict("VariantsFile", {"splits": dict[Split, VariantsOfSplit]})  # type: ignore[valid-type]

# ``scores/J/G/summary.json``: ``score.scores.set_summary`` of each set. Only controls of a set are
# read from it.
SAMPLED = "sampled_mean sampled_std"
Pool = strict(
    "Pool", {"images captions distinct eligible_least entries_with_fewer_than_candidates": Count}
)
Balance = strict(
    "Balance",
    {
        "rule": Line,
        "pairs": Count,
        "cut": dict[Line, dict[BalanceKey, Count]],
        SAMPLED: Chance | None,
    },
)
SetSummary = strict(
    "SetSummary",
    {
        "set split prompts distractors": Line,
        "judged images adjective_judged": Count,
        "missing broken": list[RelativePath],
        f"{SAMPLED} exact adjective adjective_chance blind_control hubness": Chance | None,
        "pool": Pool,
        "balance": Annotated[Balance | None, Field(default=None)],
    },
)
Summary = strict(
    "Summary",
    {
        "dataset composition generator train_on ties chunking judge judge_hash class_rule": Line,
        "candidates chunks images_without_class captions truncated_captions": Count,
        "adjustment": Multiple | None,
        "judge_epochs": Count | None,
        "seed": SeedNumber,
        "scores": list[SetSummary],  # type: ignore[valid-type]
    },
)


def read_strictly(file: Path, kind: Any, remedy: str, versioned: str = "") -> Any:
    """Read a JSON file as a model, or as another type that pydantic knows.

    Args:
        versioned: the kind of file that has a schema version; "" if it has none.

    Raises:
        UserError: the file is too large or not JSON, has a key twice or NaN, or does not fit; names
            the first fault.
    """
    require(os.path.isfile(file), file, "not a regular file", remedy)
    size = file.stat().st_size
    require(size <= limits.JSON_BYTES, file, limits.over("JSON_BYTES", f"{size:,} bytes"), remedy)
    content = read_json(file)
    if versioned:
        _require_version(file, content, versioned)
    try:
        # Python's reader takes NaN and 1e999, pydantic's a key twice; a strict tuple may be a list
        # only in JSON.
        text = json.dumps(content, allow_nan=False)
        return TypeAdapter(kind).validate_json(text, strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"]))[:SHOWN]
        message = first["msg"].removeprefix("Value error, ")[:SHOWN]
        fault = f"{key}: {message}"
    except (ValueError, RecursionError) as error:
        fault = str(error)
    raise UserError(f"{file}: {' '.join(fault.split())}; {remedy}")


def _writer(content: dict[str, Any]) -> str:
    """Return the version of compclip that wrote a release or a submission; "" if it tells none."""
    environment = content.get("environment")
    # A submission has it among the packages of its environment.
    told = environment if isinstance(environment, dict) else content
    version = told.get("compclip")
    # A stranger may have written anything.
    if isinstance(version, str) and re.fullmatch(COMPCLIP_VERSION, version):
        return version
    return ""


def _require_version(file: Path, content: Any, kind: str) -> None:
    """Raise UserError unless a file of this kind has the schema's current version."""
    content = content if isinstance(content, dict) else {}
    version = content.get("schema_version")
    fault = version_fault(version, SCHEMA_VERSION, kind, _writer(content))
    remedy = f"make the {kind} again, use the compclip that wrote it, or correct the path"
    # By its type, because True equals 1.
    is_current = type(version) is int and version == SCHEMA_VERSION
    # A stranger may have written a version of any length.
    require(is_current, file, fault[:SHOWN], remedy)
