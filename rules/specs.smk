# specs: scores for long captions.
# Needs long captions: descriptions of the sketches, or the user's. Gives, for each seed, a
# stretched CLIP, the same trained with the loss of SPECS and with only its contrastive term, and
# how well each distinguishes right from wrong.

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
        conda:
            "../envs/base.yaml"
        params:
            code=code("specs.describe_images"),
            test=CONFIG.specs.test,
        script:
            "../workflow_scripts/specs/describe_images.py"


if CONFIG.specs.base.epochs:

    rule train_base:
        """Train a CLIP on short captions, as stage judge does."""
        input:
            captions=f"{SPECS}/captions.parquet",
            images="<dataset>/images.parquet",
            folder="<dataset>/images",
            splits=[f"{SPECS}/splits.parquet"],
            pretraining=[],
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
        judge=branch(CONFIG.specs.base.epochs, then=f"{SPECS}/base"),
        files=CONFIG.specs.base.files(),
    output:
        judge=directory(f"{SPECS}/stretched"),
    log:
        "<logs>/specs/specs/{seed}/stretch.log",
    conda:
        "../envs/torch.yaml"
    resources:
        mem_mb=growing(4000),
    params:
        **BASE_FILES,
        code=code("specs.stretch"),
        model=section(CONFIG.specs.base, ModelConfig),
    script:
        "../workflow_scripts/specs/stretch.py"


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
        **PARSING,
        code=code("specs.cut_captions"),
        contents=users_files(LONG_CAPTIONS, LONG_IMAGES),
    script:
        "../workflow_scripts/specs/cut_captions.py"


rule train_specs:
    """Train the stretched CLIP on long captions, with the loss of SPECS or only its contrastive
    term.
    """
    input:
        judge=f"{SPECS}/stretched",
        captions=f"{SPECS}/chunks.parquet",
        images=LONG_IMAGES,
    output:
        judge=directory(f"{SPECS}/{{loss}}"),
    log:
        "<logs>/specs/specs/{seed}/train_specs_{loss}.log",
    benchmark:
        "<logs>/specs/specs/{seed}/train_specs_{loss}.benchmark.tsv"
    conda:
        "../envs/specs.yaml"
    threads: CONFIG.threads * CONFIG.specs.base.gpus
    resources:
        **training_resources(CONFIG.specs.base),
    params:
        **model_params(CONFIG.specs.base.device),
        code=code("specs.train_specs"),
        training=section(CONFIG.specs.training),
        processes=CONFIG.specs.base.gpus,
    script:
        "../workflow_scripts/specs/train_specs.py"


rule intrinsic:
    """Measure how often right details raise the similarity and wrong ones lower it, and compare
    the three judges.
    """
    input:
        judge=f"{SPECS}/specs",
        against=[f"{SPECS}/stretched", f"{SPECS}/contrastive"],
        data=GROWING_CAPTIONS,
        images=GROWING_IMAGES,
    output:
        result=f"{SPECS}/intrinsic.json",
        similarities=f"{SPECS}/similarities.parquet",
    log:
        "<logs>/specs/specs/{seed}/intrinsic.log",
    benchmark:
        "<logs>/specs/specs/{seed}/intrinsic.benchmark.tsv"
    conda:
        "../envs/specs.yaml"
    threads: CONFIG.threads
    resources:
        **model_resources(CONFIG.specs.base.device, 8000, minutes=120),
    params:
        **model_params(CONFIG.specs.base.device),
        code=code("specs.intrinsic"),
        contents=users_files(GROWING_CAPTIONS, GROWING_IMAGES),
    script:
        "../workflow_scripts/specs/intrinsic.py"


rule draw_specs:
    """Draw the effect of training with long captions for each seed, and write its page as one
    file.
    """
    input:
        [f"{FIRST}/specs", f"{FIRST}/stretched"],
        intrinsic=expand(f"{SPECS}/intrinsic.json", seed=CONFIG.specs.seeds),
        templates=page_templates("specs"),
    output:
        measures=of_section("specs", SPECS_FIGURE, figure="measures"),
        table=of_section("specs", "specs.csv", table="measures of each seed"),
        page=of_section("specs", "specs.html", table="the page to read"),
    log:
        "<logs>/specs/draw_specs.log",
    conda:
        "../envs/base.yaml"
    params:
        **PLACE,
        code=code("specs.draw_specs"),
        settings=shown_settings("specs"),
    script:
        "../workflow_scripts/specs/draw_specs.py"
