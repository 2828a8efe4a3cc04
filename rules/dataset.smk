# dataset: which images, which captions?
# Needs the chosen source's settings. Gives the captions, the images and a summary of what was skipped.


rule load_dataset:
    """Read or draw the images and captions of the config's source."""
    output:
        captions="<dataset>/captions.parquet",
        images="<dataset>/images.parquet",
        folder=directory("<dataset>/images"),
        summary="<dataset>/dataset.json",
        tables=[f"<dataset>/{name}.parquet" for name in SOURCE_TABLES],
    log:
        "<logs>/dataset/load_dataset.log",
    benchmark:
        "<logs>/dataset/load_dataset.benchmark.tsv"
    conda:
        "../envs/base.yaml"
    threads: 4 if getattr(SOURCE, "PARALLEL", False) else 1
    resources:
        runtime=growing(120),
    params:
        **step(
            "dataset.load_dataset",
            f"{SOURCES}.{CONFIG.dataset.source}",
            settings=SOURCE_SETTINGS.model_dump(mode="json"),
            contents=lambda wildcards: source_contents() or None,
            also={"contents": lambda wildcards: source_contents()},
        ),
    shell:
        "python -m {params.step} --processes {threads} --log {log:q}"
