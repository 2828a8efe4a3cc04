# judge: CLIP models fine-tuned on the captions.
# Needs captions, images and splits. Gives a folder with the judge's weights, its model config and
# its training's log.


rule train_judge:
    """Train the judge on the images that it may see, or use a pretrained one unchanged."""
    input:
        **inputs("captions", "images"),
        splits=of_judged("splits.parquet"),
        folder="<dataset>/images",
        pretraining=branch("pretraining" in SOURCE_TABLES, then="<dataset>/pretraining.parquet"),
        files=lambda wildcards: judge_of(wildcards).files(),
        # Training waits for the audit and for the estimated widths of intervals.
        after=ancient(of_judged("accepted.json", "widths.json")),
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
    threads: CONFIG.threads * CONFIG.judge.gpus  # of a host: each GPU has a process
    resources:
        **training_resources(CONFIG.judge),
    params:
        **training_params(CONFIG.judge),
        code=code("judge.train_judge"),
        settings=lambda wildcards: section(judge_of(wildcards), JudgeTraining),
        contents=lambda wildcards: contents_of(*judge_of(wildcards).files()),
        seed=lambda wildcards: int(wildcards.judge),
    script:
        "../workflow_scripts/judge/train_judge.py"
