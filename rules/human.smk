# human: what do people say?
# Needs a scored run. Gives tasks with their pictures and what they will cost, pages to answer them, a crowd-work
# site's files where the config names an address, and, where it names files of answers, what they say. Included where
# the config has a section human.


rule sample_tasks:
    """Sample what people are asked, and say what it will cost."""
    input:
        captions="<dataset>/captions.parquet",
        images="<dataset>/images.parquet",
        files="<dataset>/images",
        pairs="<dataset>/pairs.parquet",
        ranking="<dataset>/{composition}/ranking.parquet",
        heldout="<dataset>/{composition}/heldout.json",
        swapped="<dataset>/{composition}/swapped.parquet",
        prompts="<dataset>/{composition}/prompts.parquet",
        shown=expand(
            "<dataset>/{{composition}}/generated/{generator}/{name}",
            generator=shown_generators(),
            name=["manifest.parquet", "images"],
        ),
        scores=expand("<dataset>/{{composition}}/scores/{generator}", generator=shown_generators()),
    output:
        tasks="<dataset>/{composition}/human/tasks.parquet",
        pictures=directory("<dataset>/{composition}/human/pictures"),
        summary="<dataset>/{composition}/human/tasks.json",
    log:
        "<logs>/{composition}/sample_tasks.log",
    benchmark:
        "<logs>/{composition}/sample_tasks.benchmark.tsv"
    conda:
        "../envs/torch.yaml"
    params:
        code=code_hash("workflow_scripts.human.sample_tasks"),
        generators=shown_generators(),
        settings=CONFIG.human.model_dump_json(exclude={"answers", "scores", "keep"}),
        seed=CONFIG.seed,
        results=results_folder,
    shell:
        "python -m workflow_scripts.human.sample_tasks --results {params.results:q} --dataset {DATASET:q}"
        " --composition {wildcards.composition:q} --generators {params.generators:q} --settings {params.settings:q}"
        " --seed {params.seed} --output {output.tasks:q} --pictures {output.pictures:q} --summary {output.summary:q}"
        " --log {log:q}"


rule write_pages:
    """Write the tasks as pages that need nothing but a browser."""
    input:
        tasks="<dataset>/{composition}/human/tasks.parquet",
        pictures="<dataset>/{composition}/human/pictures",
        templates=PAGE_TEMPLATES,
    output:
        pages=directory("<dataset>/{composition}/human/pages"),
    log:
        "<logs>/{composition}/write_pages.log",
    benchmark:
        "<logs>/{composition}/write_pages.benchmark.tsv"
    conda:
        "../envs/base.yaml"
    params:
        code=code_hash("workflow_scripts.human.write_pages"),
    shell:
        "python -m workflow_scripts.human.write_pages --tasks {input.tasks:q} --pictures {input.pictures:q}"
        " --output {output.pages:q} --log {log:q}"


rule write_site:
    """Write the tasks as a crowd-work site takes them."""
    input:
        tasks="<dataset>/{composition}/human/tasks.parquet",
        template=of_project("workflow_scripts/human/templates/site.html.j2"),
    output:
        site=directory("<dataset>/{composition}/human/site"),
    log:
        "<logs>/{composition}/write_site.log",
    benchmark:
        "<logs>/{composition}/write_site.benchmark.tsv"
    conda:
        "../envs/base.yaml"
    resources:
        mem_mb=growing(1000),
        runtime=growing(30),
    params:
        code=code_hash("workflow_scripts.human.write_site"),
        base=site_base(),
    shell:
        "python -m workflow_scripts.human.write_site --tasks {input.tasks:q} --base {params.base:q}"
        " --output {output.site:q} --log {log:q}"


rule analyze:
    """Say what people answered, and how far the scores agree with them."""
    input:
        tasks="<dataset>/{composition}/human/tasks.parquet",
        answers=of_project(*CONFIG.human.answers),
        other=of_project(*CONFIG.human.scores.values()),
        scores=expand("<dataset>/{{composition}}/scores/{generator}", generator=shown_generators()),
    output:
        analysis=directory("<dataset>/{composition}/human/analysis"),
        summary="<dataset>/{composition}/human/analysis.json",
    log:
        "<logs>/{composition}/analyze.log",
    benchmark:
        "<logs>/{composition}/analyze.benchmark.tsv"
    conda:
        "../envs/base.yaml"
    params:
        code=code_hash("workflow_scripts.human.analyze"),
        scores=lambda wildcards: on_disk(f"{RESULTS}/{DATASET}/{wildcards.composition}/scores"),
        other=[f"{name}={file}" for name, file in CONFIG.human.scores.items()],
        settings=CONFIG.human.model_dump_json(include={"keep", "perceptual", "match", "caption"}),
        bootstrap=CONFIG.score.bootstrap,
        seed=CONFIG.seed,
    shell:
        "python -m workflow_scripts.human.analyze --tasks {input.tasks:q} --answers {input.answers:q}"
        " --scores {params.scores:q} --other {params.other:q} --settings {params.settings:q}"
        " --bootstrap {params.bootstrap} --seed {params.seed} --output {output.analysis:q}"
        " --summary {output.summary:q} --log {log:q}"
