"""The bias check of a composition's judges, and its consequences for the scores."""

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
class BiasCheck:
    """The content of each judge's bias.json, by the judge's name, and the allowed loss of
    accuracy, ``score.max_bias``.

    Verdicts on generators are about these held-out pairs, and so is the bias check: its
    intervals are over images alone. An interval for new pairs could not show that a judge without
    any error is fit: if all of 16 pairs are recognized, up to 17 % of all pairs may still not be.
    """

    judges: Mapping[str, Mapping[str, Any]]
    max_bias: float

    def _means(self, name: str) -> dict[str, dict[str, float]]:
        """Return ``difference`` or ``held_out`` by kind of images, averaged over the judges that
        have it, lowest first.

        The averaged ends of intervals are never narrower than the interval of the mean.
        """
        rows = []
        for content in self.judges.values():
            for kind, accuracies in content["images"].items():
                # None if one side has no entries.
                values = accuracies[name] or {}
                rows.append({"kind": kind, **values})
        columns = ["value", "same_pairs_low", "same_pairs_high", "chance"]
        table = pd.DataFrame(rows, columns=["kind", *columns])
        # A single image has a value, but no interval.
        table = table.dropna(subset="same_pairs_low")
        means = table.groupby("kind")[columns].mean()
        return means.sort_values("same_pairs_low").to_dict("index")

    @property
    def failures(self) -> list[str]:
        """Return the reasons why the judges fail: a possible loss above the allowed one, or
        choices by chance.
        """
        reasons = []
        for kind, difference in self._means("difference").items():
            if difference["same_pairs_low"] < -self.max_bias:
                points = f"{100 * self.max_bias:g} points (score.max_bias)"
                reasons.append(f"they may lose more than {points} on {IMAGE_KINDS[kind]}")
        for kind, held_out in self._means("held_out").items():
            if held_out["same_pairs_low"] <= held_out["chance"]:
                reasons.append(
                    f"they may choose adjectives of held-out pairs by chance on {IMAGE_KINDS[kind]}"
                )
        return reasons

    @property
    def passes(self) -> bool | None:
        """Return whether the judges pass the bias check, so that verdicts are given; None if
        unknown.
        """
        if self.failures:
            return False
        # Without a difference, no loss could be found.
        return True if self._means("difference") else None

    @property
    def note(self) -> str:
        """Return a note on the bias check for readers of the scores."""
        means = self._means("difference")
        if means:
            # The kind of images with the largest possible loss comes first.
            kind, worst = next(iter(means.items()))
            ends = interval(worst["same_pairs_low"], worst["same_pairs_high"])
            images = IMAGE_KINDS[kind]
            if len(self.judges) > 1:
                images += f", mean over {len(self.judges)} judges"
            text = (
                "Bias check: on images that show what they should, adjective accuracy of held-out "
                "pairs minus that of"
                f" seen pairs of the same frequency is {percent(worst['value'])} {ends} points at "
                f"worst ({images})."
            )
        else:
            text = (
                "Bias check: held-out pairs are not compared with seen pairs of the same "
                "frequency, because too few"
                " images of one side have captions with another ranked adjective of the noun."
            )
        reasons = self.failures
        if reasons:
            text += f" The judges fail: {'; '.join(reasons)}. No verdict is given."
        return text

    @property
    def unrecognized(self) -> dict[str, float]:
        """Return the held-out pairs that the judges do not recognize on real images, with their
        accuracy, lowest first.

        Averaged over the judges, another adjective is chosen for at least half of the images, or
        the interval of the accuracy includes chance. ``stats.composed`` decides anew, on images of
        the reference, which pairs count in what is composed.
        """
        rows = []
        for content in self.judges.values():
            for pair, accuracy in content["pairs"].items():
                row = {"pair": pair} | dict(accuracy)
                rows.append(row)
        columns = ["accuracy", "same_pairs_low", "chance"]
        # A pair without images has no accuracy.
        table = pd.DataFrame(rows, columns=["pair", *columns]).dropna(subset="accuracy")
        means = table.groupby("pair")[columns].mean()
        means = means.sort_values("accuracy", kind="stable")
        is_wrong = means["accuracy"] <= LEAST_RECOGNIZED
        by_chance = means["same_pairs_low"] <= means["chance"]
        accuracies = means.loc[is_wrong | by_chance, "accuracy"]
        return {str(pair): float(accuracy) for pair, accuracy in accuracies.items()}

    @property
    def unrecognized_note(self) -> str:
        """Return the unrecognized pairs as text, "" if there are none."""
        pairs = [
            f"{pair_words(pair)} ({percent(accuracy, 0)} %)"
            for pair, accuracy in self.unrecognized.items()
        ]
        if not pairs:
            return ""
        names = ", ".join(pairs)
        return f"Held-out pairs that the judges do not recognize on real images: {names}."
