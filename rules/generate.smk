# generate: the images to be judged.
# Needs the prompts, and the tables that the generator's kind reads. Gives a manifest with a row for
# each prompt, the images, a summary with missing images and, if the kind knows them, the scenes. On
# demand, the data folders from which the paper's models train and draw.


rule generate_images:
    """Make or collect an image for each prompt."""
    input:
        prompts="<dataset>/{composition}/prompts.parquet",
        tables=plan.generate.tables,
    output:
        manifest="<dataset>/{composition}/generated/{generator}/manifest.parquet",
        folder=directory("<dataset>/{composition}/generated/{generator}/images"),
        summary="<dataset>/{composition}/generated/{generator}/summary.json",
    log:
        "<logs>/generate/{composition}/generate_images.{generator}.log",
    benchmark:
        "<logs>/generate/{composition}/generate_images.{generator}.benchmark.tsv"
    wildcard_constraints:
        generator=one_of(plan.generate.plain),
    group:
        "generate"
    conda:
        "../envs/base.yaml"
    resources:
        runtime=growing(60),
    params:
        code=code("generate.generate_images"),
        kind_code=plan.generate.kind_code,
        generator=plan.generate.settings,
        contents=plan.generate.contents,
        seed=plan.config.seed,
        threads=plan.generate.threads,
        cache=plan.cache_param,
        results=plan.results_param,
    script:
        "../workflow_scripts/generate/generate_images.py"


use rule generate_images as generate_images_with_scenes with:
    output:
        manifest="<dataset>/{composition}/generated/{generator}/manifest.parquet",
        folder=directory("<dataset>/{composition}/generated/{generator}/images"),
        summary="<dataset>/{composition}/generated/{generator}/summary.json",
        scenes="<dataset>/{composition}/generated/{generator}/scenes.parquet",
    wildcard_constraints:
        generator=one_of(plan.generate.with_scenes),


use rule generate_images as generate_images_by_model with:
    wildcard_constraints:
        generator=one_of(plan.generate.with_model),
    group:
        "draw"
    conda:
        "../envs/diffusers.yaml"
    threads: plan.config.threads
    resources:
        torch=plan.torch_slots,
        mem_mb=growing(16000),
        runtime=growing(1440),
        gpu=plan.generate.gpus,


rule export_layout:
    """Write the splits in the data layout of AttnGAN, from which DM-GAN, ControlGAN and DF-GAN
    train and draw.
    """
    input:
        **plan.inputs("captions", "images", "files", "splits", "prompts"),
    output:
        folder=directory("<dataset>/{composition}/layout"),
    log:
        "<logs>/generate/{composition}/export_layout.log",
    conda:
        "../envs/base.yaml"
    resources:
        runtime=growing(60),
    params:
        **plan.location_params,
        code=code("generate.export_layout"),
    script:
        "../workflow_scripts/generate/export_layout.py"
