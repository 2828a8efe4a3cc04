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
        tables=plan.source.tables.values(),
    log:
        "<logs>/dataset/load_dataset.log",
    benchmark:
        "<logs>/dataset/load_dataset.benchmark.tsv"
    conda:
        "../envs/base.yaml"
    threads: 16 if plan.source.is_parallel else 1  # processes; reduced to --cores
    resources:
        runtime=growing(120),
    params:
        code=code("dataset.load_dataset", plan.source.module),
        source=plan.config.dataset.source,
        settings=section(plan.source.settings),
        limit=plan.config.dataset.limit,
        seed=plan.config.seeds.world,
        files=literal(plan.source.files),
        contents=plan.contents(*plan.source.files),
        cache=plan.cache_param,
        results=plan.results_param,
    script:
        "../workflow_scripts/dataset/load_dataset.py"
