"""The config's ``split``."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, PositiveInt, field_validator, model_validator

from workflow_scripts.core.section import Section


class Heldout(Section):
    """Which pairs are held out."""

    fraction: float = Field(0.1, gt=0, lt=1, description="of the unique ranked pairs; half rounds up")
    window: tuple[float, float] = Field((25, 75), description="percentiles of the ranking to draw between")
    pairs: list[str] | dict[str, list[str]] | None = Field(
        None, description="adjective_noun strings (for several compositions, a list for each): overrides the draw"
    )

    @model_validator(mode="after")
    def _checked(self) -> Heldout:
        low, high = self.window
        if not 0 <= low < high <= 100:
            raise ValueError("window must be two percentiles, the lower first, within 0 and 100")
        lists = self.pairs.values() if isinstance(self.pairs, dict) else [self.pairs]
        if any(listed == [] for listed in lists):
            raise ValueError("an empty list of pairs: leave it out to draw them")
        return self


class Published(Section):
    """A split that others have published, taken instead of drawn; {composition} in a path stands for its name."""

    split: str = Field(min_length=1, description="split.pkl: the held-out pairs, and the images of each split")
    data: str | None = Field(None, min_length=1, description="data.pkl: its swapped captions; null: they are made here")
    violations: Literal["refuse", "count"] = Field(
        "refuse", description="count: go on with a split that the audit finds fault with; audit.json has the faults"
    )


class Divergence(Section):
    """A division of the images by divergence (Keysers et al. 2020), from which the held-out pairs follow."""

    atom: float = Field(
        0.02, ge=0, le=1, description="atom divergence of the division to come near to; with compound max, at most"
    )
    compound: Literal["max"] | float = Field("max", description="compound divergence to come near to; max: the largest")
    train: float = Field(0.6, gt=0, lt=1, description="share of the images; what neither side takes is not used")
    test: float = Field(
        0.2,
        gt=0,
        lt=1,
        description="share of the images: test_unseen, and test_seen as far as it is not filled from train",
    )
    restarts: int = Field(3, ge=1, description="divisions from different first images, of which the best is taken")

    @field_validator("compound", mode="before")
    @classmethod
    def _max_or_share(cls, value: object) -> object:
        if value != "max" and not (isinstance(value, int | float) and 0 <= value <= 1):
            raise ValueError("must be max, or a number from 0 to 1")
        return value

    @model_validator(mode="after")
    def _checked(self) -> Divergence:
        if self.train + self.test > 1 + 1e-9:
            raise ValueError(
                f"train and test are shares of the images: together at most 1, not {self.train + self.test:g}"
            )
        return self


class SplitConfig(Section):
    """Which pairs are held out, who trains, who tests, what is swapped, what must be drawn."""

    method: Literal["pairs", "divergence"] = Field(
        "pairs", description="pairs: hold out pairs, then divide the images; divergence: the other way round"
    )
    divergence: Divergence = Field(default_factory=Divergence, description="of method divergence")
    heldout: Heldout = Field(default_factory=Heldout)
    published: Published | None = Field(None, description="null: drawn by what stands here")
    test_seen: Literal["auto"] | PositiveInt = Field(
        "auto", description="images; auto: as many as test_unseen, at most 12 % of the images used"
    )
    prompts: Literal["pairs", "all"] = Field("pairs", description="captions with a pair to judge; all as published")
    draws: int = Field(1, ge=1, description="images to be made for each prompt")
    per_image: int | None = Field(None, ge=1, description="at most this many prompts an image and split, drawn by seed")

    @model_validator(mode="after")
    def _one_choice(self) -> SplitConfig:
        if self.published and self.heldout.pairs:
            raise ValueError("published brings its own held-out pairs: leave out heldout.pairs, or published")
        if self.method == "divergence":
            for name, other in (("published", self.published), ("heldout.pairs", self.heldout.pairs)):
                if other:
                    raise ValueError(f"method divergence finds the held-out pairs: leave out {name}, or the method")
        return self
