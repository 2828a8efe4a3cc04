# compun: compound nouns.
# Needs a list of compounds with three images of each, the user's or drawn here. Gives which of the three each model
# chooses, by every prompt, accuracies and tests, and pages to ask people the same. Included if the config has compun.

COMPUN = "<dataset>/compun"


wildcard_constraints:
    kind="captions|descriptions",
    training="|".join(TRAININGS),


if drawn_compounds():

    rule draw_compounds:
        """Draw compounds, their images and texts about them, and pictures to train small CLIPs on."""
        output:
            listed=f"{COMPUN}/drawn/list.csv",
            images=directory(f"{COMPUN}/drawn/images"),
            captions=f"{COMPUN}/drawn/captions.json",
            descriptions=f"{COMPUN}/drawn/descriptions.json",
            summary=f"{COMPUN}/drawn/drawn.json",
            pictures=directory(f"{COMPUN}/drawn/training/images"),
            training=expand("<dataset>/compun/drawn/training/{name}.parquet", name=["captions", "images", *TRAININGS]),
        log:
            "<logs>/compun/compun/draw_compounds.log",
        benchmark:
            "<logs>/compun/compun/draw_compounds.benchmark.tsv"
        conda:
            "../envs/base.yaml"
        params:
            **step("compun.draw_compounds", folder=lambda wildcards: on_disk(f"{COMPUN_FOLDER}/drawn")),
        shell:
            "python -m {params.step} --log {log:q}"

    rule train_small_clip:
        """Train a small CLIP on drawn pictures, with the tested compounds or without, as stage judge does."""
        input:
            captions=f"{COMPUN}/drawn/training/captions.parquet",
            images=f"{COMPUN}/drawn/training/images.parquet",
            folder=f"{COMPUN}/drawn/training/images",
            splits=f"{COMPUN}/drawn/training/{{training}}.parquet",
            files=of_project(*CONFIG.compun.judge.files()),
        output:
            judge=directory(f"{COMPUN}/judges/{{training}}"),
        log:
            "<logs>/compun/compun/train_small_clip_{training}.log",
        benchmark:
            "<logs>/compun/compun/train_small_clip_{training}.benchmark.tsv"
        conda:
            "../envs/torch.yaml"
        threads: CONFIG.threads * CONFIG.compun.judge.gpus
        resources:
            **training_resources(CONFIG.compun.judge),
            mem_mb=growing(4000 * CONFIG.compun.judge.gpus),
            runtime=growing(120),
            torch=torch_slots(),
        params:
            **step(
                "judge.train_judge",
                settings=CONFIG.compun.judge.model_dump(mode="json"),
                also={"contents": contents(*CONFIG.compun.judge.files())},
            ),
            launch=launch_command(CONFIG.compun.judge.gpus),
        shell:
            "{params.launch} {params.step} --log {log:q}"


rule load_compounds:
    """Read the compounds and the three images of each; count the incomplete ones."""
    input:
        compound_files,
    output:
        compounds=f"{COMPUN}/compounds.parquet",
        images=f"{COMPUN}/images.parquet",
        files=directory(f"{COMPUN}/images"),
        summary=f"{COMPUN}/compounds.json",
    log:
        "<logs>/compun/compun/load_compounds.log",
    benchmark:
        "<logs>/compun/compun/load_compounds.benchmark.tsv"
    conda:
        "../envs/compun.yaml"
    resources:
        runtime=growing(60),
    params:
        **step("compun.load_compounds", origin=compound_origin, also={"contents": compound_contents}),
    shell:
        "python -m {params.step} --log {log:q}"


rule ask_captions:
    """Collect example captions or descriptions: from a file, and from a language model for what it lacks."""
    input:
        compounds=f"{COMPUN}/compounds.parquet",
        file=text_file,
    output:
        texts=f"{COMPUN}/{{kind}}.json",
        summary=f"{COMPUN}/{{kind}}_summary.json",
    log:
        "<logs>/compun/compun/ask_captions_{kind}.log",
    benchmark:
        "<logs>/compun/compun/ask_captions_{kind}.benchmark.tsv"
    conda:
        "../envs/compun.yaml"
    resources:
        runtime=growing(240),
    params:
        **step("compun.ask_captions", ask=asking, also={"contents": text_contents}),
    shell:
        "python -m {params.step} --log {log:q}"


rule classify:
    """Ask every model, by every prompt, which of its three images shows a compound."""
    input:
        compounds=f"{COMPUN}/compounds.parquet",
        images=f"{COMPUN}/images.parquet",
        folder=f"{COMPUN}/images",
        captions=text_table("captions"),
        descriptions=text_table("descriptions"),
        files=model_files,
    output:
        choices=directory(f"{COMPUN}/choices"),
    log:
        "<logs>/compun/compun/classify.log",
    benchmark:
        "<logs>/compun/compun/classify.benchmark.tsv"
    conda:
        "../envs/compun.yaml"
    threads: CONFIG.threads
    resources:
        mem_mb=growing(8000),
        runtime=growing(120),
        torch=torch_slots(),
        gpu=gpu_of(CONFIG.compun.device),
    params:
        **step(
            "compun.classify",
            models=asked_models,
            also={"contents": contents(*(path for model in CONFIG.compun.models for path in model.places()))},
        ),
    shell:
        "python -m {params.step} --log {log:q}"


rule analyze_choices:
    """Compute how often each model is right, by prompt, and test the differences."""
    input:
        compounds=f"{COMPUN}/compounds.parquet",
        choices=f"{COMPUN}/choices",
        people=[f"{COMPUN}/human/people.json"] if CONFIG.compun.human and CONFIG.compun.human.answers else [],
    output:
        analysis=directory(f"{COMPUN}/analysis"),
    log:
        "<logs>/compun/compun/analyze_choices.log",
    benchmark:
        "<logs>/compun/compun/analyze_choices.benchmark.tsv"
    conda:
        "../envs/base.yaml"
    params:
        **step("compun.analyze_choices"),
    shell:
        "python -m {params.step} --log {log:q}"


if CONFIG.compun.human:

    rule sample_compun_tasks:
        """Make a task for people of each compound, and write them as Label Studio projects."""
        input:
            compounds=f"{COMPUN}/compounds.parquet",
            images=f"{COMPUN}/images.parquet",
            folder=f"{COMPUN}/images",
            template=label_studio_template(),
        output:
            tasks=f"{COMPUN}/human/tasks.parquet",
            pictures=directory(f"{COMPUN}/human/pictures"),
            label_studio=directory(f"{COMPUN}/human/label_studio"),
            summary=f"{COMPUN}/human/tasks.json",
        log:
            "<logs>/compun/compun/sample_compun_tasks.log",
        benchmark:
            "<logs>/compun/compun/sample_compun_tasks.benchmark.tsv"
        conda:
            "../envs/base.yaml"
        params:
            **step("compun.sample_compun_tasks"),
        shell:
            "python -m {params.step} --log {log:q}"


if CONFIG.compun.human and CONFIG.compun.human.answers:

    rule analyze_people:
        """Compute how often people are right and how far they agree, and list the compounds that confuse them."""
        input:
            tasks=f"{COMPUN}/human/tasks.parquet",
            answers=of_project(*CONFIG.compun.human.answers),
        output:
            people=f"{COMPUN}/human/people.json",
            by_compound=f"{COMPUN}/human/items.csv",
            by_worker=f"{COMPUN}/human/workers.csv",
        log:
            "<logs>/compun/compun/analyze_people.log",
        benchmark:
            "<logs>/compun/compun/analyze_people.benchmark.tsv"
        conda:
            "../envs/base.yaml"
        params:
            **step("compun.analyze_people"),
        shell:
            "python -m {params.step} --log {log:q}"


rule draw_compun:
    """Draw how often each model is right about compound nouns, by prompt and by kind, next to the paper's figures."""
    input:
        analysis=f"{COMPUN_FOLDER}/analysis",
    output:
        **{name: of_section("compun", file, figure=name) for name, file in COMPUN_FIGURES.items()},
        text="<results>/compun.md",
    log:
        "<logs>/compun/draw_compun.log",
    benchmark:
        "<logs>/compun/draw_compun.benchmark.tsv"
    conda:
        "../envs/base.yaml"
    params:
        **step("compun.draw_compun"),
    shell:
        "python -m {params.step} --log {log:q}"


rule make_compun_page:
    """Write the page about compound nouns: one file."""
    input:
        compun_page_reads(),
        templates=page_templates("compun"),
    output:
        page=of_section("compun", "compun.html", table="the page to read"),
    log:
        "<logs>/compun/make_compun_page.log",
    benchmark:
        "<logs>/compun/make_compun_page.benchmark.tsv"
    conda:
        "../envs/base.yaml"
    params:
        **step("compun.make_compun_page", settings=shown_settings("compun")),
    shell:
        "python -m {params.step} --log {log:q}"
