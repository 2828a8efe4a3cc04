"""The columns of every Parquet artifact, checked whenever it is written or read.

Lists and structs (``changes``) are Python objects in pandas and nested types in the file.
"""

from __future__ import annotations

import pandera.pandas as pa

SPLITS = ("train", "test_seen", "test_unseen")
TESTS = ("test_seen", "test_unseen", "test_swapped")
SIDES = ("train", "test", "unused")
DEFINITIONS = ("pairs", "subgraphs")
RELATIONS = ("adjacent", "attributive", "predicative", "shared", "disputed")
# Kinds of compounds: which of its nouns its picture shows (Kumar et al. 2024, section 6).
NOUNS_SEEN = ("either", "both", "none")
# The three images of a compound: its own, and the distractors that show the first and the second noun.
ROLES = ("compound", "n1", "n2")


def _schema(unique: list[str] | None = None, **columns: pa.Column) -> pa.DataFrameSchema:
    return pa.DataFrameSchema(columns, strict=True, unique=unique)


def _text(*, nullable: bool = False, isin: tuple[str, ...] | None = None) -> pa.Column:
    return pa.Column(str, checks=pa.Check.isin(isin) if isin else None, nullable=nullable)


def _count() -> pa.Column:
    return pa.Column("int64", checks=pa.Check.ge(0))


def _share() -> pa.Column:
    return pa.Column("float64", checks=pa.Check.in_range(0, 1))


# class_id is null where the images have no classes: each image is then its own class.
CAPTIONS = _schema(
    unique=["image_id", "caption_id"],
    image_id=_text(), caption_id=_count(), class_id=_text(nullable=True), text=_text(),
)  # fmt: skip

# path is relative to the results folder; null, with width and height, where there is no readable image.
IMAGES = _schema(
    unique=["image_id"],
    image_id=_text(), path=_text(nullable=True),
    width=pa.Column("Int64", nullable=True), height=pa.Column("Int64", nullable=True),
    bbox_x=pa.Column("float64", nullable=True), bbox_y=pa.Column("float64", nullable=True),
    bbox_w=pa.Column("float64", nullable=True), bbox_h=pa.Column("float64", nullable=True),
)  # fmt: skip

# Offsets count characters of the caption's text; end is exclusive.
# disputed: found by the parse but contradicted by the surface; held out, never ranked or swapped.
PAIRS = _schema(
    image_id=_text(), caption_id=_count(), adjective=_text(), noun=_text(),
    adjective_start=_count(), adjective_end=_count(), noun_start=_count(), noun_end=_count(),
    relation=_text(isin=RELATIONS),
)  # fmt: skip

# rank counts from 1; percentile is 100 * (rank - 0.5) / pairs.
RANKING = _schema(
    unique=["adjective", "noun"],
    adjective=_text(), noun=_text(), count=_count(), images=_count(), rank=_count(),
    percentile=pa.Column("float64", checks=pa.Check.in_range(0, 100)),
)  # fmt: skip

# An image that a division leaves unused is in no split, and has no row.
SPLIT = _schema(unique=["image_id"], image_id=_text(), split=_text(isin=SPLITS))

# A division by divergence, made before pairs are held out.
DIVISION = _schema(unique=["image_id"], image_id=_text(), side=_text(isin=SIDES))

# changes: list of {noun, original_adj, new_adj, start, end, new_start, new_end}: start and end are the
# adjective's characters in text, new_start and new_end those of its replacement in swapped_text.
# A pair, here and below, is written adjective_noun, as in the published files.
SWAPPED = _schema(
    unique=["image_id", "caption_id"],
    image_id=_text(), caption_id=_count(), text=_text(), swapped_text=_text(),
    changes=pa.Column(object), pair=_text(),
)  # fmt: skip

# pair: what the prompt tests: test_unseen, the caption's held-out pair; test_swapped, the entry's; test_seen, a ranked
# one; null if the caption has none.
# file_name is unique over data sets and compositions: <dataset>/<composition>/<split>/<image_id>/<caption_id>[_<draw>].
PROMPTS = _schema(
    unique=["image_id", "caption_id", "draw", "split"],
    image_id=_text(), caption_id=_count(), draw=_count(), split=_text(isin=TESTS), text=_text(),
    pair=_text(nullable=True), file_name=pa.Column(str, unique=True),
)  # fmt: skip

# A copy of a prompt with another ranked adjective in the place of its pair's; changes: as in SWAPPED, from the original
# caption.
VARIANTS = _schema(
    unique=["split", "image_id", "caption_id", "adjective"],
    split=_text(isin=TESTS), image_id=_text(), caption_id=_count(), adjective=_text(), text=_text(),
    changes=pa.Column(object),
)  # fmt: skip

# A copy of a caption with one adjective replaced; a caption has several, or none.
NEGATIVES = _schema(image_id=_text(), caption_id=_count(), text=_text())

# path is relative to the results folder, null unless the status is ok.
MANIFEST = _schema(
    unique=["image_id", "caption_id", "draw", "split"],
    image_id=_text(), caption_id=_count(), split=_text(isin=TESTS), draw=_count(),
    path=_text(nullable=True), status=_text(isin=("ok", "missing", "unreadable")),
)  # fmt: skip

# A shard of a generator's images. embedding: (d,) of unit length, by the judge of that hash.
EMBEDDINGS = _schema(unique=["path"], path=_text(), embedding=pa.Column(object), judge_hash=_text())

# adjectives: those that the judge chooses from, the prompt's own included; adjective_first: the chance that the own one
# is ranked first, ties at random; null if there is no other.
SCORES = _schema(
    unique=["image_id", "caption_id", "draw"],
    image_id=_text(), caption_id=_count(), draw=_count(), pair=_text(nullable=True),
    similarity=pa.Column("float64"), p_beaten=_share(), p_tied=_share(), expected_top1=_share(),
    hit=pa.Column(bool), weight=_share(), adjectives=_count(),
    adjective_first=pa.Column("float64", checks=pa.Check.in_range(0, 1), nullable=True),
)  # fmt: skip

# A row for each measurement of train against a split. texts: all captions of its images, or only the prompts.
# train, test: samples; atoms, compounds: distinct ones of both sides; random: shuffled sides of the same sizes.
DIVERGENCE = _schema(
    unique=["definition", "split", "texts"],
    definition=_text(isin=DEFINITIONS), split=_text(isin=TESTS), texts=_text(isin=("captions", "prompts")),
    train=_count(), test=_count(), atoms=_count(), compounds=_count(),
    atom_divergence=_share(), compound_divergence=_share(),
    random_atom_mean=_share(), random_atom_std=_share(),
    random_compound_mean=_share(), random_compound_std=_share(), shuffles=_count(),
)  # fmt: skip

# Long captions for training, and growing ones for testing; image is a path in the folder of images. The text of a step
# ends with its new part, and its negative ends with something wrong instead.
EXAMPLES = _schema(image=_text(), text=_text())
STEPS = _schema(
    unique=["image", "caption_id", "step"],
    image=_text(), caption_id=_count(), step=_count(), text=_text(), negative=_text(nullable=True),
)  # fmt: skip

# first, second: the nouns of a compound; n1, n2: the nouns that the distractors show; null where unknown.
# complete: all three images are readable.
COMPOUNDS = _schema(
    unique=["compound"],
    compound=_text(), first=_text(nullable=True), second=_text(nullable=True),
    kind=_text(nullable=True, isin=NOUNS_SEEN), n1=_text(nullable=True), n2=_text(nullable=True),
    complete=pa.Column(bool),
)  # fmt: skip

# path is relative to the folder of images; null where the image is missing or unreadable.
COMPOUND_IMAGES = _schema(
    unique=["compound", "role"],
    compound=_text(), role=_text(isin=ROLES), path=_text(nullable=True),
)  # fmt: skip

# A row for each compound, model and prompt. right: the compound's image beats both others; a tie does not.
CHOICES = _schema(
    unique=["compound", "model", "prompt"],
    compound=_text(), model=_text(), prompt=_text(),
    similarity_compound=pa.Column("float64"), similarity_n1=pa.Column("float64"), similarity_n2=pa.Column("float64"),
    answer=_text(isin=ROLES), right=pa.Column(bool),
)  # fmt: skip

# The same with all images as candidates. images: their number; above: those with a greater similarity; tied: others
# with the same similarity.
RETRIEVAL = _schema(
    unique=["compound", "model", "prompt"],
    compound=_text(), model=_text(), prompt=_text(), images=_count(), above=_count(), tied=_count(),
)  # fmt: skip
