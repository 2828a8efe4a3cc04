"""The measures of ``scores.parquet``: their names, units, and what each means."""

from dataclasses import dataclass

from compclip.plot.labels import number, percent


@dataclass(frozen=True)
class Measure:
    """What a value says."""

    name: str  # in all files
    title: str  # for readers
    definition: str
    unit: str = "%"  # %: a fraction in the file, shown in percent; empty: a number without a unit
    digits: int = 1  # that are shown
    entries: str = ""  # the column of ``tables.SCORES`` that it is the mean of
    blind: str = ""  # the measure of text alone, by which it is normalized
    short: str = ""  # on the screen

    def text(self, value: float) -> str:
        return percent(value, self.digits) if self.unit == "%" else number(value, self.digits)


_LIST = (
    Measure(
        "r_precision", "R-precision", "How often the judge ranks the caption first among the candidates, exact.",
        entries="expected_top1", blind="blind_control", short="R-precision",
    ),
    Measure("r_precision_chance", "chance", "One divided by the number of candidates."),
    Measure("blind_control", "blind control", "R-precision with every image replaced by the mean image embedding."),
    Measure(
        "r_precision_normalized", "R-precision normalized",
        "(score − blind) / (score of the reference − blind), where blind is the blind control of the reference.",
    ),
    Measure(
        "r_precision_balanced", "R-precision balanced",
        "R-precision on swapped captions, with entries of the most frequent pairs weighted down.",
    ),
    Measure(
        "r_precision_sampled", "R-precision sampled",
        "R-precision with one draw of distractors for each image, as the mean over chunks of images; not balanced.",
    ),
    Measure("r_precision_sampled_sd", "deviation", "The standard deviation of r_precision_sampled over chunks."),
    Measure(
        "hubness", "hubness", "The fraction of wrong first ranks that the most frequent 1 % of the captions take.",
    ),
    Measure(
        "adjective_accuracy", "adjective accuracy",
        "How often the judge ranks the prompt above its copies with every other ranked adjective of the noun.",
        entries="adjective_first", blind="adjective_accuracy_chance", short="adj. accuracy",
    ),
    Measure("adjective_accuracy_chance", "chance", "The mean of 1 / k over prompts with k adjectives to choose from."),
    Measure("adjective_accuracy_corrected", "chance-corrected", "(adjective accuracy − chance) / (1 − chance)."),
    Measure(
        "adjective_accuracy_normalized", "adjective accuracy normalized",
        "(score − chance) / (score of the reference − chance).",
    ),
    Measure("fid", "FID", "The Fréchet distance of the images from the real images of the split.", "", 2),
    Measure("fid_balanced", "FID balanced", "The same with images of the most frequent swapped pairs left out.", "", 2),
    Measure("atom_divergence", "D_A", "The divergence of train from the prompts in adjectives and nouns.", "", 3),
    Measure("compound_divergence", "D_C", "The divergence of train from the prompts in pairs.", "", 3),
    Measure("subgraph_divergence", "D_C of subgraphs", "The same in connected parts of the parse.", "", 3),
)  # fmt: skip
MEASURES = {measure.name: measure for measure in _LIST}
# The two scores that are compared, by name.
COMPARED = {measure.name: measure for measure in _LIST if measure.entries}
