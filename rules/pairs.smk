# pairs: which adjective modifies which noun, where and how often.
# Needs the captions and the lexicons. Gives every occurrence with its offsets, and each
# composition's ranking.


rule parse_captions:
    """Find the adjective-noun pairs in the captions of a shard; each distinct caption is parsed
    once.
    """
    input:
        **plan.inputs("captions", "nouns", "compounds"),
        adjectives=plan.lexicons_of_pairs,
    output:
        pairs="<dataset>/{own}pairs/{shard}-of-{shards}.parquet",
    log:
        "<logs>/pairs/{own}parse_captions.{shard}-of-{shards}.log",
    benchmark:
        "<logs>/pairs/{own}parse_captions.{shard}-of-{shards}.benchmark.tsv"
    conda:
        "../envs/text.yaml"
    threads: 16  # processes; Snakemake reduces it to --cores
    resources:
        mem_mb=growing(5000),
        runtime=growing(60),
    params:
        **plan.parsing_params,
        code=code("pairs.parse_captions"),
    script:
        "../workflow_scripts/pairs/parse_captions.py"


rule extract_pairs:
    """Find the adjective-noun pairs of all captions, or join those of shards; all forms of a noun
    get one name.
    """
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
    threads: 16 if plan.config.dataset.shards == 1 else 1  # shards have parsed the captions
    resources:
        mem_mb=growing(5000),
        runtime=growing(60),
    params:
        **plan.parsing_params,
        code=code("pairs.extract_pairs"),
    script:
        "../workflow_scripts/pairs/extract_pairs.py"


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
