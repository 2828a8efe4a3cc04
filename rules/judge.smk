# judge: a CLIP fine-tuned on these captions.
# Needs captions, images and splits. Gives a folder with the judge's weights, its model config and its training's log.


if CONFIG.judge.hard_negatives:

    rule make_negatives:
        """Make hard negatives of the captions that the judges learn from."""
        input:
            captions="<dataset>/captions.parquet",
            images="<dataset>/images.parquet",
            pairs=pairs_table,
            ranking="<dataset>/{composition}/ranking.parquet",
            splits="<dataset>/{composition}/splits.parquet",
            adjectives=adjective_lexicons,
            nouns=NOUN_LEXICON,
        output:
            negatives="<dataset>/{composition}/negatives.parquet",
        log:
            "<logs>/judge/{composition}/make_negatives.log",
        benchmark:
            "<logs>/judge/{composition}/make_negatives.benchmark.tsv"
        conda:
            "../envs/base.yaml"
        params:
            code=code("judge.make_negatives"),
            dataset=DATASET,
            train_on=CONFIG.judge.train_on,
            hard_negatives=CONFIG.judge.hard_negatives,
            halves=CONFIG.seeds.halves,
            seed=CONFIG.seeds.split,
        script:
            "../workflow_scripts/judge/make_negatives.py"


rule train_judge:
    """Train the judge on the images that it may see, or take a pretrained one as it is."""
    input:
        captions="<dataset>/captions.parquet",
        images="<dataset>/images.parquet",
        folder="<dataset>/images",
        splits="<dataset>/{composition}/splits.parquet",
        pretraining=branch("pretraining" in SOURCE_TABLES, then="<dataset>/pretraining.parquet"),
        negatives=branch(CONFIG.judge.hard_negatives, then="<dataset>/{composition}/negatives.parquet"),
        files=lambda wildcards: config_of(wildcards).judge.files(),
        # Training waits for the audit, and until it is printed what the splits can measure.
        after=[ancient("<dataset>/{composition}/accepted.json"), ancient("<dataset>/{composition}/widths.json")],
    output:
        judge=directory("<dataset>/{composition}/judges/{judge}"),
    log:
        "<logs>/judge/{composition}/train_judge.{judge}.log",
    benchmark:
        "<logs>/judge/{composition}/train_judge.{judge}.benchmark.tsv"
    # The longest jobs, which most others wait for, start first.
    priority: 1
    conda:
        "../envs/torch.yaml"
    threads: CONFIG.threads * CONFIG.judge.gpus  # of a host: each GPU has a process
    resources:
        **training_resources(CONFIG.judge),
        mem_mb=growing(8000 * CONFIG.judge.gpus),
        runtime=growing(720),
        torch=torch_slots(),
    params:
        **training_params(CONFIG.judge),
        code=code("judge.train_judge"),
        settings=lambda wildcards: section(config_of(wildcards).judge, JudgeTraining),
        contents=lambda wildcards: contents_of(*config_of(wildcards).judge.files()),
        seed=lambda wildcards: int(wildcards.judge),
    script:
        "../workflow_scripts/judge/train_judge.py"
