# score: does the judge retrieve the caption?
# Needs the judge, the prompts and the generators' images. Gives a table of scores for each split that a generator
# serves, with a summary; for sketches the same by the oracle; and the choice between right and wrong adjectives.


if CONFIG.score.shards > 1:

    rule embed_images:
        """Embed one shard of a generator's images by the trained judge."""
        input:
            images="<dataset>/images.parquet",
            files="<dataset>/images",
            manifest="<dataset>/{composition}/generated/{generator}/manifest.parquet",
            made="<dataset>/{composition}/generated/{generator}/images",
            judge="<dataset>/{composition}/judge",
        output:
            "<dataset>/{composition}/embeddings/{generator}/{shard,[0-9]+}-of-{shards,[0-9]+}.parquet",
        log:
            "<logs>/{composition}/embed_images.{generator}.{shard}-of-{shards}.log",
        benchmark:
            "<logs>/{composition}/embed_images.{generator}.{shard}-of-{shards}.benchmark.tsv"
        conda:
            "../envs/torch.yaml"
        threads: CONFIG.threads
        resources:
            torch=torch_slots(),
            mem_mb=growing(4000),
            runtime=growing(60),
            gpu=judge_gpu(),
        params:
            code=code_hash("workflow_scripts.score.embed_images"),
            batch=CONFIG.score.batch,
            threads=CONFIG.threads,
            device=CONFIG.judge.device,
            results=results_folder,
            cache=CONFIG.cache,
        shell:
            "python -m workflow_scripts.score.embed_images --manifest {input.manifest:q} --images {input.images:q}"
            " --results {params.results:q} --judge {input.judge:q} --shard {wildcards.shard} --shards {wildcards.shards}"
            " --batch {params.batch} --threads {params.threads} --device {params.device} --cache {params.cache:q}"
            " --output {output:q} --log {log:q}"


rule score_images:
    """Score a generator's images by the trained judge."""
    input:
        captions="<dataset>/captions.parquet",
        images="<dataset>/images.parquet",
        files="<dataset>/images",
        splits="<dataset>/{composition}/splits.parquet",
        swapped="<dataset>/{composition}/swapped.parquet",
        prompts="<dataset>/{composition}/prompts.parquet",
        manifest="<dataset>/{composition}/generated/{generator}/manifest.parquet",
        made="<dataset>/{composition}/generated/{generator}/images",
        judge="<dataset>/{composition}/judge",
        embedded=image_shards,
    output:
        scores=directory("<dataset>/{composition}/scores/{generator}"),
    log:
        "<logs>/{composition}/score_images.{generator}.log",
    benchmark:
        "<logs>/{composition}/score_images.{generator}.benchmark.tsv"
    group:
        "score"
    conda:
        "../envs/torch.yaml"
    threads: CONFIG.threads
    resources:
        torch=torch_slots(),
        mem_mb=growing(8000),
        runtime=growing(60),
        gpu=judge_gpu(),
    params:
        code=code_hash("workflow_scripts.score.score_images"),
        serves=served_splits,
        rule=score_options,
        batch=CONFIG.score.batch,
        threads=CONFIG.threads,
        device=CONFIG.judge.device,
        results=results_folder,
        cache=CONFIG.cache,
    shell:
        "python -m workflow_scripts.score.score_images --captions {input.captions:q} --images {input.images:q}"
        " --splits {input.splits:q} --swapped {input.swapped:q} --prompts {input.prompts:q}"
        " --manifest {input.manifest:q} --judge {input.judge:q} --results {params.results:q}"
        " --dataset {DATASET:q} --composition {wildcards.composition:q} --generator {wildcards.generator:q}"
        " --serves {params.serves:q} {params.rule} --batch {params.batch} --threads {params.threads}"
        " --device {params.device} --cache {params.cache:q} --embedded {input.embedded:q} --output {output.scores:q}"
        " --log {log:q}"


rule score_oracle:
    """Score the drawn scenes by the oracle, which knows what was drawn."""
    input:
        captions="<dataset>/captions.parquet",
        images="<dataset>/images.parquet",
        scenes="<dataset>/scenes.parquet",
        facts="<dataset>/facts.parquet",
        splits="<dataset>/{composition}/splits.parquet",
        swapped="<dataset>/{composition}/swapped.parquet",
        prompts="<dataset>/{composition}/prompts.parquet",
        manifest="<dataset>/{composition}/generated/{generator}/manifest.parquet",
        drawn=drawn_scenes,
    output:
        scores=directory("<dataset>/{composition}/scores_oracle/{generator}"),
    log:
        "<logs>/{composition}/score_oracle.{generator}.log",
    benchmark:
        "<logs>/{composition}/score_oracle.{generator}.benchmark.tsv"
    group:
        "oracle"
    conda:
        "../envs/base.yaml"
    params:
        code=code_hash("workflow_scripts.score.score_oracle"),
        serves=served_splits,
        rule=score_options,
        results=results_folder,
    shell:
        "python -m workflow_scripts.score.score_oracle --captions {input.captions:q} --images {input.images:q}"
        " --scenes {input.scenes:q} --facts {input.facts:q} --splits {input.splits:q} --swapped {input.swapped:q}"
        " --prompts {input.prompts:q} --manifest {input.manifest:q} --drawn {input.drawn:q}"
        " --results {params.results:q} --dataset {DATASET:q} --composition {wildcards.composition:q}"
        " --generator {wildcards.generator:q} --serves {params.serves:q} {params.rule}"
        " --output {output.scores:q} --log {log:q}"


rule adjective_choice:
    """Ask the judge to choose between the right and one wrong adjective of held-out pairs."""
    input:
        captions="<dataset>/captions.parquet",
        images="<dataset>/images.parquet",
        files="<dataset>/images",
        pairs="<dataset>/pairs.parquet",
        ranking="<dataset>/{composition}/ranking.parquet",
        heldout="<dataset>/{composition}/heldout.json",
        splits="<dataset>/{composition}/splits.parquet",
        judge="<dataset>/{composition}/judge",
    output:
        "<dataset>/{composition}/adjective_choice.json",
    log:
        "<logs>/{composition}/adjective_choice.log",
    benchmark:
        "<logs>/{composition}/adjective_choice.benchmark.tsv"
    conda:
        "../envs/torch.yaml"
    threads: CONFIG.threads
    resources:
        torch=torch_slots(),
        mem_mb=growing(8000),
        runtime=growing(60),
        gpu=judge_gpu(),
    params:
        code=code_hash("workflow_scripts.score.adjective_choice"),
        train_on=CONFIG.judge.train_on,
        bootstrap=CONFIG.score.bootstrap,
        batch=CONFIG.score.batch,
        threads=CONFIG.threads,
        device=CONFIG.judge.device,
        seed=CONFIG.seed,
        results=results_folder,
        cache=CONFIG.cache,
    shell:
        "python -m workflow_scripts.score.adjective_choice --captions {input.captions:q} --images {input.images:q}"
        " --pairs {input.pairs:q} --ranking {input.ranking:q} --heldout {input.heldout:q} --splits {input.splits:q}"
        " --judge {input.judge:q} --results {params.results:q} --dataset {DATASET:q}"
        " --composition {wildcards.composition:q} --train-on {params.train_on} --bootstrap {params.bootstrap}"
        " --batch {params.batch} --threads {params.threads} --device {params.device} --seed {params.seed}"
        " --cache {params.cache:q} --output {output:q} --log {log:q}"


rule score_fid:
    """Compare a generator's images as a whole with the real images of each split."""
    input:
        images="<dataset>/images.parquet",
        files="<dataset>/images",
        splits="<dataset>/{composition}/splits.parquet",
        prompts="<dataset>/{composition}/prompts.parquet",
        manifest="<dataset>/{composition}/generated/{generator}/manifest.parquet",
        made="<dataset>/{composition}/generated/{generator}/images",
    output:
        "<dataset>/{composition}/fid/{generator}.json",
    log:
        "<logs>/{composition}/score_fid.{generator}.log",
    benchmark:
        "<logs>/{composition}/score_fid.{generator}.benchmark.tsv"
    group:
        "fid"
    conda:
        "../envs/fid.yaml"
    threads: CONFIG.threads
    resources:
        torch=torch_slots(),
        mem_mb=growing(6000),
        runtime=growing(60),
        gpu=judge_gpu(),
    params:
        code=code_hash("workflow_scripts.score.score_fid"),
        serves=served_splits,
        options=fid_options,
        threads=CONFIG.threads,
        device=CONFIG.judge.device,
        results=results_folder,
        cache=CONFIG.cache,
    shell:
        "python -m workflow_scripts.score.score_fid --images {input.images:q} --splits {input.splits:q}"
        " --prompts {input.prompts:q} --manifest {input.manifest:q} --results {params.results:q}"
        " --generator {wildcards.generator:q} --serves {params.serves:q} {params.options:q} --threads {params.threads}"
        " --device {params.device} --cache {params.cache:q} --output {output:q} --log {log:q}"
