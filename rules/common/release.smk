# release: its artifacts of a composition.

RELEASED = of_compositions("prompts.parquet", "prompts.jsonl", "variants.parquet", "variants.json", "swapped.parquet")
RELEASED += of_compositions("splits.parquet", "ranking.parquet", "heldout.json", "divergence.parquet", "audit.json")
