# score: does the judge retrieve the caption?
# Needs the judge, the prompts and the generators' images. Gives a table of scores for each split
# that a generator serves, with a summary, and the bias check of each judge; for sketches the same
# scores by the oracle.


if plan.generators:

    rule score_images:
        """Score the images of all generators by each judge, and measure the judge's bias."""
        input:
            **plan.inputs(
                "captions",
                "images",
                "files",
                "pairs",
                "ranking",
                "heldout",
                "splits",
                "swapped",
                "prompts",
                "variants",
            ),
            manifests=plan.manifests(plan.generators),
            generated=plan.made_images(plan.generators),
            judges=plan.judge.of_composition,
        output:
            scores=directory(plan.score_folders(plan.judges, plan.generators)),
            bias=plan.score.bias_checks_of_composition,
        log:
            "<logs>/score/{composition}/score_images.log",
        benchmark:
            "<logs>/score/{composition}/score_images.benchmark.tsv"
        priority: 1  # the longest jobs of their stage begin first
        conda:
            "../envs/torch.yaml"
        threads: plan.config.threads * plan.score.processes(workflow.resource_settings.cores)
        resources:
            **plan.model_resources(
                plan.config.judge.device,
                plan.score.memory(workflow.resource_settings.cores),
                minutes=plan.score.minutes,
            ),
        params:
            **plan.score.params,
            **plan.score.encoding_params,
            code=code("score.score_images"),
            splits_by_generator=plan.score.served_splits,
            judges=plan.judges,
            faithful_generator=plan.score.faithful_generator,
            max_bias=undecisive(plan.config.score.max_bias),
        script:
            "../workflow_scripts/score/score_images.py"

    rule choose_texts:
        """Ask a further judge to choose each prompt's adjective, and the prompt, for all images."""
        input:
            **plan.inputs("captions", "images", "files", "splits", "swapped", "prompts", "variants"),
            manifests=plan.manifests(plan.generators),
            generated=plan.made_images(plan.generators),
            members=plan.judge.member_folders,
        output:
            choices="<dataset>/{composition}/choices/{judge}.parquet",
        log:
            "<logs>/score/{composition}/choose_texts.{judge}.log",
        benchmark:
            "<logs>/score/{composition}/choose_texts.{judge}.benchmark.tsv"
        wildcard_constraints:
            judge=one_of(plan.further_judges),
        conda:
            "../envs/torch.yaml"
        threads: plan.config.threads
        resources:
            **plan.model_resources(plan.config.judge.device, 8000, minutes=plan.score.minutes),
        params:
            **plan.score.encoding_params,
            **plan.seen_params,
            code=code("score.choose_texts"),
            kind=plan.judge.kind,
            kind_code=plan.judge.kind_code,
            settings=plan.judge.kind_settings,
            contents=plan.judge.kind_contents,
            splits_by_generator=plan.score.served_splits,
            results=plan.results_param,
            seed=plan.config.seed,
        script:
            "../workflow_scripts/score/choose_texts.py"

    rule list_options:
        """Write what a judge of kind table is asked, for another tool."""
        input:
            **plan.inputs("captions", "images", "splits", "swapped", "prompts", "variants"),
            manifests=plan.manifests(plan.generators),
            generated=plan.made_images(plan.generators),
        output:
            options="<dataset>/{composition}/options.jsonl",
        log:
            "<logs>/score/{composition}/list_options.log",
        benchmark:
            "<logs>/score/{composition}/list_options.benchmark.tsv"
        conda:
            "../envs/base.yaml"
        params:
            **plan.seen_params,
            code=code("score.list_options"),
            splits_by_generator=plan.score.served_splits,
            results=plan.results_param,
            seed=plan.config.seed,
        script:
            "../workflow_scripts/score/list_options.py"


if plan.score.oracle_generators:

    rule score_oracle:
        """Score the drawn scenes of all generators by the oracle, which knows what was drawn."""
        input:
            **plan.inputs("captions", "images", "splits", "swapped", "prompts", "variants"),
            scenes="<dataset>/scenes.parquet",
            facts="<dataset>/facts.parquet",
            manifests=plan.manifests(plan.score.oracle_generators),
            drawn=plan.score.scenes,
        output:
            scores=directory(plan.score_folders(["oracle"], plan.score.oracle_generators)),
        log:
            "<logs>/score/{composition}/score_oracle.log",
        benchmark:
            "<logs>/score/{composition}/score_oracle.benchmark.tsv"
        conda:
            "../envs/base.yaml"
        params:
            **plan.score.params,
            code=code("score.score_oracle"),
            splits_by_generator=plan.score.oracle_splits,
        script:
            "../workflow_scripts/score/score_oracle.py"


rule score_fid:
    """Compare a generator's images as a whole with the real images of each split."""
    input:
        **plan.inputs("images", "files", "splits", "prompts"),
        manifest="<dataset>/{composition}/generated/{generator}/manifest.parquet",
        made="<dataset>/{composition}/generated/{generator}/images",
    output:
        fid="<dataset>/{composition}/fid/{generator}.json",
    log:
        "<logs>/score/{composition}/score_fid.{generator}.log",
    benchmark:
        "<logs>/score/{composition}/score_fid.{generator}.benchmark.tsv"
    group:
        "fid"
    conda:
        "../envs/fid.yaml"
    threads: plan.config.threads
    resources:
        **plan.model_resources(plan.config.judge.device, 6000),
    params:
        **plan.model_params(plan.config.judge.device),
        code=code("score.score_fid"),
        serves=plan.score.served,
        weights=literal(plan.score.fid_weights),
        balance=section(plan.config.score.balance),
        seed=plan.config.seed,
        results=plan.results_param,
    script:
        "../workflow_scripts/score/score_fid.py"
