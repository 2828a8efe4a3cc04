# human: judgements of people.
# Needs a scored run. Gives tasks with their pictures, projects for Label Studio, and an analysis of
# the answers in the config. Included if the config has a section human.


rule sample_tasks:
    """Sample tasks for people, and write them as Label Studio projects."""
    input:
        **inputs("captions", "images", "files", "pairs", "ranking", "heldout", "swapped", "prompts"),
        manifests=of_each("generated/{generator}/manifest.parquet", generator=SHOWN_GENERATORS),
        generated=of_each("generated/{generator}/images", generator=SHOWN_GENERATORS),
        # All judges score the same images.
        scores=of_each(f"scores/{CONFIG.judges[0]}/{{generator}}", generator=SHOWN_GENERATORS),
        template=LABEL_STUDIO,
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
        **PLACE,
        code=code("human.sample_tasks"),
        generators=SHOWN_GENERATORS,
        sampling=section(CONFIG.human, Sampling),
        consent=literal(CONFIG.human.consent),
        seed=CONFIG.seed,
    script:
        "../workflow_scripts/human/sample_tasks.py"


rule analyze:
    """Summarize the answers, and correlate the scores with them."""
    input:
        tasks="<dataset>/{composition}/human/tasks.parquet",
        answers=CONFIG.human.answers,
        scores=of_each(
            "scores/{judge}/{generator}", judge=CONFIG.judges, generator=SHOWN_GENERATORS
        ),
    output:
        analysis=directory("<dataset>/{composition}/human/analysis"),
        summary="<dataset>/{composition}/human/analysis.json",
    log:
        "<logs>/human/{composition}/analyze.log",
    conda:
        "../envs/base.yaml"
    params:
        code=code("human.analyze"),
        keep=CONFIG.human.keep,
        seed=CONFIG.seed,
    script:
        "../workflow_scripts/human/analyze.py"
