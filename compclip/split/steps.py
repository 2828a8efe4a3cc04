"""Fields that the declarations of later stages share."""

from typing import Annotated

from pydantic import Field

from compclip.core.step import Input, Step

Captions = Annotated[Input, Field(description="captions.parquet")]
Images = Annotated[Input, Field(description="images.parquet")]
Pairs = Annotated[Input, Field(description="pairs.parquet")]
Ranking = Annotated[Input, Field(description="ranking.parquet")]
Heldout = Annotated[Input, Field(description="heldout.json")]
Splits = Annotated[Input, Field(description="splits.parquet")]
Swapped = Annotated[Input, Field(description="swapped.parquet")]
Adjectives = Annotated[Input, Field(description="the composition's lexicon (YAML)")]


class CompositionStep(Step):
    """The base of steps whose seeds or messages depend on data set and composition."""

    dataset: str = Field(description="name of the data set")
    composition: str = Field(description="name of the composition")

    @property
    def where(self) -> str:
        return f"{self.dataset}/{self.composition}"
