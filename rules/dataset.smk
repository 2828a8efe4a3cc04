# dataset: images and captions.
# Needs the chosen source's settings. Gives the captions, the images and a summary with skipped
# entries.


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
    threads: 4 if SOURCE.PARALLEL else 1
    resources:
        runtime=growing(120),
    params:
        code=code("dataset.load_dataset", f"{SOURCES}.{CONFIG.dataset.source}"),
        source=CONFIG.dataset.source,
        settings=section(SOURCE_SETTINGS),
        limit=CONFIG.dataset.limit,
        seed=CONFIG.seeds.world,
        files=literal(SOURCE_FILES),
        contents=contents(*SOURCE_FILES),
        cache=undecisive(CONFIG.cache),
        results=PLACE["results"],
    script:
        "../workflow_scripts/dataset/load_dataset.py"
