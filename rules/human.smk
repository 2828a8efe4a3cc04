# human: judgements of people.
# Needs a scored run. Gives tasks with their pictures, projects for Label Studio, and an analysis of
# the answers in the config. Included if the config has a section human.


rule sample_tasks:
    """Sample tasks for people, and write them as Label Studio projects."""
    input:
        **plan.inputs(
            "captions", "images", "files", "pairs", "ranking", "heldout", "swapped", "prompts"
        ),
        manifests=plan.manifests(plan.human.generators),
        generated=plan.made_images(plan.human.generators),
        # All judges score the same images.
        scores=plan.score_folders(plan.judges[:1], plan.human.generators),
        template=packaged("compclip/human/templates/label_studio.xml.j2"),
    output:
        tasks="<dataset>/{composition}/human/tasks.parquet",
        pictures=directory("<dataset>/{composition}/human/pictures"),
        label_studio=directory("<dataset>/{composition}/human/label_studio"),
        summary="<dataset>/{composition}/human/tasks.json",
    log:
        "<logs>/human/{composition}/sample_tasks.log",
    conda:
        "../envs/base.yaml"
    params:
        **plan.location_params,
        code=code("human.sample_tasks"),
        generators=plan.human.generators,
        sampling=plan.human.sampling,
        consent=literal(plan.human.config.consent),
        seed=plan.config.seed,
    script:
        "../workflow_scripts/human/sample_tasks.py"


rule analyze:
    """Summarize the answers, and correlate the scores with them."""
    input:
        tasks="<dataset>/{composition}/human/tasks.parquet",
        answers=plan.human.config.answers,
        scores=plan.score_folders(plan.judges, plan.human.generators),
    output:
        analysis=directory("<dataset>/{composition}/human/analysis"),
        summary="<dataset>/{composition}/human/analysis.json",
    log:
        "<logs>/human/{composition}/analyze.log",
    conda:
        "../envs/base.yaml"
    params:
        code=code("human.analyze"),
        keep=plan.human.config.keep,
        seed=plan.config.seed,
    script:
        "../workflow_scripts/human/analyze.py"
