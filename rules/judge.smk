# judge: CLIP models fine-tuned on the captions.
# Needs captions, images and splits. Gives a folder with the judge's weights, its model config and
# its training's log.


rule train_judge:
    """Train the judge on the images that it may see, or use a pretrained one unchanged."""
    input:
        **plan.inputs("captions", "images"),
        splits=plan.of_judged("splits.parquet"),
        folder="<dataset>/images",
        pretraining=plan.source.tables.get("pretraining", []),
        files=plan.judge.files,
    output:
        judge=directory("<judged>/judges/{judge}"),
    log:
        "<training>/train_judge.{judge}.log",
    benchmark:
        "<training>/train_judge.{judge}.benchmark.tsv"
    # The longest jobs, on which most others depend, start first.
    priority: 1
    conda:
        "../envs/torch.yaml"
    threads: plan.config.threads * plan.config.judge.gpus  # of a host: each GPU has a process
    resources:
        **plan.training_resources(plan.config.judge),
    params:
        **plan.training_params(plan.config.judge),
        code=code("judge.train_judge"),
        settings=plan.judge.settings,
        contents=plan.judge.contents,
        seed=plan.judge.seed,
    script:
        "../workflow_scripts/judge/train_judge.py"
