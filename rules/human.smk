# human: what do people say?
# Needs a scored run. Gives tasks with their pictures and what they will cost, pages to answer them, a crowd-work
# site's files where the config names an address, and, where it names files of answers, what they say. Included where
# the config has a section human.


rule sample_tasks:
    """Sample what people are asked, and say what it will cost."""
    input:
        captions="<results>/{dataset}/captions.parquet",
        images="<results>/{dataset}/images.parquet",
        files="<results>/{dataset}/images",
        pairs="<results>/{dataset}/pairs.parquet",
        ranking="<results>/{dataset}/{composition}/ranking.parquet",
        heldout="<results>/{dataset}/{composition}/heldout.json",
        swapped="<results>/{dataset}/{composition}/swapped.parquet",
        prompts="<results>/{dataset}/{composition}/prompts.parquet",
        shown=expand(
            "<results>/{{dataset}}/{{composition}}/generated/{generator}/{name}",
            generator=shown_generators(),
            name=["manifest.parquet", "images"],
        ),
        scores=expand("<results>/{{dataset}}/{{composition}}/scores/{generator}", generator=shown_generators()),
    output:
        tasks="<results>/{dataset}/{composition}/human/tasks.parquet",
        pictures=directory("<results>/{dataset}/{composition}/human/pictures"),
        summary="<results>/{dataset}/{composition}/human/tasks.json",
    log:
        "<logs>/{dataset}/{composition}/sample_tasks.log",
    benchmark:
        "<logs>/{dataset}/{composition}/sample_tasks.benchmark.tsv"
    conda:
        "../envs/torch.yaml"
    threads: 1
    resources:
        mem_mb=growing(2000),
        runtime=growing(30),
    params:
        code=code_hash("workflow_scripts.human.sample_tasks"),
        generators=shown_generators(),
        settings=CONFIG.human.model_dump_json(exclude={"answers", "scores", "keep"}),
        seed=CONFIG.seed,
        results=results_folder,
    shell:
        "python -m workflow_scripts.human.sample_tasks --results {params.results:q} --dataset {wildcards.dataset:q}"
        " --composition {wildcards.composition:q} --generators {params.generators:q} --settings {params.settings:q}"
        " --seed {params.seed} --output {output.tasks:q} --pictures {output.pictures:q} --summary {output.summary:q}"
        " --log {log:q}"


rule write_pages:
    """Write the tasks as pages that need nothing but a browser."""
    input:
        tasks="<results>/{dataset}/{composition}/human/tasks.parquet",
        pictures="<results>/{dataset}/{composition}/human/pictures",
        templates=PAGE_TEMPLATES,
    output:
        pages=directory("<results>/{dataset}/{composition}/human/pages"),
    log:
        "<logs>/{dataset}/{composition}/write_pages.log",
    benchmark:
        "<logs>/{dataset}/{composition}/write_pages.benchmark.tsv"
    conda:
        "../envs/base.yaml"
    threads: 1
    resources:
        mem_mb=growing(2000),
        runtime=growing(30),
    params:
        code=code_hash("workflow_scripts.human.write_pages"),
    shell:
        "python -m workflow_scripts.human.write_pages --tasks {input.tasks:q} --pictures {input.pictures:q}"
        " --output {output.pages:q} --log {log:q}"


rule write_site:
    """Write the tasks as a crowd-work site takes them."""
    input:
        tasks="<results>/{dataset}/{composition}/human/tasks.parquet",
        template=of_project("workflow_scripts/human/templates/site.html.j2"),
    output:
        site=directory("<results>/{dataset}/{composition}/human/site"),
    log:
        "<logs>/{dataset}/{composition}/write_site.log",
    benchmark:
        "<logs>/{dataset}/{composition}/write_site.benchmark.tsv"
    conda:
        "../envs/base.yaml"
    threads: 1
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
        tasks="<results>/{dataset}/{composition}/human/tasks.parquet",
        answers=of_project(*CONFIG.human.answers),
        other=of_project(*CONFIG.human.scores.values()),
        scores=expand("<results>/{{dataset}}/{{composition}}/scores/{generator}", generator=shown_generators()),
    output:
        analysis=directory("<results>/{dataset}/{composition}/human/analysis"),
        summary="<results>/{dataset}/{composition}/human/analysis.json",
    log:
        "<logs>/{dataset}/{composition}/analyze.log",
    benchmark:
        "<logs>/{dataset}/{composition}/analyze.benchmark.tsv"
    conda:
        "../envs/base.yaml"
    threads: 1
    resources:
        mem_mb=growing(2000),
        runtime=growing(30),
    params:
        code=code_hash("workflow_scripts.human.analyze"),
        scores=lambda wildcards: on_disk(f"{RESULTS}/{wildcards.dataset}/{wildcards.composition}/scores"),
        other=[f"{name}={file}" for name, file in CONFIG.human.scores.items()],
        settings=CONFIG.human.model_dump_json(include={"keep", "perceptual", "match", "caption"}),
        bootstrap=CONFIG.score.bootstrap,
        seed=CONFIG.seed,
    shell:
        "python -m workflow_scripts.human.analyze --tasks {input.tasks:q} --answers {input.answers:q}"
        " --scores {params.scores:q} --other {params.other:q} --settings {params.settings:q}"
        " --bootstrap {params.bootstrap} --seed {params.seed} --output {output.analysis:q}"
        " --summary {output.summary:q} --log {log:q}"
