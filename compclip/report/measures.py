"""The scores that are compared: their columns, their names, and what each means."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Measure:
    """A score in percent, with one digit."""

    name: str  # its column of ``table.csv``, and what the columns of its intervals and errors begin with
    entries: str  # the column of ``tables.SCORES`` that it is the mean of
    blind: str  # what a summary calls the score of text alone
    title: str  # its name for readers
    short: str  # on the screen
    note: str  # what it is; ``{chance}`` and ``{blind}`` are replaced by texts in percent


MEASURES = {
    measure.name: measure
    for measure in (
        Measure(
            "exact", "expected_top1", "blind_control", "R-precision", "R-precision",
            "How often the judge ranks the caption first among the candidates, exact. Chance is {chance} %; with every"
            " image replaced by the mean image (the blind control) the judge reaches {blind} %.",
        ),
        Measure(
            "adjective", "adjective_first", "adjective_chance", "adjective accuracy", "adj. accuracy",
            "How often the judge ranks the prompt above its copies with every other ranked adjective of the noun. It"
            " tests the pair itself, where R-precision also counts all else that an image shows. Chance is {blind} %.",
        ),
    )
}  # fmt: skip
# What else ``score_images`` measures: the score of text alone, and what hubs take.
BY_OTHERS = ("blind_control", "hubness")
