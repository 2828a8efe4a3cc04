"""The measures of ``scores.parquet``: names, units and definitions."""

from dataclasses import dataclass

from compclip.plot.labels import number, percent


@dataclass(frozen=True)
class Measure:
    """A measure of ``scores.parquet``."""

    name: str  # in all files
    definition: str
    unit: str = "%"  # %: a fraction in the file, shown in percent; empty: a number without a unit
    digits: int = 1  # number of digits in tables
    column: str = ""  # of ``tables.SCORES``, whose mean it is
    chance_measure: str = ""  # what a judge reaches without seeing the image
    title: str = ""  # for readers

    def text(self, value: float) -> str:
        return percent(value, self.digits) if self.unit == "%" else number(value, self.digits)


_RANKED_FIRST = "How often the judge ranks the caption first among the candidates, exact."
_ADJECTIVE = (
    "How often the judge ranks the prompt above its variants with other ranked adjectives, "
    "false of the image."
)
_CEILING = (
    "The expected adjective accuracy of a random choice among the prompt and the variants that "
    "captions of the image"
    " state, if these were kept: the mean of 1 / (1 + stated copies)."
)
_ADJUSTED = (
    "Adjective accuracy by similarity minus a multiple of the text's mean similarity with real "
    "images, chosen on seen"
    " pairs of real images."
)
_SEEN = (
    "The estimated fraction of seen prompts whose pair the generator draws, between the usual "
    "pair (0) and the"
    " reference (100), over recognized pairs as frequent as the held-out ones."
)
_HELD_OUT = "The same for held-out prompts: draws seen pairs × composes."
_COMPOSES = (
    "The estimated fraction of held-out prompts whose pair the generator draws, relative to that "
    "of seen prompts, both"
    " in its own style, over recognized pairs."
)
_CHANCE = "adjective_accuracy_chance"
_LIST = (
    Measure(
        "r_precision",
        _RANKED_FIRST,
        column="expected_top1",
        chance_measure="blind_control",
        title="R-precision",
    ),
    Measure("r_precision_chance", "One divided by the number of candidates."),
    Measure("blind_control", "R-precision with every image replaced by the mean image embedding."),
    Measure(
        "r_precision_balanced",
        "R-precision on swapped captions, with the most frequent pairs weighted down.",
    ),
    Measure(
        "r_precision_sampled",
        "R-precision with one draw of distractors for each image: mean over chunks.",
    ),
    Measure("r_precision_sampled_sd", "The standard deviation of r_precision_sampled over chunks."),
    Measure(
        "hubness",
        "The fraction of wrong first ranks that the most frequent 1 % of the captions take.",
    ),
    Measure(
        "adjective_accuracy",
        _ADJECTIVE,
        column="adjective_first",
        chance_measure=_CHANCE,
        title="adjective accuracy",
    ),
    Measure(_CHANCE, "The mean of 1 / k over prompts with k adjectives to choose from."),
    Measure(
        "adjective_accuracy_adjusted",
        _ADJUSTED,
        column="adjusted_first",
        title="adjusted adjective accuracy",
    ),
    Measure("adjective_accuracy_corrected", "(adjective accuracy − chance) / (1 − chance)."),
    Measure("adjective_accuracy_ceiling", _CEILING),
    Measure("draws_seen_pairs", _SEEN, digits=0, title="draws seen pairs"),
    Measure("draws_held_out_pairs", _HELD_OUT, digits=0, title="draws held-out pairs"),
    Measure("composes", _COMPOSES, digits=0, title="composes"),
    Measure(
        "composes_together",
        "The same as composes with simultaneous intervals over all models.",
        digits=0,
    ),
    Measure(
        "fid",
        "The Fréchet distance of the images from the real images of the split.",
        unit="",
        digits=2,
    ),
    Measure(
        "fid_balanced",
        "The same, with fewer images of the most frequent swapped pairs.",
        unit="",
        digits=2,
    ),
    Measure(
        "atom_divergence",
        "The divergence of train from the prompts in adjectives and nouns.",
        unit="",
        digits=3,
    ),
    Measure(
        "compound_divergence",
        "The divergence of train from the prompts in pairs.",
        unit="",
        digits=3,
    ),
    Measure(
        "subgraph_divergence",
        "The divergence of train from the prompts in connected parts of the parse.",
        unit="",
        digits=3,
    ),
)
MEASURES = {measure.name: measure for measure in _LIST}
# The two scores that are compared, by name.
COMPARED = {name: MEASURES[name] for name in ("r_precision", "adjective_accuracy")}
