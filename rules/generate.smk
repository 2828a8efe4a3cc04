# generate: the images to be judged.
# Needs the prompts, and of the other tables what the generator's kind reads. Gives a manifest with a row for each
# prompt, the images, a summary of what is missing and, where the kind knows what it drew, the scenes. On demand, the
# data folders from which the paper's models train and draw.


rule generate_images:
    """Make, or fetch, an image for each prompt."""
    input:
        prompts="<dataset>/{composition}/prompts.parquet",
        tables=generator_tables,
        stored=generator_stored,
    output:
        manifest="<dataset>/{composition}/generated/{generator}/manifest.parquet",
        folder=directory("<dataset>/{composition}/generated/{generator}/images"),
        summary="<dataset>/{composition}/generated/{generator}/summary.json",
    log:
        "<logs>/{composition}/generate_images.{generator}.log",
    benchmark:
        "<logs>/{composition}/generate_images.{generator}.benchmark.tsv"
    wildcard_constraints:
        generator=one_of(generators()),
    group:
        "generate"
    conda:
        "../envs/base.yaml"
    resources:
        mem_mb=growing(2000),
        runtime=growing(60),
    params:
        code=generator_code,
        kind=generator_kind,
        settings=generator_settings,
        contents=generator_contents,
        compute=generator_compute,
        seed=CONFIG.seed,
        results=results_folder,
    shell:
        "python -m workflow_scripts.generate.generate_images --generator {wildcards.generator:q} --kind {params.kind:q}"
        " --settings {params.settings:q} --prompts {input.prompts:q} --tables {input.tables:q}"
        " --results {params.results:q} --dataset {DATASET:q} --composition {wildcards.composition:q}"
        " --seed {params.seed} {params.compute:q} --log {log:q}"


use rule generate_images as generate_scenes with:
    output:
        manifest="<dataset>/{composition}/generated/{generator}/manifest.parquet",
        folder=directory("<dataset>/{composition}/generated/{generator}/images"),
        summary="<dataset>/{composition}/generated/{generator}/summary.json",
        scenes="<dataset>/{composition}/generated/{generator}/scenes.parquet",
    wildcard_constraints:
        generator=one_of(generators(scenes=True)),


use rule generate_images as generate_by_model with:
    wildcard_constraints:
        generator=one_of(generators(model=True)),
    group:
        "draw"
    conda:
        "../envs/diffusers.yaml"
    threads: CONFIG.threads
    resources:
        torch=torch_slots(),
        mem_mb=growing(16000),
        runtime=growing(1440),
        gpu=generator_gpus,


rule export_layout:
    """Write the splits in the layout that AttnGAN's kin train from and draw; for who asks for it."""
    input:
        captions="<dataset>/captions.parquet",
        images="<dataset>/images.parquet",
        files="<dataset>/images",
        splits="<dataset>/{composition}/splits.parquet",
        prompts="<dataset>/{composition}/prompts.parquet",
    output:
        folder=directory("<dataset>/{composition}/layout"),
    log:
        "<logs>/{composition}/export_layout.log",
    benchmark:
        "<logs>/{composition}/export_layout.benchmark.tsv"
    conda:
        "../envs/base.yaml"
    resources:
        mem_mb=growing(2000),
        runtime=growing(60),
    params:
        code=code_hash("workflow_scripts.generate.export_layout"),
        batch=CONFIG.generate.layout.batch,
        results=results_folder,
    shell:
        "python -m workflow_scripts.generate.export_layout --captions {input.captions:q} --images {input.images:q}"
        " --splits {input.splits:q} --prompts {input.prompts:q} --batch {params.batch} --results {params.results:q}"
        " --dataset {DATASET:q} --composition {wildcards.composition:q} --output {output.folder:q}"
        " --log {log:q}"
