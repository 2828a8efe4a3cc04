# split: which pairs are held out, who trains, who tests, what is swapped, what must be drawn?
# Needs captions, pairs and ranking. Gives the splits, the swapped captions, the prompts, their audit and the exports.


rule divide_images:
    """Divide the images so that train and test diverge in their pairs, and not in their words."""
    input:
        captions="<dataset>/captions.parquet",
        pairs="<dataset>/pairs.parquet",
        ranking="<dataset>/{composition}/ranking.parquet",
    output:
        division="<dataset>/{composition}/division.parquet",
        summary="<dataset>/{composition}/division.json",
    log:
        "<logs>/{composition}/divide_images.log",
    benchmark:
        "<logs>/{composition}/divide_images.benchmark.tsv"
    conda:
        "../envs/base.yaml"
    resources:
        mem_mb=growing(2000),
        runtime=growing(120),
    params:
        code=code_hash("workflow_scripts.split.divide_images"),
        options=division_options,
        seed=CONFIG.seed,
    shell:
        "python -m workflow_scripts.split.divide_images --captions {input.captions:q} --pairs {input.pairs:q}"
        " --ranking {input.ranking:q} {params.options} --seed {params.seed}"
        " --dataset {DATASET:q} --composition {wildcards.composition:q}"
        " --output {output.division:q} --summary {output.summary:q} --log {log:q}"


rule sample_heldout:
    """Draw the pairs that are held out, or take those that are listed or published, or that a division keeps from train."""
    input:
        ranking="<dataset>/{composition}/ranking.parquet",
        pairs=branch(by_divergence(), then="<dataset>/pairs.parquet"),
        division=branch(by_divergence(), then="<dataset>/{composition}/division.parquet"),
        adjectives=branch(CONFIG.split.published, then=adjective_lexicons),
        nouns=branch(CONFIG.split.published, then=noun_lexicon),
    output:
        heldout="<dataset>/{composition}/heldout.json",
    log:
        "<logs>/{composition}/sample_heldout.log",
    benchmark:
        "<logs>/{composition}/sample_heldout.benchmark.tsv"
    group:
        "split"
    conda:
        "../envs/base.yaml"
    params:
        code=code_hash("workflow_scripts.split.sample_heldout"),
        fraction=CONFIG.split.heldout.fraction,
        window=list(CONFIG.split.heldout.window),
        pairs=listed_heldout,
        published=published_split,
        contents=published_contents,
        seed=CONFIG.seed,
    shell:
        "python -m workflow_scripts.split.sample_heldout --ranking {input.ranking:q} --fraction {params.fraction}"
        " --window {params.window} --pairs {params.pairs:q} --published {params.published:q}"
        " --occurrences {input.pairs:q} --division {input.division:q}"
        " --adjectives {input.adjectives:q} --nouns {input.nouns:q} --seed {params.seed}"
        " --dataset {DATASET:q} --composition {wildcards.composition:q}"
        " --output {output.heldout:q} --log {log:q}"


rule make_splits:
    """Divide the images into train, test_seen and test_unseen, or take the published division, or that by divergence."""
    input:
        captions="<dataset>/captions.parquet",
        pairs="<dataset>/pairs.parquet",
        ranking="<dataset>/{composition}/ranking.parquet",
        heldout="<dataset>/{composition}/heldout.json",
        division=branch(by_divergence(), then="<dataset>/{composition}/division.parquet"),
    output:
        splits="<dataset>/{composition}/splits.parquet",
        csv="<dataset>/{composition}/splits.csv",
        summary="<dataset>/{composition}/splits.json",
    log:
        "<logs>/{composition}/make_splits.log",
    benchmark:
        "<logs>/{composition}/make_splits.benchmark.tsv"
    group:
        "split"
    conda:
        "../envs/base.yaml"
    params:
        code=code_hash("workflow_scripts.split.make_splits"),
        test_seen=CONFIG.split.test_seen,
        published=published_split,
        contents=published_contents,
        seed=CONFIG.seed,
    shell:
        "python -m workflow_scripts.split.make_splits --captions {input.captions:q} --pairs {input.pairs:q}"
        " --ranking {input.ranking:q} --heldout {input.heldout:q} --test-seen {params.test_seen}"
        " --published {params.published:q} --division {input.division:q} --seed {params.seed}"
        " --dataset {DATASET:q} --composition {wildcards.composition:q}"
        " --output {output.splits:q} --csv {output.csv:q} --summary {output.summary:q} --log {log:q}"


rule swap_adjectives:
    """Swap adjectives in the captions of test_seen so that each changed pair is held out, or take published swaps."""
    input:
        captions="<dataset>/captions.parquet",
        pairs="<dataset>/pairs.parquet",
        heldout="<dataset>/{composition}/heldout.json",
        splits="<dataset>/{composition}/splits.parquet",
        adjectives=adjective_lexicons,
        nouns=noun_lexicon,
    output:
        swapped="<dataset>/{composition}/swapped.parquet",
        summary="<dataset>/{composition}/swapped.json",
    log:
        "<logs>/{composition}/swap_adjectives.log",
    benchmark:
        "<logs>/{composition}/swap_adjectives.benchmark.tsv"
    group:
        "split"
    conda:
        "../envs/base.yaml"
    params:
        code=code_hash("workflow_scripts.split.swap_adjectives"),
        published=published_data,
        contents=published_contents,
        seed=CONFIG.seed,
    shell:
        "python -m workflow_scripts.split.swap_adjectives --captions {input.captions:q} --pairs {input.pairs:q}"
        " --heldout {input.heldout:q} --splits {input.splits:q} --adjectives {input.adjectives:q}"
        " --nouns {input.nouns:q} --published {params.published:q} --seed {params.seed}"
        " --dataset {DATASET:q} --composition {wildcards.composition:q}"
        " --output {output.swapped:q} --summary {output.summary:q} --log {log:q}"


rule make_prompts:
    """List the images that every generator is asked to make."""
    input:
        captions="<dataset>/captions.parquet",
        images="<dataset>/images.parquet",
        pairs="<dataset>/pairs.parquet",
        ranking="<dataset>/{composition}/ranking.parquet",
        heldout="<dataset>/{composition}/heldout.json",
        splits="<dataset>/{composition}/splits.parquet",
        swapped="<dataset>/{composition}/swapped.parquet",
    output:
        prompts="<dataset>/{composition}/prompts.parquet",
        jsonl="<dataset>/{composition}/prompts.jsonl",
        summary="<dataset>/{composition}/prompts.json",
    log:
        "<logs>/{composition}/make_prompts.log",
    benchmark:
        "<logs>/{composition}/make_prompts.benchmark.tsv"
    group:
        "split"
    conda:
        "../envs/base.yaml"
    params:
        code=code_hash("workflow_scripts.split.make_prompts"),
        prompts=CONFIG.split.prompts,
        draws=CONFIG.split.draws,
        per_image=CONFIG.split.per_image or 0,
        train_on=CONFIG.judge.train_on,
        seed=CONFIG.seed,
    shell:
        "python -m workflow_scripts.split.make_prompts --captions {input.captions:q} --images {input.images:q}"
        " --pairs {input.pairs:q} --ranking {input.ranking:q} --heldout {input.heldout:q}"
        " --splits {input.splits:q} --swapped {input.swapped:q} --prompts {params.prompts} --draws {params.draws}"
        " --per-image {params.per_image} --train-on {params.train_on} --seed {params.seed}"
        " --dataset {DATASET:q} --composition {wildcards.composition:q}"
        " --output {output.prompts:q} --jsonl {output.jsonl:q} --summary {output.summary:q} --log {log:q}"


rule audit:
    """Re-establish from words alone that nothing of test is in train and that swaps are what they say."""
    input:
        captions="<dataset>/captions.parquet",
        heldout="<dataset>/{composition}/heldout.json",
        splits="<dataset>/{composition}/splits.parquet",
        swapped="<dataset>/{composition}/swapped.parquet",
        adjectives=adjective_lexicons,
        nouns=noun_lexicon,
        reports=branch(CONFIG.split.published, then=PUBLISHED_REPORTS),
        unused=branch(by_divergence(), then="<dataset>/{composition}/splits.json"),
    output:
        audit="<dataset>/{composition}/audit.json",
    log:
        "<logs>/{composition}/audit.log",
    benchmark:
        "<logs>/{composition}/audit.benchmark.tsv"
    group:
        "split"
    conda:
        "../envs/base.yaml"
    params:
        code=code_hash("workflow_scripts.split.audit"),
        violations=CONFIG.split.published.violations if CONFIG.split.published else "refuse",
    shell:
        "python -m workflow_scripts.split.audit --captions {input.captions:q} --heldout {input.heldout:q}"
        " --splits {input.splits:q} --swapped {input.swapped:q} --adjectives {input.adjectives:q}"
        " --nouns {input.nouns:q} --reports {input.reports:q} --unused {input.unused:q}"
        " --violations {params.violations}"
        " --dataset {DATASET:q} --composition {wildcards.composition:q}"
        " --output {output.audit:q} --log {log:q}"


rule export:
    """Write the published formats, and the train list for people who train generators."""
    input:
        captions="<dataset>/captions.parquet",
        images="<dataset>/images.parquet",
        heldout="<dataset>/{composition}/heldout.json",
        splits="<dataset>/{composition}/splits.parquet",
        swapped="<dataset>/{composition}/swapped.parquet",
    output:
        folder=directory("<dataset>/{composition}/export"),
    log:
        "<logs>/{composition}/export.log",
    benchmark:
        "<logs>/{composition}/export.benchmark.tsv"
    group:
        "split"
    conda:
        "../envs/base.yaml"
    params:
        code=code_hash("workflow_scripts.split.export"),
    shell:
        "python -m workflow_scripts.split.export --captions {input.captions:q} --images {input.images:q}"
        " --heldout {input.heldout:q} --splits {input.splits:q} --swapped {input.swapped:q}"
        " --output {output.folder:q} --log {log:q}"


rule draw_splits:
    """Draw what the splits hold: the adjectives and nouns of each, and the swapped pairs."""
    input:
        pairs="<dataset>/pairs.parquet",
        ranking="<dataset>/{composition}/ranking.parquet",
        splits="<dataset>/{composition}/splits.parquet",
        swapped="<dataset>/{composition}/swapped.parquet",
        prompts="<dataset>/{composition}/prompts.parquet",
    output:
        **split_figures(),
        distributions=distribution_figures(),
    log:
        "<logs>/{composition}/draw_splits.log",
    benchmark:
        "<logs>/{composition}/draw_splits.benchmark.tsv"
    conda:
        "../envs/base.yaml"
    params:
        code=code_hash("workflow_scripts.split.draw_splits"),
        dominant=dominant_pairs,
        ratio=CONFIG.score.balance.ratio,
        seed=CONFIG.seed,
        results=results_folder,
    shell:
        "python -m workflow_scripts.split.draw_splits --results {params.results:q} --dataset {DATASET:q}"
        " --composition {wildcards.composition:q} --dominant {params.dominant} --ratio {params.ratio}"
        " --seed {params.seed} --log {log:q}"
