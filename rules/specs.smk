# specs: scores for long captions.
# Needs long captions: descriptions of the sketches, or the user's. Gives, for each seed, a stretched CLIP, the same
# trained with the loss of SPECS and by its contrastive term alone, and how well each tells right details from wrong.

STRETCHED_FROM, STRETCH_SETTINGS = specs_base()
BASE_FILES = {"contents": contents(*CONFIG.specs.base.files())}
LONG_CAPTIONS, LONG_IMAGES, GROWING_CAPTIONS, GROWING_IMAGES = long_captions()


wildcard_constraints:
    seed=r"\d+",
    loss="specs|contrastive",


if CONFIG.specs.data is None:

    rule describe_images:
        """Describe the sketches at length, and divide them into training and test images."""
        input:
            scenes="<dataset>/scenes.parquet",
            images="<dataset>/images.parquet",
        output:
            examples=f"{SPECS}/examples.parquet",
            steps=f"{SPECS}/steps.parquet",
            captions=f"{SPECS}/captions.parquet",
            splits=f"{SPECS}/splits.parquet",
        log:
            "<logs>/specs/specs/{seed}/describe_images.log",
        benchmark:
            "<logs>/specs/specs/{seed}/describe_images.benchmark.tsv"
        conda:
            "../envs/base.yaml"
        params:
            **step("specs.describe_images"),
        shell:
            "python -m {params.step} --log {log:q}"


if CONFIG.specs.base.epochs:

    rule train_base:
        """Train a CLIP on short captions, as stage judge does."""
        input:
            captions=f"{SPECS}/captions.parquet",
            images="<dataset>/images.parquet",
            folder="<dataset>/images",
            splits=f"{SPECS}/splits.parquet",
            pretraining=[],
            negatives=[],
            files=CONFIG.specs.base.files(),
        output:
            judge=directory(f"{SPECS}/base"),
        log:
            "<logs>/specs/specs/{seed}/train_base.log",
        benchmark:
            "<logs>/specs/specs/{seed}/train_base.benchmark.tsv"
        conda:
            "../envs/torch.yaml"
        threads: CONFIG.threads * CONFIG.specs.base.gpus
        resources:
            **training_resources(CONFIG.specs.base),
            mem_mb=growing(8000 * CONFIG.specs.base.gpus),
            runtime=growing(720),
            torch=torch_slots(),
        params:
            **BASE_FILES,
            **training_params(CONFIG.specs.base),
            code=code("judge.train_judge"),
            settings=section(CONFIG.specs.base),
            seed=lambda wildcards: int(wildcards.seed),
        script:
            "../workflow_scripts/judge/train_judge.py"


rule stretch:
    """Stretch the CLIP's positions, so that it reads long captions."""
    input:
        STRETCHED_FROM,
    output:
        output=directory(f"{SPECS}/stretched"),
    log:
        "<logs>/specs/specs/{seed}/stretch.log",
    benchmark:
        "<logs>/specs/specs/{seed}/stretch.benchmark.tsv"
    conda:
        "../envs/torch.yaml"
    resources:
        mem_mb=growing(4000),
    params:
        **step("specs.stretch", **STRETCH_SETTINGS, also=BASE_FILES),
    shell:
        "python -m {params.step} --log {log:q}"


rule cut_captions:
    """Read the long captions: which are usable, and where their chunks end."""
    input:
        examples=LONG_CAPTIONS,
        images=LONG_IMAGES,
    output:
        captions=f"{SPECS}/chunks.parquet",
    log:
        "<logs>/specs/specs/{seed}/cut_captions.log",
    benchmark:
        "<logs>/specs/specs/{seed}/cut_captions.benchmark.tsv"
    conda:
        "../envs/specs.yaml"
    threads: CONFIG.threads
    resources:
        runtime=growing(60),
    params:
        **step("specs.cut_captions", also=users_files(LONG_CAPTIONS, LONG_IMAGES)),
    shell:
        "python -m {params.step} --processes {threads} --log {log:q}"


rule train_specs:
    """Train the stretched CLIP on long captions, with the loss of SPECS or by its contrastive term alone."""
    input:
        judge=f"{SPECS}/stretched",
        captions=f"{SPECS}/chunks.parquet",
        images=LONG_IMAGES,
    output:
        output=directory(f"{SPECS}/{{loss}}"),
    log:
        "<logs>/specs/specs/{seed}/train_specs_{loss}.log",
    benchmark:
        "<logs>/specs/specs/{seed}/train_specs_{loss}.benchmark.tsv"
    conda:
        "../envs/specs.yaml"
    threads: CONFIG.threads * CONFIG.specs.base.gpus
    resources:
        **training_resources(CONFIG.specs.base),
        mem_mb=growing(8000 * CONFIG.specs.base.gpus),
        runtime=growing(720),
        torch=torch_slots(),
    params:
        **step("specs.train_specs"),
        launch=launch_command(CONFIG.specs.base.gpus),
    shell:
        "{params.launch} {params.step} --log {log:q}"


rule intrinsic:
    """Measure how often right details raise the similarity and wrong ones lower it, and compare the three judges."""
    input:
        judge=f"{SPECS}/specs",
        against=[f"{SPECS}/stretched", f"{SPECS}/contrastive"],
        data=GROWING_CAPTIONS,
        images=GROWING_IMAGES,
    output:
        output=f"{SPECS}/intrinsic.json",
        similarities=f"{SPECS}/similarities.parquet",
    log:
        "<logs>/specs/specs/{seed}/intrinsic.log",
    benchmark:
        "<logs>/specs/specs/{seed}/intrinsic.benchmark.tsv"
    conda:
        "../envs/specs.yaml"
    threads: CONFIG.threads
    resources:
        mem_mb=growing(8000),
        runtime=growing(120),
        torch=torch_slots(),
        gpu=gpu_of(CONFIG.specs.base.device),
    params:
        **step("specs.intrinsic", also=users_files(GROWING_CAPTIONS, GROWING_IMAGES)),
    shell:
        "python -m {params.step} --log {log:q}"


rule draw_specs:
    """Draw what training with long captions changed, for each seed, and write its page: one file."""
    input:
        [f"{FIRST}/specs", f"{FIRST}/stretched"],
        intrinsic=expand(f"{SPECS}/intrinsic.json", seed=CONFIG.specs.seeds),
        similarities=f"{FIRST}/similarities.parquet",
        templates=page_templates("specs"),
    output:
        **{name: of_section("specs", file, figure=name) for name, file in SPECS_FIGURES.items()},
        table=of_section("specs", "specs.csv", table="measures of each seed"),
        page=of_section("specs", "specs.html", table="the page to read"),
    log:
        "<logs>/specs/draw_specs.log",
    benchmark:
        "<logs>/specs/draw_specs.benchmark.tsv"
    conda:
        "../envs/base.yaml"
    params:
        **step("specs.draw_specs", settings=shown_settings("specs")),
    shell:
        "python -m {params.step} --log {log:q}"
