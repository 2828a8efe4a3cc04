# divergence: how far is test from train (DBCA)?
# Needs the captions, their pairs, the splits, the swapped captions and the prompts. Gives the atom and compound
# divergence of each split from train, beside that of random splits, and what figures of the distributions show.


rule measure_splits:
    """Measure the atom and compound divergence of each test split from train."""
    input:
        captions="<results>/{dataset}/captions.parquet",
        pairs="<results>/{dataset}/pairs.parquet",
        ranking="<results>/{dataset}/{composition}/ranking.parquet",
        splits="<results>/{dataset}/{composition}/splits.parquet",
        swapped="<results>/{dataset}/{composition}/swapped.parquet",
        prompts="<results>/{dataset}/{composition}/prompts.parquet",
        adjectives=all_adjective_lexicons,
        nouns=noun_lexicon,
    output:
        divergence="<results>/{dataset}/{composition}/divergence.parquet",
        summary="<results>/{dataset}/{composition}/divergence.json",
    log:
        "<logs>/{dataset}/{composition}/measure_splits.log",
    benchmark:
        "<logs>/{dataset}/{composition}/measure_splits.benchmark.tsv"
    conda:
        "../envs/text.yaml"
    threads: 1
    resources:
        mem_mb=growing(4000),
        runtime=growing(60),
    params:
        code=code_hash("workflow_scripts.divergence.measure_splits"),
        model=CONFIG.pairs.model,
        subgraphs=subgraph_options,
        shuffles=CONFIG.divergence.shuffles,
        seed=CONFIG.seed,
        cache=CONFIG.cache,
    shell:
        "python -m workflow_scripts.divergence.measure_splits --captions {input.captions:q} --pairs {input.pairs:q}"
        " --ranking {input.ranking:q} --splits {input.splits:q} --swapped {input.swapped:q}"
        " --prompts {input.prompts:q} --adjectives {input.adjectives:q} --nouns {input.nouns:q}"
        " --model {params.model:q} {params.subgraphs} --shuffles {params.shuffles} --seed {params.seed}"
        " --processes {threads} --cache {params.cache:q} --dataset {wildcards.dataset:q}"
        " --composition {wildcards.composition:q} --output {output.divergence:q} --summary {output.summary:q}"
        " --log {log:q}"
