# specs: scores for long captions.
# Needs long captions: of the sketches, or of one's own. Gives, for each seed, a CLIP before and after it was stretched,
# trained with the loss of SPECS and by its contrastive term alone, and how well each tells right details from wrong.

SPECS = "<dataset>/specs/{seed}"


wildcard_constraints:
    seed=r"\d+",
    loss="specs|contrastive",


if CONFIG.specs.data is None:

    rule describe_images:
        """Describe the sketches at length, and divide them into those that train and those that test."""
        input:
            scenes="<dataset>/scenes.parquet",
            images="<dataset>/images.parquet",
        output:
            examples=f"{SPECS}/examples.parquet",
            steps=f"{SPECS}/steps.parquet",
            captions=f"{SPECS}/captions.parquet",
            splits=f"{SPECS}/splits.parquet",
        log:
            "<logs>/specs/{seed}/describe_images.log",
        benchmark:
            "<logs>/specs/{seed}/describe_images.benchmark.tsv"
        conda:
            "../envs/base.yaml"
        resources:
            mem_mb=growing(1000),
            runtime=growing(30),
        params:
            code=code_hash("workflow_scripts.specs.describe_images"),
            test=CONFIG.specs.test,
            folder=lambda wildcards: on_disk(specs_folder(wildcards)),
        shell:
            "python -m workflow_scripts.specs.describe_images --scenes {input.scenes:q} --images {input.images:q}"
            " --test {params.test} --seed {wildcards.seed} --folder {params.folder:q} --log {log:q}"


if CONFIG.specs.base.epochs:

    rule train_base:
        """Train a CLIP on short captions, as stage judge does."""
        input:
            captions=f"{SPECS}/captions.parquet",
            images="<dataset>/images.parquet",
            folder="<dataset>/images",
            splits=f"{SPECS}/splits.parquet",
            files=of_project(*CONFIG.specs.base.files()),
        output:
            judge=directory(f"{SPECS}/base"),
        log:
            "<logs>/specs/{seed}/train_base.log",
        benchmark:
            "<logs>/specs/{seed}/train_base.benchmark.tsv"
        conda:
            "../envs/torch.yaml"
        threads: training_threads(CONFIG.specs.base)
        resources:
            **training_resources(CONFIG.specs.base),
            mem_mb=growing(8000 * CONFIG.specs.base.gpus),
            runtime=growing(720),
            torch=torch_slots(),
        params:
            code=code_hash("workflow_scripts.judge.train_judge"),
            launch=launch(CONFIG.specs.base),
            settings=CONFIG.specs.base.model_dump_json(),
            results=results_folder,
            cache=CONFIG.cache,
            torch_threads=CONFIG.threads,
        shell:
            "{params.launch} workflow_scripts.judge.train_judge --captions {input.captions:q} --images {input.images:q}"
            " --splits {input.splits:q} --results {params.results:q} --settings {params.settings:q}"
            " --seed {wildcards.seed} --threads {params.torch_threads} --cache {params.cache:q}"
            " --folder {output.judge:q} --log {log:q}"


rule stretch:
    """Stretch the CLIP's positions, so that it reads long captions."""
    input:
        base=stretched_base,
    output:
        judge=directory(f"{SPECS}/stretched"),
    log:
        "<logs>/specs/{seed}/stretch.log",
    benchmark:
        "<logs>/specs/{seed}/stretch.benchmark.tsv"
    conda:
        "../envs/torch.yaml"
    resources:
        mem_mb=growing(4000),
        runtime=growing(30),
    params:
        code=code_hash("workflow_scripts.specs.stretch"),
        start=stretch_options,
    shell:
        "python -m workflow_scripts.specs.stretch {params.start:q} --seed {wildcards.seed} --output {output.judge:q}"
        " --log {log:q}"


rule cut_captions:
    """Find which long captions can be used, and where their chunks end; what trains on them finds it in the cache."""
    input:
        examples=long_examples,
        images=long_images,
    output:
        summary=f"{SPECS}/cut_captions.json",
    log:
        "<logs>/specs/{seed}/cut_captions.log",
    benchmark:
        "<logs>/specs/{seed}/cut_captions.benchmark.tsv"
    conda:
        "../envs/specs.yaml"
    threads: CONFIG.threads
    resources:
        mem_mb=growing(2000),
        runtime=growing(60),
    params:
        code=code_hash("workflow_scripts.specs.cut_captions"),
        model=CONFIG.pairs.model,
        cache=CONFIG.cache,
    shell:
        "python -m workflow_scripts.specs.cut_captions --examples {input.examples:q} --images {input.images:q}"
        " --model {params.model:q} --processes {threads} --cache {params.cache:q} --summary {output.summary:q}"
        " --log {log:q}"


rule train_specs:
    """Train the stretched CLIP on long captions, with the loss of SPECS or by its contrastive term alone."""
    input:
        judge=f"{SPECS}/stretched",
        examples=long_examples,
        images=long_images,
        summary=f"{SPECS}/cut_captions.json",
    output:
        judge=directory(f"{SPECS}/{{loss}}"),
    log:
        "<logs>/specs/{seed}/train_specs_{loss}.log",
    benchmark:
        "<logs>/specs/{seed}/train_specs_{loss}.benchmark.tsv"
    conda:
        "../envs/specs.yaml"
    threads: training_threads(CONFIG.specs.base)
    resources:
        **training_resources(CONFIG.specs.base),
        mem_mb=growing(8000 * CONFIG.specs.base.gpus),
        runtime=growing(720),
        torch=torch_slots(),
    params:
        code=code_hash("workflow_scripts.specs.train_specs"),
        launch=launch(CONFIG.specs.base),
        settings=CONFIG.specs.training.model_dump_json(),
        model=CONFIG.pairs.model,
        device=CONFIG.specs.base.device,
        cache=CONFIG.cache,
        torch_threads=CONFIG.threads,
    shell:
        "{params.launch} workflow_scripts.specs.train_specs --judge {input.judge:q} --examples {input.examples:q}"
        " --images {input.images:q} --loss {wildcards.loss} --settings {params.settings:q} --model {params.model:q}"
        " --processes {params.torch_threads} --seed {wildcards.seed} --threads {params.torch_threads}"
        " --device {params.device} --cache {params.cache:q} --output {output.judge:q} --log {log:q}"


rule intrinsic:
    """Measure how often right details raise the similarity and wrong ones lower it, and compare the three."""
    input:
        specs=f"{SPECS}/specs",
        stretched=f"{SPECS}/stretched",
        contrastive=f"{SPECS}/contrastive",
        steps=long_steps,
        images=step_images,
    output:
        result=f"{SPECS}/intrinsic.json",
        similarities=f"{SPECS}/similarities.parquet",
    log:
        "<logs>/specs/{seed}/intrinsic.log",
    benchmark:
        "<logs>/specs/{seed}/intrinsic.benchmark.tsv"
    conda:
        "../envs/specs.yaml"
    threads: CONFIG.threads
    resources:
        mem_mb=growing(8000),
        runtime=growing(120),
        torch=torch_slots(),
        gpu=specs_gpu(),
    params:
        code=code_hash("workflow_scripts.specs.intrinsic"),
        bootstrap=CONFIG.specs.bootstrap,
        device=CONFIG.specs.base.device,
        cache=CONFIG.cache,
        torch_threads=CONFIG.threads,
    shell:
        "python -m workflow_scripts.specs.intrinsic --judge {input.specs:q} --against {input.stretched:q}"
        " {input.contrastive:q} --data {input.steps:q} --images {input.images:q} --bootstrap {params.bootstrap}"
        " --seed {wildcards.seed} --threads {params.torch_threads} --device {params.device} --cache {params.cache:q}"
        " --similarities {output.similarities:q} --output {output.result:q} --log {log:q}"


rule draw_specs:
    """Draw what training with long captions changed, for each seed."""
    input:
        intrinsic=specs_results,
        similarities=f"{RESULTS}/{DATASET}/specs/{CONFIG.specs.seeds[0]}/similarities.parquet",
        images=step_images,
    output:
        **specs_figures(),
        table=report(
            "<results>/specs.csv",
            caption="../workflow_scripts/report/captions/specs.rst",
            category="Long captions",
            labels={"table": "measures of each seed"},
        ),
        text="<results>/specs.md",
    log:
        "<logs>/draw_specs.log",
    benchmark:
        "<logs>/draw_specs.benchmark.tsv"
    conda:
        "../envs/base.yaml"
    params:
        code=code_hash("workflow_scripts.specs.draw_specs"),
    shell:
        "python -m workflow_scripts.specs.draw_specs --intrinsic {input.intrinsic:q}"
        " --similarities {input.similarities:q} --images {input.images:q} --table {output.table:q}"
        " --measures {output.measures:q} --gains {output.gains:q} --growing {output.growing:q} --log {log:q}"


rule make_specs_page:
    """Write the page of long captions alone: one file."""
    input:
        specs_page_reads(),
        templates=page_templates("specs"),
    output:
        report(
            "<results>/specs.html",
            caption="../workflow_scripts/report/captions/specs.rst",
            category="Long captions",
            labels={"table": "the page to read"},
        ),
    log:
        "<logs>/make_specs_page.log",
    benchmark:
        "<logs>/make_specs_page.benchmark.tsv"
    conda:
        "../envs/base.yaml"
    resources:
        mem_mb=growing(1000),
        runtime=growing(30),
    params:
        code=code_hash("workflow_scripts.specs.make_specs_page"),
        dataset=DATASET,
        settings=CONFIG.model_dump_json(include={"seed", "dataset", "specs"}),
        results=results_folder,
    shell:
        "python -m workflow_scripts.specs.make_specs_page --results {params.results:q} --dataset {params.dataset:q}"
        " --settings {params.settings:q} --log {log:q}"
