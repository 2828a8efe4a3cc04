# divergence: how far is test from train (DBCA)?
# Needs the captions, their pairs, the splits, the swapped captions and the prompts. Gives the atom and compound
# divergence of each split from train, beside that of random splits, and what figures of the distributions show.


rule measure_splits:
    """Measure the atom and compound divergence of each test split from train."""
    input:
        captions="<dataset>/captions.parquet",
        pairs="<dataset>/pairs.parquet",
        ranking="<dataset>/{composition}/ranking.parquet",
        splits="<dataset>/{composition}/splits.parquet",
        swapped="<dataset>/{composition}/swapped.parquet",
        prompts="<dataset>/{composition}/prompts.parquet",
        adjectives=all_adjective_lexicons,
        nouns=noun_lexicon,
    output:
        divergence="<dataset>/{composition}/divergence.parquet",
        summary="<dataset>/{composition}/divergence.json",
    log:
        "<logs>/{composition}/measure_splits.log",
    benchmark:
        "<logs>/{composition}/measure_splits.benchmark.tsv"
    conda:
        "../envs/text.yaml"
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
        " --processes {threads} --cache {params.cache:q} --dataset {DATASET:q}"
        " --composition {wildcards.composition:q} --output {output.divergence:q} --summary {output.summary:q}"
        " --log {log:q}"


rule draw_divergence:
    """Draw how far the test splits are from train: their atoms and compounds, and the division by divergence."""
    input:
        divergence="<dataset>/{composition}/divergence.parquet",
        summary="<dataset>/{composition}/divergence.json",
        division=division_files,
    output:
        parts=divergence_figures(),
        division=division_figures(),
    log:
        "<logs>/{composition}/draw_divergence.log",
    benchmark:
        "<logs>/{composition}/draw_divergence.benchmark.tsv"
    conda:
        "../envs/base.yaml"
    params:
        code=code_hash("workflow_scripts.divergence.draw_divergence"),
        definitions=measured_definitions(),
        seed=CONFIG.seed,
        results=results_folder,
    shell:
        "python -m workflow_scripts.divergence.draw_divergence --results {params.results:q} --dataset {DATASET:q}"
        " --composition {wildcards.composition:q} --definitions {params.definitions} --division {input.division:q}"
        " --seed {params.seed} --log {log:q}"
