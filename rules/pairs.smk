# pairs: which adjective goes with which noun, where, how often?
# Needs the captions and the lexicons. Gives every occurrence with its place, and each composition's ranking.


rule extract_pairs:
    """Find the adjective-noun pairs of all captions; each distinct caption is parsed once."""
    input:
        captions="<results>/{dataset}/captions.parquet",
        adjectives=adjective_lexicons,
        nouns=noun_lexicon,
    output:
        pairs="<results>/{dataset}/pairs.parquet",
        summary="<results>/{dataset}/pairs.json",
    log:
        "<logs>/{dataset}/extract_pairs.log",
    benchmark:
        "<logs>/{dataset}/extract_pairs.benchmark.tsv"
    conda:
        "../envs/text.yaml"
    threads: 2
    resources:
        mem_mb=growing(3000),
        runtime=growing(60),
    params:
        code=code_hash("workflow_scripts.pairs.extract_pairs"),
        model=CONFIG.pairs.model,
        cache=CONFIG.cache,
    shell:
        "python -m workflow_scripts.pairs.extract_pairs --captions {input.captions:q}"
        " --adjectives {input.adjectives:q} --nouns {input.nouns:q} --model {params.model:q} --processes {threads}"
        " --cache {params.cache:q} --output {output.pairs:q} --summary {output.summary:q} --log {log:q}"


rule rank_pairs:
    """Select a composition's adjectives and nouns, and rank their pairs by frequency."""
    input:
        pairs="<results>/{dataset}/pairs.parquet",
        adjectives=adjective_lexicons,
        nouns=noun_lexicon,
    output:
        ranking="<results>/{dataset}/{composition}/ranking.parquet",
    log:
        "<logs>/{dataset}/{composition}/rank_pairs.log",
    benchmark:
        "<logs>/{dataset}/{composition}/rank_pairs.benchmark.tsv"
    group:
        "split"
    conda:
        "../envs/text.yaml"
    threads: 1
    resources:
        mem_mb=growing(2000),
        runtime=growing(30),
    params:
        code=code_hash("workflow_scripts.pairs.rank_pairs"),
        selection_adjectives=CONFIG.pairs.selection.adjectives,
        selection_pairs=CONFIG.pairs.selection.pairs,
        min_count=CONFIG.pairs.selection.min_count,
    shell:
        "python -m workflow_scripts.pairs.rank_pairs --pairs {input.pairs:q} --adjectives {input.adjectives:q}"
        " --nouns {input.nouns:q} --selection-adjectives {params.selection_adjectives}"
        " --selection-pairs {params.selection_pairs} --min-count {params.min_count}"
        " --output {output.ranking:q} --log {log:q}"
