# judge: a CLIP fine-tuned on these captions.
# Needs captions, images and splits. Gives a folder with the judge's weights, its model config and its training's log.


rule train_judge:
    """Train the judge on the images that it may see, or take a pretrained one as it is."""
    input:
        captions=RESULTS + "/{dataset}/captions.parquet",
        images=RESULTS + "/{dataset}/images.parquet",
        folder=RESULTS + "/{dataset}/images",
        splits=RESULTS + "/{dataset}/{composition}/splits.parquet",
        files=judge_files(),
    output:
        judge=directory(RESULTS + "/{dataset}/{composition}/judge"),
    params:
        code=code_hash("workflow_scripts.judge.train_judge"),
        settings=CONFIG.judge.model_dump_json(),
        seed=CONFIG.seed,
        results=RESULTS,
        cache=CONFIG.cache,
        torch_threads=CONFIG.threads,
    log:
        LOGS + "/{dataset}/{composition}/train_judge.log",
    benchmark:
        LOGS + "/{dataset}/{composition}/train_judge.benchmark.tsv"
    conda:
        "../envs/torch.yaml"
    threads: CONFIG.threads
    resources:
        mem_mb=8000,
        torch=1,
        gpu=judge_gpus(),
    shell:
        "python -m workflow_scripts.judge.train_judge --captions {input.captions:q} --images {input.images:q}"
        " --splits {input.splits:q} --results {params.results:q} --settings {params.settings:q}"
        " --seed {params.seed} --threads {params.torch_threads} --cache {params.cache:q}"
        " --folder {output.judge:q} --log {log:q}"
