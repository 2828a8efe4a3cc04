"""The health of a composition's judges, and its consequences for the scores."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from compclip.plot.labels import interval, pair_words, percent

IMAGE_KINDS = {"real": "real images", "drawn": "images drawn as asked"}
# A pair is recognized if the judges choose its adjective for more than this fraction of the images
# that show it.
LEAST_RECOGNIZED = 0.5


@dataclass(frozen=True)
class Health:
    """The content of each judge's health.json, by the judge's name, and the allowed loss,
    ``score.health``.

    Verdicts on generators are about these held-out pairs, and so is the judges' health: its
    intervals are over images alone. An interval for new pairs could not show that a judge without
    any error is fit: if all of 16 pairs are recognized, up to 17 % of all pairs may still not be.
    """

    judges: Mapping[str, Mapping[str, Any]]
    loss: float

    def _means(self, name: str) -> dict[str, dict[str, float]]:
        """Return ``difference`` or ``held_out`` by kind of images, averaged over the judges that
        have it.

        The averaged ends of intervals are never narrower than the interval of the mean.
        """
        rows = [
            {"kind": kind} | dict(of[name] or {})
            for content in self.judges.values()
            for kind, of in content["images"].items()
        ]
        columns = ["value", "same_pairs_low", "same_pairs_high", "chance"]
        known = pd.DataFrame(rows, columns=["kind", *columns]).dropna(subset="same_pairs_low")
        return known.groupby("kind")[columns].mean().sort_values("same_pairs_low").to_dict("index")

    @property
    def unfit(self) -> list[str]:
        """Return the reasons why the judges are unfit: a possible loss above the allowed one, or
        choices by chance.
        """
        lose, guess = (self._means(name).items() for name in ("difference", "held_out"))
        reasons = [
            f"they may lose more than {100 * self.loss:g} points (score.health) on "
            f"{IMAGE_KINDS[kind]}"
            for kind, of in lose
            if of["same_pairs_low"] < -self.loss
        ]
        by_chance = "they may choose adjectives of held-out pairs by chance on"
        return reasons + [
            f"{by_chance} {IMAGE_KINDS[kind]}"
            for kind, of in guess
            if of["same_pairs_low"] <= of["chance"]
        ]

    @property
    def is_fit(self) -> bool | None:
        """Return whether the judges pass the bias check, so that verdicts are given; None if
        unknown.
        """
        return False if self.unfit else True if self._means("difference") else None

    @property
    def line(self) -> str:
        """Return a note on health for readers of the scores."""
        if means := self._means("difference"):
            kind, of = next(iter(means.items()))
            points = (
                f"{percent(of['value'])} "
                f"{interval(of['same_pairs_low'], of['same_pairs_high'])} points"
            )
            judges = f", mean over {len(self.judges)} judges" if len(self.judges) > 1 else ""
            text = (
                "Bias check: on images that show what they should, adjective accuracy of held-out "
                "pairs minus that of"
                f" seen pairs of the same frequency is {points} at worst "
                f"({IMAGE_KINDS[kind]}{judges})."
            )
        else:
            text = (
                "Bias check: held-out pairs are not compared with seen pairs of the same "
                "frequency, because too few"
                " images of one side have captions with another ranked adjective of the noun."
            )
        return (
            f"{text} The judges fail: {'; '.join(self.unfit)}. No verdict is given."
            if self.unfit
            else text
        )

    @property
    def unrecognized(self) -> dict[str, float]:
        """Return the held-out pairs that the judges do not recognize on real images, with their
        accuracy, lowest first.

        Averaged over the judges, another adjective is chosen for at least half of the images, or
        the interval of the accuracy includes chance.
        """
        pairs = [
            {"pair": pair, **of}
            for content in self.judges.values()
            for pair, of in content["pairs"].items()
        ]
        columns = ["accuracy", "same_pairs_low", "chance"]
        known = pd.DataFrame(pairs, columns=["pair", *columns]).dropna(subset="accuracy")
        means = known.groupby("pair")[columns].mean().sort_values("accuracy", kind="stable")
        unrecognized = means[
            (means["accuracy"] <= LEAST_RECOGNIZED) | (means["same_pairs_low"] <= means["chance"])
        ]
        return {str(pair): float(accuracy) for pair, accuracy in unrecognized["accuracy"].items()}

    @property
    def unrecognized_line(self) -> str:
        """Return the unrecognized pairs as text, "" if there are none."""
        pairs = ", ".join(
            f"{pair_words(pair)} ({percent(of, 0)} %)" for pair, of in self.unrecognized.items()
        )
        return (
            f"Held-out pairs that the judges do not recognize on real images: {pairs}."
            if pairs
            else ""
        )
