"""The page's section on divergence: how far the test splits of one composition are from train."""

from compclip.core.artifacts.files import read_json
from compclip.core.tables import TESTS
from compclip.divergence.results import divergence_lines, read_divergences
from compclip.plot.labels import SPLIT_NAMES
from compclip.plot.page import PageSection
from workflow_scripts.layout import Layout


def section(layout: Layout) -> PageSection:
    divergences = read_divergences(layout.folder)
    context = {
        # Tests by the captions that are prompted for, and by all; train always has all captions.
        "of_prompts": divergence_lines(divergences, "prompts"),
        "of_captions": divergence_lines(divergences, "captions"),
        "tests": [SPLIT_NAMES[split] for split in TESTS],
        "warnings": read_json(layout.folder / "divergence.json")["warnings"],
        "shuffles": divergences["shuffles"].max(),
        "measured": len(divergences) > 0,
    }
    return PageSection("How far test is from train", "divergence_section.html.j2", context)
