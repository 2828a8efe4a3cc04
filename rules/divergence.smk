# divergence: how far test is from train (DBCA).
# Needs the captions, their pairs, the splits, the swapped captions and the prompts. Gives the atom
# and compound divergence of each split from train, beside that of random splits.


rule measure_splits:
    """Measure the atom and compound divergence of each test split from train, for all
    compositions.
    """
    input:
        **plan.inputs("captions", "nouns", "compounds"),
        pairs=plan.pairs.of_compositions,
        ranking=plan.of_compositions("ranking.parquet"),
        splits=plan.of_compositions("splits.parquet"),
        swapped=plan.of_compositions("swapped.parquet"),
        prompts=plan.of_compositions("prompts.parquet"),
        adjectives=plan.pairs.all_lexicons,
    output:
        divergence=plan.of_compositions("divergence.parquet"),
        summary=plan.of_compositions("divergence.json"),
    log:
        "<logs>/divergence/measure_splits.log",
    benchmark:
        "<logs>/divergence/measure_splits.benchmark.tsv"
    priority: 1  # long, and only the report waits for it
    conda:
        "../envs/text.yaml"
    resources:
        mem_mb=growing(4000),
        runtime=growing(60 * len(plan.compositions)),
    params:
        **plan.parsing_params,
        code=code("divergence.measure_splits"),
        settings=section(plan.config.divergence),
        seed=plan.config.seed,
        dataset=plan.dataset,
        compositions=plan.compositions,
        lexicons=plan.pairs.lexicons,
    script:
        "../workflow_scripts/divergence/measure_splits.py"
