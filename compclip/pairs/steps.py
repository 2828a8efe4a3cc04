"""The steps of stage pairs: their inputs, outputs and settings."""

from typing import Annotated

from pydantic import Field

from compclip.core.step import Cache, Input, Key, Output, Step
from compclip.pairs.config import Parsing, Selection
from compclip.text.lexicon import COMPOUNDS


class Extraction(Step):
    """What a step needs that finds the pairs of captions."""

    captions: Input = Field(description="captions.parquet")
    adjectives: list[Input] = Field(min_length=1, description="adjective lexicons (YAML)")
    nouns: Input | None = Field(None, description="noun lexicon (YAML); without it any noun counts")
    compounds: Input = Field(COMPOUNDS, description="lexicon of compound nouns (YAML)")
    parsing: Annotated[Parsing, Key("pairs")]
    processes: int = Field(2, ge=1, description="processes that parse at once; the result is the same")
    cache: Cache


class ExtractShard(Extraction):
    """Find the pairs of one shard of the captions, so that several jobs share the work; extract_pairs joins the shards.

    A shard has consecutive captions. Pairs do not depend on the number of shards.
    """

    shard: int = Field(ge=1, description="number of this shard, from 1")
    shards: int = Field(ge=1, description="number of shards")
    found: Output = Field(description="the shard's pairs (Parquet)")


class ExtractPairs(Extraction):
    """Find the adjective-noun pairs of all captions.

    Each distinct caption is parsed once. A killed run resumes from the cache. With --extracted, no caption is parsed.
    """

    extracted: list[Input] = Field([], description="all shards of extract_shard, in order; none: parse here")
    pairs: Output = Field(description="pairs.parquet")
    summary: Output = Field(description="pairs.json: what was and was not found")


class RankPairs(Step):
    """Select a composition's adjectives and nouns, and rank their pairs by frequency."""

    pairs: Input = Field(description="pairs.parquet")
    adjectives: Input = Field(description="the composition's lexicon (YAML)")
    nouns: Input | None = Field(None, description="noun lexicon (YAML); without it any noun is ranked")
    selection: Annotated[Selection, Key("pairs.selection")] = Selection()
    ranking: Output = Field(description="ranking.parquet")
