"""The paper's results, shown next to ours.

Source: Kumar et al., "Do Vision-Language Models Understand Compound Nouns?" (NAACL 2024), tables 1
and 2, section 6. Counts and similarities by kind are published only as pictures (figures 3 and 4),
and the kinds of compounds are not published, so they cannot be compared.
"""

PAPER_COMPOUNDS = 400
CHANCE = 1 / 3  # one image of three
# Model, prompt and accuracy; people have no prompt.
TABLE_1 = (
    ("people", "", 0.9625),
    ("ALBEF", "template", 0.8055),
    ("BLIP", "template", 0.7985),
    ("MetaCLIP", "template", 0.8135),
    ("CLIP", "template", 0.7825),
    ("CLIP", "reversed", 0.4100),
    ("CLIP", "descriptions", 0.8115),
    ("CLIP", "examples_5", 0.8650),
    ("OpenCLIP", "template", 0.8390),
    ("OpenCLIP", "examples_5", 0.8625),
)
# CLIP (ViT-L/14), by the number of example captions.
TABLE_2 = {1: 0.7955, 2: 0.7990, 3: 0.8130, 4: 0.8355, 5: 0.8650, 6: 0.8650, 7: 0.8655}
PAPER_FIRST = 0.12  # CLIP's template with all 1,200 images as candidates (section 6)
