# divergence: how far test is from train (DBCA).
# Needs the captions, their pairs, the splits, the swapped captions and the prompts. Gives the atom
# and compound divergence of each split from train, beside that of random splits.

# The lexicons that are used to read each composition's captions.
READ_BY = [read_lexicons({"composition": name}) for name in CONFIG.compositions]


rule measure_splits:
    """Measure the atom and compound divergence of each test split from train, for all
    compositions.
    """
    input:
        **inputs("captions", "nouns", "compounds"),
        pairs=[str(of.read / "pairs.parquet") for of in LAYOUTS],
        ranking=of_compositions("ranking.parquet"),
        splits=of_compositions("splits.parquet"),
        swapped=of_compositions("swapped.parquet"),
        prompts=of_compositions("prompts.parquet"),
        adjectives=sorted({lexicon for of in READ_BY for lexicon in of}),
    output:
        divergence=of_compositions("divergence.parquet"),
        summary=of_compositions("divergence.json"),
    log:
        "<logs>/divergence/measure_splits.log",
    benchmark:
        "<logs>/divergence/measure_splits.benchmark.tsv"
    conda:
        "../envs/text.yaml"
    resources:
        mem_mb=growing(4000),
        runtime=growing(60 * len(CONFIG.compositions)),
    params:
        **PARSING,
        code=code("divergence.measure_splits"),
        settings=section(CONFIG.divergence),
        seed=CONFIG.seed,
        dataset=DATASET,
        compositions=CONFIG.compositions,
        lexicons=READ_BY,
    script:
        "../workflow_scripts/divergence/measure_splits.py"
