# specs: scores for long captions.
# Needs long captions: descriptions of the sketches, or the user's. Gives, for each seed, a
# stretched CLIP, the same trained with the loss of SPECS and with only its contrastive term, and
# how well each distinguishes right from wrong.

LONG = plan.specs.long_captions
if plan.specs.config.data:
    # They are on this machine, also if the results are stored elsewhere.
    LONG = LONG._make(map(local, LONG))


wildcard_constraints:
    seed=r"\d+",
    loss="specs|contrastive",


if plan.specs.config.data is None:

    rule describe_images:
        """Describe the sketches at length, and divide them into training and test images."""
        input:
            scenes="<dataset>/scenes.parquet",
            images="<dataset>/images.parquet",
        output:
            examples="<dataset>/specs/{seed}/examples.parquet",
            steps="<dataset>/specs/{seed}/steps.parquet",
            captions="<dataset>/specs/{seed}/captions.parquet",
            splits="<dataset>/specs/{seed}/splits.parquet",
        log:
            "<logs>/specs/specs/{seed}/describe_images.log",
        conda:
            "../envs/base.yaml"
        params:
            code=code("specs.describe_images"),
            test=plan.specs.config.test,
        script:
            "../workflow_scripts/specs/describe_images.py"


if plan.specs.config.base.epochs:

    rule train_judge_for_specs:
        """Train a CLIP on short captions, as stage judge does."""
        input:
            captions="<dataset>/specs/{seed}/captions.parquet",
            images="<dataset>/images.parquet",
            folder="<dataset>/images",
            splits=["<dataset>/specs/{seed}/splits.parquet"],
            pretraining=[],
            files=plan.specs.model_files,
        output:
            judge=directory("<dataset>/specs/{seed}/base"),
        log:
            "<logs>/specs/specs/{seed}/train_judge_for_specs.log",
        benchmark:
            "<logs>/specs/specs/{seed}/train_judge_for_specs.benchmark.tsv"
        conda:
            "../envs/torch.yaml"
        threads: plan.config.threads * plan.specs.config.base.gpus
        resources:
            **plan.training_resources(plan.specs.config.base),
        params:
            **plan.training_params(plan.specs.config.base),
            contents=plan.contents(*plan.specs.model_files),
            code=code("judge.train_judge"),
            settings=section(plan.specs.config.base),
            seed=seed_in_path,
        script:
            "../workflow_scripts/judge/train_judge.py"


rule stretch:
    """Stretch the CLIP's positions, so that it reads long captions."""
    input:
        judge=branch(plan.specs.config.base.epochs, then="<dataset>/specs/{seed}/base"),
        files=plan.specs.model_files,
    output:
        judge=directory("<dataset>/specs/{seed}/stretched"),
    log:
        "<logs>/specs/specs/{seed}/stretch.log",
    conda:
        "../envs/torch.yaml"
    resources:
        mem_mb=growing(4000),
    params:
        contents=plan.contents(*plan.specs.model_files),
        code=code("specs.stretch"),
        model=plan.specs.model,
    script:
        "../workflow_scripts/specs/stretch.py"


rule chunk_captions:
    """Read the long captions: which are usable, and where their chunks end."""
    input:
        examples=LONG.captions,
        images=LONG.images,
    output:
        captions="<dataset>/specs/{seed}/chunks.parquet",
    log:
        "<logs>/specs/specs/{seed}/chunk_captions.log",
    benchmark:
        "<logs>/specs/specs/{seed}/chunk_captions.benchmark.tsv"
    conda:
        "../envs/specs.yaml"
    threads: plan.config.threads
    resources:
        runtime=growing(60),
    params:
        **plan.parsing_params,
        code=code("specs.chunk_captions"),
        contents=plan.contents(LONG.captions, LONG.images) if plan.specs.config.data else "",
    script:
        "../workflow_scripts/specs/chunk_captions.py"


rule train_specs:
    """Train the stretched CLIP on long captions, with the loss of SPECS or only its contrastive
    term.
    """
    input:
        judge="<dataset>/specs/{seed}/stretched",
        captions="<dataset>/specs/{seed}/chunks.parquet",
        images=LONG.images,
    output:
        judge=directory("<dataset>/specs/{seed}/{loss}"),
    log:
        "<logs>/specs/specs/{seed}/train_specs_{loss}.log",
    benchmark:
        "<logs>/specs/specs/{seed}/train_specs_{loss}.benchmark.tsv"
    conda:
        "../envs/specs.yaml"
    threads: plan.config.threads * plan.specs.config.base.gpus
    resources:
        **plan.training_resources(plan.specs.config.base),
    params:
        **plan.model_params(plan.specs.config.base.device),
        code=code("specs.train_specs"),
        training=section(plan.specs.config.training),
        processes=plan.specs.config.base.gpus,
    script:
        "../workflow_scripts/specs/train_specs.py"


rule intrinsic:
    """Measure how often right details raise the similarity and wrong ones lower it, and compare
    the three judges.
    """
    input:
        judge="<dataset>/specs/{seed}/specs",
        against=["<dataset>/specs/{seed}/stretched", "<dataset>/specs/{seed}/contrastive"],
        data=LONG.growing_captions,
        images=LONG.growing_images,
    output:
        result="<dataset>/specs/{seed}/intrinsic.json",
        similarities="<dataset>/specs/{seed}/similarities.parquet",
    log:
        "<logs>/specs/specs/{seed}/intrinsic.log",
    benchmark:
        "<logs>/specs/specs/{seed}/intrinsic.benchmark.tsv"
    conda:
        "../envs/specs.yaml"
    threads: plan.config.threads
    resources:
        **plan.model_resources(plan.specs.config.base.device, 8000, minutes=120),
    params:
        **plan.model_params(plan.specs.config.base.device),
        code=code("specs.intrinsic"),
        contents=(
            plan.contents(LONG.growing_captions, LONG.growing_images)
            if plan.specs.config.data
            else ""
        ),
    script:
        "../workflow_scripts/specs/intrinsic.py"


rule draw_specs:
    """Draw the effect of training with long captions for each seed, and write its page as one
    file.
    """
    input:
        plan.specs.judges,
        intrinsic=plan.specs.intrinsic,
        templates=page_templates("specs"),
    output:
        measures=report(
            plan.specs.figure,
            caption=caption("specs"),
            category="Long captions",
            labels={"figure": "measures"},
        ),
        table=report(
            "<results>/specs.csv",
            caption=caption("specs"),
            category="Long captions",
            labels={"table": "measures of each seed"},
        ),
        page=report(
            "<results>/specs.html",
            caption=caption("specs"),
            category="Long captions",
            labels={"table": "the page to read"},
        ),
    log:
        "<logs>/specs/draw_specs.log",
    conda:
        "../envs/base.yaml"
    params:
        **plan.location_params,
        code=code("specs.draw_specs"),
        settings=plan.report.shown_settings("specs"),
    script:
        "../workflow_scripts/specs/draw_specs.py"
