# divergence: how far is test from train (DBCA)?
# Needs the captions, their pairs, the splits, the swapped captions and the prompts. Gives the atom and compound
# divergence of each split from train, beside that of random splits.


rule measure_splits:
    """Measure the atom and compound divergence of each test split from train."""
    input:
        **inputs("captions", "pairs", "ranking", "splits", "swapped", "prompts", "nouns", "compounds"),
        adjectives=read_lexicons,
    output:
        divergence="<dataset>/{composition}/divergence.parquet",
        summary="<dataset>/{composition}/divergence.json",
    log:
        "<logs>/divergence/{composition}/measure_splits.log",
    benchmark:
        "<logs>/divergence/{composition}/measure_splits.benchmark.tsv"
    conda:
        "../envs/text.yaml"
    resources:
        mem_mb=growing(4000),
        runtime=growing(60),
    params:
        **PARSING,
        code=code("divergence.measure_splits"),
        settings=section(CONFIG.divergence),
        seed=CONFIG.seed,
        dataset=DATASET,
    script:
        "../workflow_scripts/divergence/measure_splits.py"
