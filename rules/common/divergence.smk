# divergence: lexicons and inputs of the page.
# The lexicons that are used to read each composition's captions.
READ_BY = [read_lexicons({"composition": name}) for name in CONFIG.compositions]
# The inputs of the page's section.
DIVERGENCE_SHOWN = of_compositions("divergence.parquet", "divergence.json")
