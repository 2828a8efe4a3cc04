"""The steps of stage divergence: their inputs, outputs and settings."""

from typing import Annotated

from pydantic import Field

from compclip.core.step import Cache, Input, Key, Output, Seed, Step
from compclip.divergence.config import DivergenceConfig
from compclip.pairs.config import Parsing
from compclip.plot.steps import OfResults
from compclip.text.lexicon import COMPOUNDS


class MeasureSplits(Step):
    """Measure how far each test split is from train: atom and compound divergence (DBCA; Keysers et al. 2020).

    A sample is an image with its captions (in test_swapped, its swapped captions). There are two definitions of atoms
    and compounds: ``pairs`` and, finer, ``subgraphs`` of the dependency parse. Texts ``captions`` are all captions of a
    split's images, ``prompts`` only those prompted for; of train always all captions. Random divisions of the same
    images at the same sizes are measured too; in them, test images have as many of their own captions as in the split,
    since fewer words alone increase a divergence.
    """

    captions: Input = Field(description="captions.parquet")
    pairs: Input = Field(description="pairs.parquet")
    ranking: Input = Field(description="ranking.parquet")
    splits: Input = Field(description="splits.parquet")
    swapped: Input = Field(description="swapped.parquet")
    prompts: Input = Field(description="prompts.parquet")
    adjectives: list[Input] = Field([], description="adjective lexicons (YAML), for subgraphs")
    nouns: Input | None = Field(None, description="noun lexicon (YAML), for subgraphs; without it any noun counts")
    compounds: Input = Field(COMPOUNDS, description="lexicon of compound nouns (YAML)")
    dataset: str = Field(description="name of the data set")
    composition: str = Field(description="name of the composition")
    settings: Annotated[DivergenceConfig, Key("divergence")] = DivergenceConfig()
    parsing: Annotated[Parsing, Key("pairs")] = Parsing()
    processes: int = Field(1, ge=1, description="processes that parse at once; the result is the same")
    cache: Cache
    seed: Seed
    divergence: Output = Field(description="divergence.parquet")
    summary: Output = Field(description="divergence.json: distributions and warnings")


class DrawDivergence(OfResults):
    """Draw how far the test splits of one data set and composition are from train.

    The figures show adjectives and nouns, and their pairs, of train and test side by side, as in figure 6 of Keysers et
    al. 2020, and, if the images were divided by divergence, both divergences while the division grew.
    """

    divergence: Input = Field(description="divergence.parquet")
    summary: Input = Field(description="divergence.json")
    division: Input | None = Field(None, description="division.json, if the images were divided by divergence")
    composition: str = Field(description="name of the composition")
    seed: Seed
