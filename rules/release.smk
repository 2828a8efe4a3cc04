# release: everything that is needed to score and submit a model.
# Needs the splits, the prompts, the judges and the scores of the control generators. Gives a
# folder, which is made only on demand: `make release`.

if plan.config.scored:

    rule make_release:
        """Write a release: a versioned folder with which models can be scored and submitted."""
        input:
            captions="<dataset>/captions.parquet",
            images="<dataset>/images.parquet",
            files="<dataset>/images",
            artifacts=plan.released,
            judges=plan.judge.folders,
            bias_checks=plan.score.bias_checks,
            scores=plan.score.scores,
            choices=plan.score.choices,
            certificates=plan.score.certificates,
            templates=page_templates("release"),
        output:
            release=directory("<results>/release"),
        log:
            "<logs>/release/make_release.log",
        benchmark:
            "<logs>/release/make_release.benchmark.tsv"
        conda:
            "../envs/torch.yaml"
        threads: plan.config.threads
        resources:
            **plan.model_resources(plan.config.judge.device, 8000),
        params:
            **plan.report.table_params,
            **plan.seen_params,
            **plan.score.encoding_params,
            code=code("release.make_release"),
            release=section(plan.config.release),
            scoring=plan.score.section,
            controls=plan.generate.controls,
            further=plan.report.further_kinds,
            leading=plan.config.leading,
            prompts=plan.config.split.prompts,
            seed=plan.config.seed,
        script:
            "../workflow_scripts/release/make_release.py"
