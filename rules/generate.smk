# generate: the images to be judged.
# Needs the prompts, and of the other tables what the generator's kind reads. Gives a manifest with a row for each
# prompt, the images, a summary of what is missing and, where the kind knows what it drew, the scenes.


rule generate_images:
    """Make, or fetch, an image for each prompt."""
    input:
        prompts="<results>/{dataset}/{composition}/prompts.parquet",
        tables=generator_tables,
    output:
        manifest="<results>/{dataset}/{composition}/generated/{generator}/manifest.parquet",
        folder=directory("<results>/{dataset}/{composition}/generated/{generator}/images"),
        summary="<results>/{dataset}/{composition}/generated/{generator}/summary.json",
    log:
        "<logs>/{dataset}/{composition}/generate_images.{generator}.log",
    benchmark:
        "<logs>/{dataset}/{composition}/generate_images.{generator}.benchmark.tsv"
    wildcard_constraints:
        generator=one_of(generators(scenes=False)),
    conda:
        "../envs/base.yaml"
    threads: 1
    resources:
        mem_mb=4000,
    params:
        code=generator_code,
        kind=generator_kind,
        settings=generator_settings,
        contents=generator_contents,
        seed=CONFIG.seed,
        results=results_folder,
    shell:
        "python -m workflow_scripts.generate.generate_images --generator {wildcards.generator:q} --kind {params.kind:q}"
        " --settings {params.settings:q} --prompts {input.prompts:q} --tables {input.tables:q}"
        " --results {params.results:q} --dataset {wildcards.dataset:q} --composition {wildcards.composition:q}"
        " --seed {params.seed} --log {log:q}"


use rule generate_images as generate_scenes with:
    output:
        manifest="<results>/{dataset}/{composition}/generated/{generator}/manifest.parquet",
        folder=directory("<results>/{dataset}/{composition}/generated/{generator}/images"),
        summary="<results>/{dataset}/{composition}/generated/{generator}/summary.json",
        scenes="<results>/{dataset}/{composition}/generated/{generator}/scenes.parquet",
    wildcard_constraints:
        generator=one_of(generators(scenes=True)),
