# divergence: how far is test from train (DBCA)?
# Needs the captions, their pairs, the splits, the swapped captions and the prompts. Gives the atom and compound
# divergence of each split from train, beside that of random splits, and figures of the distributions.


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


rule draw_divergence:
    """Draw how far the test splits are from train: their atoms and compounds, and the division by divergence."""
    input:
        divergence="<dataset>/{composition}/divergence.parquet",
        summary="<dataset>/{composition}/divergence.json",
        division=branch(BY_DIVERGENCE, then="<dataset>/{composition}/division.json"),
    output:
        figures=DIVERGENCE_FIGURES,
    log:
        "<logs>/divergence/{composition}/draw_divergence.log",
    benchmark:
        "<logs>/divergence/{composition}/draw_divergence.benchmark.tsv"
    conda:
        "../envs/base.yaml"
    params:
        code=code("divergence.draw_divergence"),
        seed=CONFIG.seed,
        dataset=DATASET,
    script:
        "../workflow_scripts/divergence/draw_divergence.py"
