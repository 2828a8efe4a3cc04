# dataset: which images, which captions?
# Needs the chosen source's settings. Gives the captions, the images and a summary of what was skipped.


rule load_dataset:
    """Read or draw the images and captions of the config's source."""
    input:
        stored(source_section()),
    output:
        captions="<dataset>/captions.parquet",
        images="<dataset>/images.parquet",
        folder=directory("<dataset>/images"),
        summary="<dataset>/dataset.json",
        tables=[f"<dataset>/{name}.parquet" for name in source_table_names()],
    log:
        "<logs>/dataset/load_dataset.log",
    benchmark:
        "<logs>/dataset/load_dataset.benchmark.tsv"
    conda:
        "../envs/base.yaml"
    threads: source_threads()
    resources:
        runtime=growing(120),
    params:
        **step(
            "dataset.load_dataset",
            f"{SOURCES}.{CONFIG.dataset.source}",
            settings=lambda wildcards: retrieved(source_section()),
            contents=source_contents_read,
            also={"contents": lambda wildcards: source_contents()},
        ),
    shell:
        "python -m {params.step} --processes {threads} --log {log:q}"
