# score: does the judge retrieve the caption?
# Needs the judge, the prompts and the generators' images. Gives a table of scores for each split that a generator
# serves, with a summary; for sketches the same by the oracle; and the choice between right and wrong adjectives.


rule score_images:
    """Score a generator's images by the trained judge."""
    input:
        captions=RESULTS + "/{dataset}/captions.parquet",
        images=RESULTS + "/{dataset}/images.parquet",
        files=RESULTS + "/{dataset}/images",
        splits=RESULTS + "/{dataset}/{composition}/splits.parquet",
        swapped=RESULTS + "/{dataset}/{composition}/swapped.parquet",
        prompts=RESULTS + "/{dataset}/{composition}/prompts.parquet",
        manifest=RESULTS + "/{dataset}/{composition}/generated/{generator}/manifest.parquet",
        made=RESULTS + "/{dataset}/{composition}/generated/{generator}/images",
        judge=RESULTS + "/{dataset}/{composition}/judge",
    output:
        scores=directory(RESULTS + "/{dataset}/{composition}/scores/{generator}"),
    params:
        code=code_hash("workflow_scripts.score.score_images"),
        serves=served_splits,
        rule=score_options(),
        batch=CONFIG.score.batch,
        threads=CONFIG.threads,
        device=CONFIG.judge.device,
        results=RESULTS,
        cache=CONFIG.cache,
    log:
        LOGS + "/{dataset}/{composition}/score_images.{generator}.log",
    benchmark:
        LOGS + "/{dataset}/{composition}/score_images.{generator}.benchmark.tsv"
    conda:
        "../envs/torch.yaml"
    threads: CONFIG.threads
    resources:
        torch=1,
        mem_mb=4000,
    shell:
        "python -m workflow_scripts.score.score_images --captions {input.captions:q} --images {input.images:q}"
        " --splits {input.splits:q} --swapped {input.swapped:q} --prompts {input.prompts:q}"
        " --manifest {input.manifest:q} --judge {input.judge:q} --results {params.results:q}"
        " --dataset {wildcards.dataset:q} --composition {wildcards.composition:q} --generator {wildcards.generator:q}"
        " --serves {params.serves:q} {params.rule} --batch {params.batch} --threads {params.threads}"
        " --device {params.device} --cache {params.cache:q} --output {output.scores:q} --log {log:q}"


rule score_oracle:
    """Score the drawn scenes by the oracle, which knows what was drawn."""
    input:
        captions=RESULTS + "/{dataset}/captions.parquet",
        images=RESULTS + "/{dataset}/images.parquet",
        scenes=RESULTS + "/{dataset}/scenes.parquet",
        facts=RESULTS + "/{dataset}/facts.parquet",
        splits=RESULTS + "/{dataset}/{composition}/splits.parquet",
        swapped=RESULTS + "/{dataset}/{composition}/swapped.parquet",
        prompts=RESULTS + "/{dataset}/{composition}/prompts.parquet",
        manifest=RESULTS + "/{dataset}/{composition}/generated/{generator}/manifest.parquet",
        drawn=drawn_scenes,
    output:
        scores=directory(RESULTS + "/{dataset}/{composition}/scores_oracle/{generator}"),
    params:
        code=code_hash("workflow_scripts.score.score_oracle"),
        serves=served_splits,
        rule=score_options(),
        results=RESULTS,
    log:
        LOGS + "/{dataset}/{composition}/score_oracle.{generator}.log",
    benchmark:
        LOGS + "/{dataset}/{composition}/score_oracle.{generator}.benchmark.tsv"
    conda:
        "../envs/base.yaml"
    threads: 1
    resources:
        mem_mb=4000,
    shell:
        "python -m workflow_scripts.score.score_oracle --captions {input.captions:q} --images {input.images:q}"
        " --scenes {input.scenes:q} --facts {input.facts:q} --splits {input.splits:q} --swapped {input.swapped:q}"
        " --prompts {input.prompts:q} --manifest {input.manifest:q} --drawn {input.drawn:q}"
        " --results {params.results:q} --dataset {wildcards.dataset:q} --composition {wildcards.composition:q}"
        " --generator {wildcards.generator:q} --serves {params.serves:q} {params.rule}"
        " --output {output.scores:q} --log {log:q}"


rule adjective_choice:
    """Ask the judge to choose between the right and one wrong adjective of held-out pairs."""
    input:
        captions=RESULTS + "/{dataset}/captions.parquet",
        images=RESULTS + "/{dataset}/images.parquet",
        files=RESULTS + "/{dataset}/images",
        pairs=RESULTS + "/{dataset}/pairs.parquet",
        ranking=RESULTS + "/{dataset}/{composition}/ranking.parquet",
        heldout=RESULTS + "/{dataset}/{composition}/heldout.json",
        splits=RESULTS + "/{dataset}/{composition}/splits.parquet",
        judge=RESULTS + "/{dataset}/{composition}/judge",
    output:
        RESULTS + "/{dataset}/{composition}/adjective_choice.json",
    params:
        code=code_hash("workflow_scripts.score.adjective_choice"),
        train_on=CONFIG.judge.train_on,
        bootstrap=CONFIG.score.bootstrap,
        batch=CONFIG.score.batch,
        threads=CONFIG.threads,
        device=CONFIG.judge.device,
        seed=CONFIG.seed,
        results=RESULTS,
        cache=CONFIG.cache,
    log:
        LOGS + "/{dataset}/{composition}/adjective_choice.log",
    benchmark:
        LOGS + "/{dataset}/{composition}/adjective_choice.benchmark.tsv"
    conda:
        "../envs/torch.yaml"
    threads: CONFIG.threads
    resources:
        torch=1,
        mem_mb=4000,
    shell:
        "python -m workflow_scripts.score.adjective_choice --captions {input.captions:q} --images {input.images:q}"
        " --pairs {input.pairs:q} --ranking {input.ranking:q} --heldout {input.heldout:q} --splits {input.splits:q}"
        " --judge {input.judge:q} --results {params.results:q} --dataset {wildcards.dataset:q}"
        " --composition {wildcards.composition:q} --train-on {params.train_on} --bootstrap {params.bootstrap}"
        " --batch {params.batch} --threads {params.threads} --device {params.device} --seed {params.seed}"
        " --cache {params.cache:q} --output {output:q} --log {log:q}"
