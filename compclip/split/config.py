"""The config's ``split``."""

import re
from typing import Annotated, Any, Literal, Self

from pydantic import (
    Field,
    ValidationError,
    ValidatorFunctionWrapHandler,
    field_validator,
    model_validator,
)

from compclip.core.settings.section import COMPOSITION_FIELD, Count, Section

PromptRule = Annotated[
    Literal["pairs", "all"],
    Field("pairs", description="captions with a pair, or, as published, all"),
]
SwapRule = Literal["distinct", "published"]
TrainOn = Annotated[
    Literal["train", "half", "all"],
    Field(
        "train",
        description="training images; half: train and the test images that are not judged",
    ),
]


class DrawConfig(Section):
    """How the held-out pairs are drawn; ``choose_draw`` sets what is null."""

    fraction: float | None = Field(
        None, gt=0, lt=1, description="fraction of the ranked pairs; half rounds up"
    )
    min_pairs: Count = Field(0, ge=0, description="minimum number of held-out pairs")
    window: tuple[float, float] | None = Field(
        None, description="percentiles of the ranking to draw between"
    )
    prefer_swappable: bool | None = Field(
        None,
        description="prefer pairs that a swap can often make, but not so often that they would "
        "dominate; false as published",
    )

    @model_validator(mode="after")
    def _check_window(self) -> Self:
        low, high = self.window or (0, 100)
        if not 0 <= low < high <= 100:
            raise ValueError("window must be two percentiles between 0 and 100, the lower first")
        return self


class Draw(DrawConfig):
    """How the held-out pairs are drawn; by default as in the paper."""

    fraction: float = Field(0.1, gt=0, lt=1)
    window: tuple[float, float] = (25.0, 75.0)
    prefer_swappable: bool = False


class Heldout(DrawConfig):
    """Which pairs are held out. A fraction, window or preference that is null is chosen by the
    captions.

    Fraction 0.1, window [25, 75] and no preference are as published.
    """

    width: float = Field(
        15,
        gt=0,
        lt=100,
        description="half the 95 % interval that the choice should reach, in points",
    )
    pairs: list[str] | dict[str, list[str]] | None = Field(
        None,
        description="adjective_noun strings, ranked or not, instead of a draw; for several "
        "compositions, a list for each",
    )

    @field_validator("pairs", mode="before")
    @classmethod
    def _check_names(cls, pairs: Any) -> Any:
        if pairs is None:
            return None
        # By composition, or one list for the only composition.
        lists = pairs.values() if isinstance(pairs, dict) else [pairs]
        for names in lists:
            is_list = isinstance(names, list) and len(names) > 0
            if not is_list or not all(map(_is_pair, names)):
                raise ValueError("write pairs as a list of adjective_noun, such as [purple_bill]")
        return pairs

    def listed(self, composition: str) -> list[str]:
        """Return the pairs listed for a composition, [] if they are drawn."""
        listed = self.pairs
        if isinstance(listed, dict):
            listed = listed.get(composition)
        return listed or []


def _is_pair(name: Any) -> bool:
    return isinstance(name, str) and bool(re.fullmatch("[^_]+_.+", name))


class Published(Section):
    """A published split, used instead of a drawn one; {composition} in a path is replaced."""

    split: str = Field(
        min_length=1, description="split.pkl: the held-out pairs, and the images of each split"
    )
    data: str | None = Field(
        None, min_length=1, description="data.pkl: its swapped captions; null: they are made here"
    )

    def file(self, kind: Literal["split", "data"], composition: str) -> str | None:
        """Return the path of split.pkl or data.pkl for a composition; None if swapped captions are
        made here.
        """
        path = self.split if kind == "split" else self.data
        if path is None:
            return None
        return path.replace(COMPOSITION_FIELD, composition)


class Divergence(Section):
    """A division of the images by divergence (Keysers et al. 2020), from which the held-out pairs
    follow.
    """

    atom: float = Field(
        0.02, ge=0, le=1, description="target atom divergence; with compound max, an upper bound"
    )
    compound: Literal["max"] | Annotated[float, Field(ge=0, le=1)] = Field(
        "max", description="target compound divergence; max: the largest"
    )
    train: float = Field(0.6, gt=0, lt=1, description="fraction of the images")
    test: float = Field(
        0.2,
        gt=0,
        lt=1,
        description="fraction of the images: test_unseen and, if possible, test_seen",
    )

    @field_validator("compound", mode="wrap")
    @classmethod
    def _check_compound(cls, value: object, check: ValidatorFunctionWrapHandler) -> object:
        try:
            return check(value)
        except ValidationError:
            raise ValueError("expected max or a number from 0 to 1") from None

    @model_validator(mode="after")
    def _check_fractions(self) -> Self:
        total = self.train + self.test
        if total > 1 + 1e-9:  # more than by rounding
            raise ValueError(f"fractions train and test must sum to at most 1, not {total:g}")
        return self


class SplitConfig(Section):
    """Which pairs are held out, which images train, which test, what is swapped, what must be
    drawn.
    """

    method: Literal["pairs", "divergence"] = Field(
        "pairs",
        description="pairs: hold out pairs, then divide the images; divergence: divide first",
    )
    divergence: Divergence = Field(default_factory=Divergence, description="of method divergence")
    heldout: Heldout = Field(default_factory=Heldout)
    published: Published | None = Field(None, description="null: drawn as configured here")
    on_violation: Literal["error", "warn"] = Field(
        "error",
        description="warn: continue despite audit violations, which are listed in audit.json",
    )
    test_seen: Literal["auto"] | Annotated[Count, Field(gt=0)] = Field(
        "auto", description="images; auto: as many as test_unseen, at most 12 % of the images used"
    )
    swaps: SwapRule = Field(
        "distinct",
        description="distinct: one adjective changes, to one that no other noun of the caption "
        "has; published: several may change",
    )
    prompts: PromptRule
    draws: Count = Field(
        1,
        ge=1,
        description="images for each prompt; for matched seen ones, up to three times as many",
    )
    per_image: Count | None = Field(
        None,
        ge=1,
        description="most prompts per image and split; in seen, also of matched pairs",
    )

    @property
    def is_chosen(self) -> bool:
        """Whether held-out pairs are drawn with settings that ``choose_draw`` chooses."""
        is_drawn = self.method == "pairs" and not self.published and not self.heldout.pairs
        return is_drawn and None in (
            self.heldout.fraction,
            self.heldout.window,
            self.heldout.prefer_swappable,
        )

    @model_validator(mode="after")
    def _check_sources(self) -> Self:
        if self.published and self.heldout.pairs:
            raise ValueError(
                "published defines the held-out pairs; remove heldout.pairs or published"
            )
        if self.method == "divergence" and (self.published or self.heldout.pairs):
            other = "published" if self.published else "heldout.pairs"
            raise ValueError(
                f"method divergence determines the held-out pairs; remove {other} or the method"
            )
        return self
