# divergence: what is measured and drawn.
from workflow_scripts.core.tables import TESTS
from workflow_scripts.plot.labels import PART_NAMES


def measured_definitions():
    """The definitions of atoms and compounds by which divergence is measured."""
    return ["pairs", "subgraphs"] if CONFIG.divergence.subgraphs else ["pairs"]


def divergence_figures():
    """A figure of atoms and one of compounds for each definition and test split, beside those of train."""
    parts = [f"{definition}_{kind}" for definition, kind in PART_NAMES if definition in measured_definitions()]
    return [figure(f"{split}_{part}", "parts") for split in TESTS for part in parts]


def division_figures():
    """The figure of the division, if the images were divided by divergence."""
    return [figure("division")] if by_divergence() else []


def divergence_page_reads():
    """Return what the section of divergence reads."""
    return of_compositions("divergence.parquet", "divergence.json", *(["division.json"] if by_divergence() else []))
