# dataset: which images, which captions?
# Needs the chosen source's settings. Gives the captions, the images and a summary of what was left out.


rule load_dataset:
    """Read or draw the images and captions of the config's source."""
    input:
        stored(source_section()),
    output:
        captions="<dataset>/captions.parquet",
        images="<dataset>/images.parquet",
        folder=directory("<dataset>/images"),
        summary="<dataset>/dataset.json",
        tables=source_tables(),
    log:
        "<logs>/load_dataset.log",
    benchmark:
        "<logs>/load_dataset.benchmark.tsv"
    conda:
        "../envs/base.yaml"
    resources:
        mem_mb=growing(2000),
        runtime=growing(120),
    params:
        code=code_hash(
            "workflow_scripts.dataset.load_dataset",
            f"workflow_scripts.dataset.sources.{CONFIG.dataset.source}",
        ),
        source=CONFIG.dataset.source,
        settings=source_settings,
        contents=source_contents,
        limit=CONFIG.dataset.limit or 0,
        seed=CONFIG.seed,
        results=results_folder,
        cache=CONFIG.cache,
    shell:
        "python -m workflow_scripts.dataset.load_dataset --source {params.source:q}"
        " --settings {params.settings:q} --limit {params.limit} --seed {params.seed}"
        " --results {params.results:q} --dataset {DATASET:q} --cache {params.cache:q} --log {log:q}"
