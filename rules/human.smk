# human: what do people say?
# Needs a scored run. Gives tasks with their pictures and their cost, pages to answer them, projects for Label Studio and
# files for a crowd-work site if the config asks for them, and an analysis of the answers that the config names. Included
# if the config has a section human.


rule sample_tasks:
    """Sample tasks for people, and compute their cost."""
    input:
        captions="<dataset>/captions.parquet",
        images="<dataset>/images.parquet",
        files="<dataset>/images",
        pairs=pairs_table,
        ranking="<dataset>/{composition}/ranking.parquet",
        heldout="<dataset>/{composition}/heldout.json",
        swapped="<dataset>/{composition}/swapped.parquet",
        prompts="<dataset>/{composition}/prompts.parquet",
        manifests=of_shown_generators("generated/{generator}/manifest.parquet"),
        generated=of_shown_generators("generated/{generator}/images"),
        # All judges score the same images.
        scores=of_shown_generators(f"scores/{CONFIG.judges[0]}/{{generator}}"),
    output:
        tasks="<dataset>/{composition}/human/tasks.parquet",
        pictures=directory("<dataset>/{composition}/human/pictures"),
        summary="<dataset>/{composition}/human/tasks.json",
    log:
        "<logs>/human/{composition}/sample_tasks.log",
    benchmark:
        "<logs>/human/{composition}/sample_tasks.benchmark.tsv"
    conda:
        "../envs/base.yaml"
    params:
        **step("human.sample_tasks", generators=shown_generators()),
    shell:
        "python -m {params.step} --log {log:q}"


rule write_pages:
    """Write the tasks as pages that need only a browser."""
    input:
        tasks="<dataset>/{composition}/human/tasks.parquet",
        pictures="<dataset>/{composition}/human/pictures",
        templates=human_templates("page.html.j2", "index.html.j2", "page.css", "page.js"),
    output:
        pages=directory("<dataset>/{composition}/human/pages"),
    log:
        "<logs>/human/{composition}/write_pages.log",
    benchmark:
        "<logs>/human/{composition}/write_pages.benchmark.tsv"
    conda:
        "../envs/base.yaml"
    params:
        **step("human.write_pages"),
    shell:
        "python -m {params.step} --log {log:q}"


rule write_label_studio:
    """Write a Label Studio project for each kind of task."""
    input:
        tasks="<dataset>/{composition}/human/tasks.parquet",
        pictures="<dataset>/{composition}/human/pictures",
        template=human_templates("label_studio.xml.j2"),
    output:
        label_studio=directory("<dataset>/{composition}/human/label_studio"),
    log:
        "<logs>/human/{composition}/write_label_studio.log",
    benchmark:
        "<logs>/human/{composition}/write_label_studio.benchmark.tsv"
    conda:
        "../envs/base.yaml"
    params:
        **step("human.write_label_studio"),
    shell:
        "python -m {params.step} --log {log:q}"


rule write_site:
    """Write the tasks for a crowd-work site."""
    input:
        tasks="<dataset>/{composition}/human/tasks.parquet",
        template=human_templates("site.html.j2"),
    output:
        site=directory("<dataset>/{composition}/human/site"),
    log:
        "<logs>/human/{composition}/write_site.log",
    benchmark:
        "<logs>/human/{composition}/write_site.benchmark.tsv"
    conda:
        "../envs/base.yaml"
    params:
        **step("human.write_site"),
    shell:
        "python -m {params.step} --log {log:q}"


rule analyze:
    """Summarize the answers, and correlate the scores with them."""
    input:
        tasks="<dataset>/{composition}/human/tasks.parquet",
        answers=of_project(*CONFIG.human.answers),
        other=of_project(*CONFIG.human.scores.values()),
        scores=[of_shown_generators(f"scores/{judge}/{{generator}}") for judge in CONFIG.judges],
    output:
        analysis=directory("<dataset>/{composition}/human/analysis"),
        summary="<dataset>/{composition}/human/analysis.json",
    log:
        "<logs>/human/{composition}/analyze.log",
    benchmark:
        "<logs>/human/{composition}/analyze.benchmark.tsv"
    conda:
        "../envs/base.yaml"
    params:
        **step("human.analyze"),
    shell:
        "python -m {params.step} --log {log:q}"
