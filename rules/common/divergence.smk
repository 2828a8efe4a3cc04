# divergence: what is drawn and shown.
from compclip.divergence.results import FIGURES

# Of adjectives and nouns, and of pairs, and of a division by divergence.
DIVERGENCE_FIGURES = [figure(name, "parts") for name in FIGURES] + ([figure("division")] if BY_DIVERGENCE else [])
# What the page's section reads.
DIVERGENCE_SHOWN = of_compositions("divergence.parquet", "divergence.json")
DIVERGENCE_SHOWN += of_compositions("division.json") if BY_DIVERGENCE else []
