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


if plan.config.scored and plan.further_judges:

    rule certify:
        """Ask a judge for the right texts of real images: may it judge?"""
        input:
            **plan.inputs(
                "captions", "images", "files", "pairs", "prompts", "variants", "adjectives"
            ),
            members=plan.judge.member_folders,
        output:
            certificate="<dataset>/{composition}/certificates/{judge}.json",
            choices="<dataset>/{composition}/certificates/{judge}.parquet",
        log:
            "<logs>/judge/{composition}/certify.{judge}.log",
        benchmark:
            "<logs>/judge/{composition}/certify.{judge}.benchmark.tsv"
        wildcard_constraints:
            judge=one_of(plan.judge.certified),
        conda:
            "../envs/torch.yaml"
        threads: plan.config.threads
        resources:
            **plan.model_resources(plan.config.judge.device, 8000),
        params:
            **plan.score.encoding_params,
            code=code("judge.certify"),
            kind=plan.judge.kind,
            kind_code=plan.judge.kind_code,
            settings=plan.judge.kind_settings,
            contents=plan.judge.kind_contents,
            results=plan.results_param,
            seed=plan.config.seed,
        script:
            "../workflow_scripts/judge/certify.py"
