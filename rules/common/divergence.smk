# divergence: what is read and shown.
# The lexicons with which each composition's captions are read.
READ_BY = [read_lexicons({"composition": name}) for name in CONFIG.compositions]
# What the page's section reads.
DIVERGENCE_SHOWN = of_compositions("divergence.parquet", "divergence.json")
