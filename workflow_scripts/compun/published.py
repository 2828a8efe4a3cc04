"""The paper's results, to show next to those measured here.

Source: Kumar et al., "Do Vision-Language Models Understand Compound Nouns?" (NAACL 2024), tables 1 and 2, section 6.
The counts and similarities by kind are published only as pictures (figures 3 and 4), and the kind of each compound is
not published, so there are no numbers to compare with.
"""

from dataclasses import dataclass

PAPER, OURS = "paper", "ours"  # whose a result is
COMPOUNDS, IMAGES = 400, 1200
KINDS = {"either": 199, "both": 106, "none": 95}
CHANCE = 1 / 3  # one image of three
# Lines of the paper's table 1 that are not models.
PEOPLE, CHANCE_NAME = "people", "chance"


@dataclass(frozen=True)
class Result:
    """A result of the paper; ``prompt`` is as in choices.parquet, None for people and chance."""

    model: str
    prompt: str | None
    accuracy: float


TABLE_1 = (
    Result(PEOPLE, None, 0.9625),
    Result(CHANCE_NAME, None, 0.3333),
    Result("ALBEF", "template", 0.8055),
    Result("BLIP", "template", 0.7985),
    Result("MetaCLIP", "template", 0.8135),
    Result("CLIP", "template", 0.7825),
    Result("CLIP", "reversed", 0.4100),
    Result("CLIP", "descriptions", 0.8115),
    Result("CLIP", "examples_5", 0.8650),
    Result("OpenCLIP", "template", 0.8390),
    Result("OpenCLIP", "examples_5", 0.8625),
)
# CLIP (ViT-L/14), by the number of example captions.
TABLE_2 = {1: 0.7955, 2: 0.7990, 3: 0.8130, 4: 0.8355, 5: 0.8650, 6: 0.8650, 7: 0.8655}
# With all images as candidates (section 6).
RETRIEVAL = Result("CLIP", "template", 0.12)
