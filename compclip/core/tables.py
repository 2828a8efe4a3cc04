"""The columns of every Parquet artifact, checked whenever it is written or read.

Lists and structs (``changes``) are Python objects in pandas and nested types in the file.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Union

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd


SPLITS = ("train", "test_seen", "test_unseen")
TESTS = ("test_seen", "test_unseen", "test_swapped")
# The prompts of held-out pairs.
HELD_OUT_SPLITS = ("test_unseen", "test_swapped")
# These pooled; not a split of its own.
HELD_OUT = "held_out"
# The columns that identify a caption.
CAPTION_KEY = ["image_id", "caption_id"]
PROMPT_KEY = ["split", *CAPTION_KEY]
# The judge that knows what was drawn.
ORACLE = "oracle"
STATUSES = ("ok", "missing", "broken", "skipped")  # of generated images
SIDES = ("train", "test", "unused")
RELATIONS = ("adjacent", "attributive", "predicative", "shared", "disputed")
# Kinds of compounds, by the nouns that their picture shows (Kumar et al. 2024, section 6).
NOUNS_SEEN = ("either", "both", "none")
# The three images of a compound: its own, and the distractors that show the first and the second
# noun.
ROLES = ("compound", "n1", "n2")
# The dtypes by which pandas infers a column of texts and missing values.
TEXT_KINDS = ("string", "empty")


@dataclass(frozen=True)
class Column:
    """A column's pandas dtype, and the values that it may have: of ``isin``, or from ``low`` to
    ``high``.
    """

    dtype: str
    nullable: bool = False
    isin: tuple[str, ...] | None = None
    low: float | None = None
    high: float = math.inf
    unique: bool = False

    def fault(self, values: pd.Series) -> str | None:
        """Return the first fault of ``values``, None if they have none."""
        import pandas as pd

        # Texts may still have dtype object.
        is_text = (
            self.dtype == "str"
            and values.dtype == object
            and pd.api.types.infer_dtype(values) in TEXT_KINDS
        )
        if not is_text and values.dtype != self.dtype:
            return f"expected {self.dtype}, got {values.dtype}"
        is_bad = values.isna()
        if is_bad.any() and not self.nullable:
            return f"row {is_bad.argmax()}: no value"
        if self.isin is not None:
            is_bad = ~is_bad & ~values.isin(self.isin)
            expected = f"one of {', '.join(self.isin)}"
        elif self.low is not None:
            is_bad = (values < self.low) | (values > self.high)
            expected = (
                f"at least {self.low}" if self.high == math.inf else f"{self.low} to {self.high}"
            )
        elif self.unique:
            is_bad = values.duplicated()
            expected = "each value once"
        else:
            return None
        return (
            f"row {is_bad.argmax()}: expected {expected}, got {values[is_bad].iloc[0]!r}"
            if is_bad.any()
            else None
        )


@dataclass(frozen=True)
class Schema:
    """A table's columns by name, in order, and the columns that together are unique to each row."""

    columns: Mapping[str, Column]
    unique: tuple[str, ...] = ()
    version: int | None = (
        None  # of a table for users; in the file it is ``DataFrame.attrs["schema_version"]``
    )

    def select(self, names: Sequence[str]) -> Schema:
        """Return the schema of some of the columns."""
        columns = {name: self.columns[name] for name in names}
        return Schema(columns, self.unique if set(self.unique) <= set(names) else (), self.version)

    def fault(self, table: pd.DataFrame) -> str | None:
        """Return the first fault of ``table``, None if it has none."""
        for kind, names in (
            ("no", {*self.columns} - {*table}),
            ("unknown", {*table} - {*self.columns}),
        ):
            if names:
                return f"{kind} column {', '.join(sorted(map(str, names)))}"
        for name, column in self.columns.items():
            fault = column.fault(table[name])
            if fault:
                return f"column {name}: {fault}"
        return self.repeat(table)

    def repeat(self, table: pd.DataFrame) -> str | None:
        """Return the first row whose unique columns equal those of an earlier one, None if there is
        none.
        """
        if not self.unique or not {*self.unique} <= {*table}:
            return None
        is_repeat = table.duplicated([*self.unique])
        row = table.loc[is_repeat, [*self.unique]].head(1).to_dict("records")
        return (
            f"row {is_repeat.argmax()}: duplicate of an earlier row with {row[0]}" if row else None
        )


def version_fault(found: object, expected: int | None, kind: str, writer: str = "") -> str:
    """Return the fault of an artifact whose schema has another version than the expected one.

    Args:
        found: the version that the artifact tells, of any type.
        kind: of the artifact, such as table.
        writer: the version of compclip that made it; "" if the artifact does not tell.
    """
    fault = f"version {found!r} of the schema of a {kind}, expected {expected}"
    # By its type, because True equals 1.
    if type(found) is not int or expected is None:
        return fault
    age = "a later" if found > expected else "an earlier"
    maker = f"compclip {writer}" if writer else f"{age} compclip"
    return f"made by {maker}: {fault}"


def schema(
    unique: list[str] | None = None, version: int | None = None, **columns: Column
) -> Schema:
    """Return the schema with these columns."""
    return Schema(columns, tuple(unique or ()), version)


def text(*, nullable: bool = False, isin: tuple[str, ...] | None = None) -> Column:
    """Return a column of texts."""
    return Column("str", nullable, isin)


_COUNT = Column("int64", low=0)
_FRACTION = Column("float64", low=0, high=1)
_MAYBE_COUNT = Column("Int64", nullable=True, low=0)
_MAYBE_NUMBER = Column("float64", nullable=True)
_MAYBE_SIZE = Column("float64", nullable=True, low=0)

# class_id is null where the images have no classes: each image is then its own class.
CAPTIONS = schema(
    unique=["image_id", "caption_id"],
    image_id=text(),
    caption_id=_COUNT,
    class_id=text(nullable=True),
    text=text(),
)

# path is relative to the results folder; null, with width and height, where the image is missing or
# broken.
IMAGES = schema(
    unique=["image_id"],
    image_id=text(),
    path=text(nullable=True),
    width=_MAYBE_COUNT,
    height=_MAYBE_COUNT,
    bbox_x=_MAYBE_NUMBER,
    bbox_y=_MAYBE_NUMBER,
    bbox_w=_MAYBE_SIZE,
    bbox_h=_MAYBE_SIZE,
)

# Offsets are in characters of the caption's text; end is exclusive.
# disputed: found by the parse but contradicted by the surface; held out, never ranked or swapped.
PAIRS = schema(
    image_id=text(),
    caption_id=_COUNT,
    adjective=text(),
    noun=text(),
    adjective_start=_COUNT,
    adjective_end=_COUNT,
    noun_start=_COUNT,
    noun_end=_COUNT,
    relation=text(isin=RELATIONS),
)


# A table with rows of all images, whole or in blocks of images.
Blocks = Union["pd.DataFrame", Iterator["pd.DataFrame"]]


def are_among(table: pd.DataFrame, others: pd.DataFrame, key: list[str]) -> np.ndarray:
    """Return for each row of a table, (n,), whether a row of ``others`` has the same ``key``."""
    import pandas as pd

    return pd.MultiIndex.from_frame(table[key]).isin(pd.MultiIndex.from_frame(others[key]))


def is_further(table: pd.DataFrame) -> np.ndarray:
    """Return which rows, (n,), are further draws: those that only some prompts of their split have.

    ``make_prompts`` adds them to matched prompts, which decide how well seen pairs are drawn. In
    means over all prompts they would give these prompts more weight.

    Args:
        table: image_id, caption_id and draw of all prompts of one split; of several with column
            split.
    """
    import pandas as pd

    splits = table["split"] if "split" in table else pd.Series("", index=table.index)
    last = table.groupby([splits.rename("split_of"), *CAPTION_KEY], observed=True)[
        "draw"
    ].transform("max")
    return (table["draw"] > last.groupby(splits).transform("min")).to_numpy()


def in_blocks(*tables: Any) -> Iterator[tuple[Any, ...]]:
    """Return the blocks of several tables, together: whole images, in order. A table in memory is
    one block.
    """
    return zip(*tables, strict=True) if isinstance(tables[0], Iterator) else iter([tables])


# rank counts from 1; percentile is 100 * (rank - 0.5) / pairs.
RANKING = schema(
    unique=["adjective", "noun"],
    adjective=text(),
    noun=text(),
    count=_COUNT,
    images=_COUNT,
    rank=_COUNT,
    percentile=Column("float64", low=0, high=100),
)

# Images that a division leaves unused have no row.
SPLIT = schema(unique=["image_id"], image_id=text(), split=text(isin=SPLITS))

# A division by divergence, made before pairs are held out.
DIVISION = schema(unique=["image_id"], image_id=text(), side=text(isin=SIDES))

# A caption that can be swapped. offers: JSON of the possible changes, each noun, new_adj, and the
# start, end and original_adj of each mention.
OFFERS = schema(
    unique=["image_id", "caption_id"],
    image_id=text(),
    caption_id=_COUNT,
    text=text(),
    offers=text(),
)

# changes: list of {noun, original_adj, new_adj, start, end, new_start, new_end}: start and end are
# the adjective's characters in text, new_start and new_end those of its replacement in
# swapped_text. exclusive: whether each new adjective excludes the original one, so that the image
# does not show the new pair. Here and below, a pair is written adjective_noun, as in the published
# files.
SWAPPED = schema(
    unique=["image_id", "caption_id"],
    image_id=text(),
    caption_id=_COUNT,
    text=text(),
    swapped_text=text(),
    changes=Column("object"),
    pair=text(),
    exclusive=Column("bool"),
)

# pair: what the prompt tests: test_unseen, the caption's held-out pair; test_swapped, the entry's;
# test_seen, a ranked one; null if the caption has none. file_name is unique over data sets and
# compositions: <dataset>/<composition>/<split>/<image_id>/<caption_id>[_<draw>].
PROMPTS = schema(
    unique=["image_id", "caption_id", "draw", "split"],
    image_id=text(),
    caption_id=_COUNT,
    draw=_COUNT,
    split=text(isin=TESTS),
    text=text(),
    pair=text(nullable=True),
    file_name=Column("str", unique=True),
)

# A variant of a prompt, in which another ranked adjective replaces that of its pair; changes: as in
# SWAPPED, from the original caption.
VARIANTS = schema(
    unique=["split", "image_id", "caption_id", "adjective"],
    split=text(isin=TESTS),
    image_id=text(),
    caption_id=_COUNT,
    adjective=text(),
    text=text(),
    changes=Column("object"),
)

# path is relative to the results folder, null unless the status is ok.
MANIFEST = schema(
    unique=["image_id", "caption_id", "draw", "split"],
    image_id=text(),
    caption_id=_COUNT,
    split=text(isin=TESTS),
    draw=_COUNT,
    path=text(nullable=True),
    status=text(isin=STATUSES),
)

# adjectives: number that the judge chooses from, including the prompt's own; adjective_first: the
# chance that the own one is ranked first, ties at random; null if there is no other.
# adjusted_first: the same by adjusted similarities. adjective_chosen: the one that is ranked first;
# null without an image, without another, and by the oracle.
SCORES = schema(
    unique=["image_id", "caption_id", "draw"],
    image_id=text(),
    caption_id=_COUNT,
    draw=_COUNT,
    pair=text(nullable=True),
    similarity=Column("float64", nullable=True),
    p_beaten=_FRACTION,
    p_tied=_FRACTION,
    expected_top1=_FRACTION,
    hit=Column("bool"),
    weight=_FRACTION,
    adjectives=_COUNT,
    adjective_first=Column("float64", nullable=True, low=0, high=1),
    adjusted_first=Column("float64", nullable=True, low=0, high=1),
    adjective_chosen=text(nullable=True),
)

# What a further judge chooses for each generated image; member: one of its trained models, or the
# judge itself. answered: whether there is a usable answer, else the image counts as wrong.
# adjectives, adjective_first, adjective_chosen: as of SCORES. prompt_first: the chance that it
# chooses the prompt among captions of images of other classes.
TEXT_CHOICES = schema(
    unique=["member", "generator", "split", "image_id", "caption_id", "draw"],
    member=text(),
    judge_hash=text(),
    generator=text(),
    split=text(isin=TESTS),
    image_id=text(),
    caption_id=_COUNT,
    draw=_COUNT,
    pair=text(nullable=True),
    adjectives=_COUNT,
    adjective_first=Column("float64", nullable=True, low=0, high=1),
    adjective_chosen=text(nullable=True),
    answered=Column("bool"),
    prompt_first=Column("float64", nullable=True, low=0, high=1),
)

# A judge's choices of the right text of real images, an item for each text and kind of wrong texts
# (``judge.certify``). text_only: without the image, missing without a usable answer there.
CERTIFICATE_ITEMS = schema(
    unique=["member", "item"],
    member=text(),
    item=text(),
    kind=text(),
    image=text(),
    chance=_FRACTION,
    right_first=_FRACTION,
    right_last=_FRACTION,
    accuracy=_FRACTION,
    text_only=Column("float64", nullable=True, low=0, high=1),
    unanswered=Column("bool"),
)

# A row for each measurement of train against a split. texts: all captions of its images, or only
# the prompts. train, test: samples; atoms, compounds: distinct ones of both sides; random: shuffled
# sides of the same sizes.
DIVERGENCE = schema(
    unique=["definition", "split", "texts"],
    definition=text(isin=("pairs", "subgraphs")),
    split=text(isin=TESTS),
    texts=text(isin=("captions", "prompts")),
    train=_COUNT,
    test=_COUNT,
    atoms=_COUNT,
    compounds=_COUNT,
    atom_divergence=_FRACTION,
    compound_divergence=_FRACTION,
    random_atom_mean=_FRACTION,
    random_atom_std=_FRACTION,
    random_compound_mean=_FRACTION,
    random_compound_std=_FRACTION,
    shuffles=_COUNT,
)

# scores.parquet: a row for each value of a measure (``report.measures``), of the n entries that
# have it, of so many images and pairs. same_pairs_*: 95 % interval over images alone; new_pairs_*:
# over images, pairs and judges; se_*: the standard error that each source adds. Rows without
# judge_seed are means over judges. prompts: pairs (captions with a pair) or all, as configured;
# swapped: those that were swapped; matched: those of seen pairs as frequent as the held-out ones.
# Divergences depend on neither generator nor judge, Fréchet distances on no judge. note: why there
# is no value, or a caveat.
MEASUREMENTS = schema(
    version=5,
    unique=[
        "dataset",
        "composition",
        "generator",
        "judge",
        "judge_seed",
        "split",
        "prompts",
        "distractors",
        "measure",
    ],
    dataset=text(),
    composition=text(),
    generator=text(nullable=True),
    judge=text(nullable=True),
    judge_seed=text(nullable=True),
    split=text(isin=(*TESTS, HELD_OUT)),
    prompts=text(nullable=True),
    distractors=text(nullable=True),
    measure=text(),
    value=_MAYBE_NUMBER,
    same_pairs_low=_MAYBE_NUMBER,
    same_pairs_high=_MAYBE_NUMBER,
    new_pairs_low=_MAYBE_NUMBER,
    new_pairs_high=_MAYBE_NUMBER,
    n=_MAYBE_COUNT,
    images=_MAYBE_COUNT,
    pairs=_MAYBE_COUNT,
    se_pairs=_MAYBE_NUMBER,
    se_images=_MAYBE_NUMBER,
    se_judges=_MAYBE_NUMBER,
    se_residual=_MAYBE_NUMBER,
    judges=_MAYBE_COUNT,
    judge_hash=text(nullable=True),
    candidates=_MAYBE_COUNT,
    class_rule=text(nullable=True),
    seed=_MAYBE_COUNT,
    note=text(nullable=True),
)

# Long captions for training, and growing ones for testing; image is a path in the folder of images.
# The text of a step ends with its new part, its negative with a false one instead.
EXAMPLES = schema(image=text(), text=text())
# Examples with the digest of the image's content, the ends of the text's chunks, and why they are
# unusable, or "".
CHUNKS = schema(image=text(), text=text(), digest=text(), ends=Column("object"), fault=text())
STEPS = schema(
    unique=["image", "caption_id", "step"],
    image=text(),
    caption_id=_COUNT,
    step=_COUNT,
    text=text(),
    negative=text(nullable=True),
)

# first, second: the nouns of a compound; n1, n2: the nouns that the distractors show; null where
# unknown. complete: all three images are readable.
COMPOUNDS = schema(
    unique=["compound"],
    compound=text(),
    first=text(nullable=True),
    second=text(nullable=True),
    kind=text(nullable=True, isin=NOUNS_SEEN),
    n1=text(nullable=True),
    n2=text(nullable=True),
    complete=Column("bool"),
)

# path is relative to the folder of images; null where the image is missing or broken.
COMPOUND_IMAGES = schema(
    unique=["compound", "role"],
    compound=text(),
    role=text(isin=ROLES),
    path=text(nullable=True),
)

# A row for each compound, model and prompt. right: the compound's image beats both others; a tie
# does not. rank: its place among all images; images that tie with it precede it.
CHOICES = schema(
    unique=["compound", "model", "prompt"],
    compound=text(),
    model=text(),
    prompt=text(),
    similarity_compound=Column("float64"),
    similarity_n1=Column("float64"),
    similarity_n2=Column("float64"),
    answer=text(isin=ROLES),
    right=Column("bool"),
    rank=Column("int64", low=1),
)
