# pairs: which adjective modifies which noun, where and how often.
# Needs the captions and the lexicons. Gives every occurrence with its offsets, and each
# composition's ranking.


rule extract_pairs:
    """Find the adjective-noun pairs of all captions; each distinct caption is parsed once."""
    input:
        **plan.inputs("captions", "nouns", "compounds"),
        adjectives=plan.lexicons_of_pairs,
        shards=plan.shards("{own}pairs", "parquet"),
    output:
        pairs="<dataset>/{own}pairs.parquet",
        summary="<dataset>/{own}pairs.json",
    log:
        "<logs>/pairs/{own}extract_pairs.log",
    benchmark:
        "<logs>/pairs/{own}extract_pairs.benchmark.tsv"
    conda:
        "../envs/text.yaml"
    threads: 8 if plan.config.dataset.shards == 1 else 1  # Snakemake reduces it to --cores
    resources:
        mem_mb=growing(3000),
        runtime=growing(60),
    params:
        **plan.parsing_params,
        code=code("pairs.extract_pairs"),
    script:
        "../workflow_scripts/pairs/extract_pairs.py"


use rule extract_pairs as extract_shard with:
    output:
        pairs="<dataset>/{own}pairs/{shard}-of-{shards}.parquet",
    log:
        "<logs>/pairs/{own}extract_shard.{shard}-of-{shards}.log",
    benchmark:
        "<logs>/pairs/{own}extract_shard.{shard}-of-{shards}.benchmark.tsv"
    threads: 8


rule rank_pairs:
    """Select a composition's adjectives and nouns, and rank their pairs by frequency."""
    input:
        **plan.inputs("pairs", "adjectives", "nouns"),
    output:
        ranking="<dataset>/{composition}/ranking.parquet",
    log:
        "<logs>/pairs/{composition}/rank_pairs.log",
    benchmark:
        "<logs>/pairs/{composition}/rank_pairs.benchmark.tsv"
    group:
        plan.split.group
    conda:
        "../envs/text.yaml"
    params:
        code=code("pairs.rank_pairs"),
        selection=section(plan.config.pairs.selection),
    script:
        "../workflow_scripts/pairs/rank_pairs.py"
