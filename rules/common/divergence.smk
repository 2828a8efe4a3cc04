# divergence: what is shown.
# What the page's section reads.
DIVERGENCE_SHOWN = of_compositions("divergence.parquet", "divergence.json")
