# compun: compound nouns.
# Needs a list of compounds with three images of each, the user's or drawn ones. Gives each model's
# choice among the three, by every prompt, accuracies and tests, and the same tasks for people.
# Included if the config has compun.

if DRAWN:

    rule draw_compounds:
        """Draw compounds, their images and texts about them, and training pictures for small
        CLIPs.
        """
        output:
            listed=f"{COMPUN}/drawn/list.csv",
            images=directory(f"{COMPUN}/drawn/images"),
            captions=f"{COMPUN}/drawn/captions.json",
            descriptions=f"{COMPUN}/drawn/descriptions.json",
            pictures=directory(f"{COMPUN}/drawn/training/images"),
            training=expand(
                "<dataset>/compun/drawn/training/{name}.parquet",
                name=["captions", "images", *TRAININGS],
            ),
        log:
            "<logs>/compun/compun/draw_compounds.log",
        conda:
            "../envs/base.yaml"
        params:
            code=code("compun.draw_compounds"),
            drawn=section(CONFIG.compun.drawn),
            seed=CONFIG.seed,
            results=PLACE["results"],
        script:
            "../workflow_scripts/compun/draw_compounds.py"

    rule train_small_clip:
        """Train a small CLIP on drawn pictures, with the tested compounds or without, as stage
        judge does.
        """
        input:
            captions=f"{COMPUN}/drawn/training/captions.parquet",
            images=f"{COMPUN}/drawn/training/images.parquet",
            folder=f"{COMPUN}/drawn/training/images",
            splits=[f"{COMPUN}/drawn/training/{{training}}.parquet"],
            pretraining=[],
        output:
            judge=directory(f"{COMPUN}/judges/{{training}}"),
        log:
            "<logs>/compun/compun/train_small_clip_{training}.log",
        benchmark:
            "<logs>/compun/compun/train_small_clip_{training}.benchmark.tsv"
        conda:
            "../envs/torch.yaml"
        threads: CONFIG.threads
        resources:
            **model_resources(CONFIG.compun.device, 4000, minutes=120),
        params:
            **training_params(CONFIG.compun.judge),
            code=code("judge.train_judge"),
            settings=section(CONFIG.compun.judge),
            seed=CONFIG.seed,
        script:
            "../workflow_scripts/judge/train_judge.py"


rule load_compounds:
    """Read the compounds and the three images of each; count the incomplete ones."""
    input:
        file=USER_COMPOUNDS[0] if USER_COMPOUNDS else f"{COMPUN}/drawn/list.csv",
        source=USER_COMPOUNDS[1] if USER_COMPOUNDS else f"{COMPUN}/drawn/images",
    output:
        compounds=f"{COMPUN}/compounds.parquet",
        images=f"{COMPUN}/images.parquet",
        files=directory(f"{COMPUN}/images"),
        summary=f"{COMPUN}/compounds.json",
    log:
        "<logs>/compun/compun/load_compounds.log",
    conda:
        "../envs/base.yaml"
    params:
        code=code("compun.load_compounds"),
        contents=contents(*USER_COMPOUNDS),
    script:
        "../workflow_scripts/compun/load_compounds.py"


rule classify:
    """Ask every model, by every prompt, which of its three images shows a compound."""
    input:
        **COMPOUNDS,
        captions=text_file("captions"),
        descriptions=text_file("descriptions"),
        files=[*SMALL_CLIPS.values(), *USER_MODELS],
    output:
        choices=directory(f"{COMPUN}/choices"),
    log:
        "<logs>/compun/compun/classify.log",
    benchmark:
        "<logs>/compun/compun/classify.benchmark.tsv"
    conda:
        "../envs/torch.yaml"
    threads: CONFIG.threads
    resources:
        **model_resources(CONFIG.compun.device, 8000, minutes=120),
    params:
        **model_params(CONFIG.compun.device),
        code=code("compun.classify"),
        contents=contents(*USER_TEXTS, *USER_MODELS),
        models=ASKED_MODELS,
    script:
        "../workflow_scripts/compun/classify.py"


rule analyze_choices:
    """Compute how often each model is right, by prompt, and test the differences."""
    input:
        compounds=f"{COMPUN}/compounds.parquet",
        choices=f"{COMPUN}/choices",
        people=branch(ANSWERS, then=f"{COMPUN}/human/people.json"),
    output:
        analysis=f"{COMPUN}/analysis.csv",
    log:
        "<logs>/compun/compun/analyze_choices.log",
    conda:
        "../envs/base.yaml"
    params:
        code=code("compun.analyze_choices"),
        seed=CONFIG.seed,
    script:
        "../workflow_scripts/compun/analyze_choices.py"


if CONFIG.compun.human:

    rule sample_compun_tasks:
        """Make a task for people for each compound, and write the tasks as Label Studio
        projects.
        """
        input:
            **COMPOUNDS,
            template=LABEL_STUDIO,
        output:
            tasks=f"{COMPUN}/human/tasks.parquet",
            pictures=directory(f"{COMPUN}/human/pictures"),
            label_studio=directory(f"{COMPUN}/human/label_studio"),
            summary=f"{COMPUN}/human/tasks.json",
        log:
            "<logs>/compun/compun/sample_compun_tasks.log",
        conda:
            "../envs/base.yaml"
        params:
            code=code("compun.sample_compun_tasks"),
            consent=literal(CONFIG.compun.human.consent),
            seed=CONFIG.seed,
        script:
            "../workflow_scripts/compun/sample_compun_tasks.py"


if ANSWERS:

    rule analyze_people:
        """Compute how often people are right, in total and by compound, and how much they agree."""
        input:
            tasks=f"{COMPUN}/human/tasks.parquet",
            answers=ANSWERS,
        output:
            people=f"{COMPUN}/human/people.json",
            by_compound=f"{COMPUN}/human/items.csv",
            by_worker=f"{COMPUN}/human/workers.csv",
        log:
            "<logs>/compun/compun/analyze_people.log",
        conda:
            "../envs/base.yaml"
        params:
            code=code("compun.analyze_people"),
            keep=CONFIG.compun.human.keep,
            seed=CONFIG.seed,
        script:
            "../workflow_scripts/compun/analyze_people.py"


rule draw_compun:
    """Draw how often each model is right about compound nouns, next to the paper's figures, and
    write the page.
    """
    input:
        COMPUN_RESULTS,
        analysis=f"{COMPUN}/analysis.csv",
        templates=page_templates("compun"),
    output:
        **{name: of_section("compun", file, figure=name) for name, file in COMPUN_FIGURES.items()},
        text="<results>/compun.md",
        page=of_section("compun", "compun.html", table="the page to read"),
    log:
        "<logs>/compun/draw_compun.log",
    conda:
        "../envs/base.yaml"
    params:
        **PLACE,
        code=code("compun.draw_compun"),
        settings=shown_settings("compun"),
    script:
        "../workflow_scripts/compun/draw_compun.py"
