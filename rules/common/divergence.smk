# divergence: what is drawn.
from compclip.divergence.results import FIGURES


def divergence_figures():
    """The figures of adjectives and nouns, and of pairs, and that of a division by divergence."""
    return [figure(name, "parts") for name in FIGURES] + ([figure("division")] if by_divergence() else [])


def divergence_page_reads():
    """Return what the section of divergence reads."""
    return of_compositions("divergence.parquet", "divergence.json", *(["division.json"] if by_divergence() else []))
