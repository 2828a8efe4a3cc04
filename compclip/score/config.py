"""The config's ``score``."""

from typing import Annotated, Literal

from pydantic import Field

from compclip.core.settings.section import Count, Section

# The weights of TensorFlow's network of 2015-12-05, by which FID was first computed, as published
# by torch-fidelity.
INCEPTION = "https://github.com/toshas/torch-fidelity/releases/download/v0.2.0/weights-inception-2015-12-05-6726825d.pth"
DominantPairs = Annotated[int, Field(ge=1, le=2)]


class Balance(Section):
    """How dominant swapped pairs are balanced."""

    dominant: DominantPairs | dict[str, DominantPairs] = Field(
        1,
        description="number of dominant pairs; published: 2 for C-CUB color",
    )
    ratio: float = Field(
        1.25,
        ge=1,
        le=1e6,
        description="cap of dominant pairs, as a multiple of the next most frequent",
    )

    def dominant_of(self, composition: str) -> int:
        """Return the number of dominant pairs of a composition."""
        if isinstance(self.dominant, dict):
            return self.dominant.get(composition, 1)
        return self.dominant


class Scoring(Section):
    """How the entries of a split are scored."""

    candidates: Count | None = Field(
        None,
        ge=2,
        description="an image's own caption and the distractors; null: 100, or as many as the "
        "smallest split allows",
    )
    ties: Literal["random", "own_first"] = Field(
        "random", description="which of tied captions is first; published: own_first"
    )
    distractors: list[Literal["original", "swapped", "published"]] = Field(
        ["original", "swapped"],
        min_length=1,
        description="distractors of swapped captions; published: the originals of swapped captions",
    )
    chunking: Literal["even", "published"] = Field(
        "even",
        description="published: equal chunks of the sampled score, without the remainder",
    )
    chunks: Count = Field(10, ge=1, description="number of chunks of the sampled score")
    balance: Balance = Field(default_factory=Balance)


class Fid(Section):
    """The Fréchet inception distance from the real images of each split; the defaults are as
    published.
    """

    weights: str = Field(
        INCEPTION, min_length=1, description="URL or path of the Inception network's weights"
    )


class ScoreConfig(Scoring):
    """How generators are scored."""

    reference: str | None = Field(
        None,
        description="generator that shows what is asked; null: faithful for drawn birds, otherwise "
        "photographs",
    )
    batch: Count = Field(
        256, ge=1, description="items encoded at once; changes floating-point rounding"
    )
    max_bias: float = Field(
        0.15,
        ge=0,
        le=1,
        description="largest loss of adjective accuracy on held-out pairs with which judges give a "
        "verdict (docs/bias.md)",
    )
    fid: Fid | None = Field(
        None, description="null: no Fréchet inception distance; {}: as published"
    )
