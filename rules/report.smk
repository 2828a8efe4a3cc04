# report: the table, the figures, the page.
# Needs the scores of all generators, and for figures and examples what they were made of. Gives the table, as data
# and to read, the comparisons, the figures and the page; Snakemake's own report shows them too.


report: "../workflow_scripts/report/captions/workflow.rst"


rule make_table:
    """Gather all scores in the table, compare them, and print it."""
    input:
        scores=all_scores,
        swapped=expand("<results>/{dataset}/{composition}/swapped.parquet", **ALL_COMPOSITIONS),
        divergence=divergence_tables,
        fid=all_fids(),
    output:
        csv=report(
            "<results>/table.csv",
            caption="../workflow_scripts/report/captions/table.rst",
            category="Scores",
            labels={"table": "every score"},
        ),
        md="<results>/table.md",
        tex="<results>/table.tex",
        comparisons=report(
            "<results>/comparisons.csv",
            caption="../workflow_scripts/report/captions/comparisons.rst",
            category="Scores",
            labels={"table": "differences"},
        ),
        metrics="<results>/metrics.json",
    log:
        "<logs>/make_table.log",
    benchmark:
        "<logs>/make_table.benchmark.tsv"
    conda:
        "../envs/base.yaml"
    threads: 1
    resources:
        mem_mb=growing(2000),
        runtime=growing(30),
    params:
        code=code_hash("workflow_scripts.report.make_table"),
        dataset=DATASET,
        compositions=CONFIG.compositions,
        generators=list(GENERATORS),
        oracle=oracle_generators(),
        fid=fid_generators(),
        chunks=CONFIG.score.chunks,
        bootstrap=CONFIG.score.bootstrap,
        results=results_folder,
    shell:
        "python -m workflow_scripts.report.make_table --results {params.results:q} --dataset {params.dataset:q}"
        " --compositions {params.compositions:q} --generators {params.generators:q} --oracle {params.oracle:q}"
        " --fid {params.fid:q} --chunks {params.chunks} --bootstrap {params.bootstrap} --output {params.results:q}"
        " --log {log:q}"


rule draw_splits:
    """Draw what the splits hold: the adjectives and nouns of each, and the swapped pairs."""
    input:
        pairs="<results>/{dataset}/pairs.parquet",
        ranking="<results>/{dataset}/{composition}/ranking.parquet",
        splits="<results>/{dataset}/{composition}/splits.parquet",
        swapped="<results>/{dataset}/{composition}/swapped.parquet",
        prompts="<results>/{dataset}/{composition}/prompts.parquet",
    output:
        **figures(SPLIT_FIGURES),
        distributions=distribution_figures(),
    log:
        "<logs>/{dataset}/{composition}/draw_splits.log",
    benchmark:
        "<logs>/{dataset}/{composition}/draw_splits.benchmark.tsv"
    conda:
        "../envs/base.yaml"
    threads: 1
    resources:
        mem_mb=growing(2000),
        runtime=growing(30),
    params:
        code=code_hash("workflow_scripts.report.draw_splits"),
        dominant=dominant_pairs,
        ratio=CONFIG.score.balance.ratio,
        seed=CONFIG.seed,
        results=results_folder,
    shell:
        "python -m workflow_scripts.report.draw_splits --results {params.results:q} --dataset {wildcards.dataset:q}"
        " --composition {wildcards.composition:q} --dominant {params.dominant} --ratio {params.ratio}"
        " --seed {params.seed} --log {log:q}"


rule draw_divergence:
    """Draw how far the test splits are from train: their atoms and compounds, and the division by divergence."""
    input:
        divergence="<results>/{dataset}/{composition}/divergence.parquet",
        summary="<results>/{dataset}/{composition}/divergence.json",
        division=division_files,
    output:
        parts=divergence_figures(),
        division=division_figures(),
    log:
        "<logs>/{dataset}/{composition}/draw_divergence.log",
    benchmark:
        "<logs>/{dataset}/{composition}/draw_divergence.benchmark.tsv"
    conda:
        "../envs/base.yaml"
    threads: 1
    resources:
        mem_mb=growing(2000),
        runtime=growing(30),
    params:
        code=code_hash("workflow_scripts.report.draw_divergence"),
        definitions=measured_definitions(),
        seed=CONFIG.seed,
        results=results_folder,
    shell:
        "python -m workflow_scripts.report.draw_divergence --results {params.results:q} --dataset {wildcards.dataset:q}"
        " --composition {wildcards.composition:q} --definitions {params.definitions} --division {input.division:q}"
        " --seed {params.seed} --log {log:q}"


rule draw_scores:
    """Draw the scores, the differences, also by divergence, and the judge's training."""
    input:
        judge="<results>/{dataset}/{composition}/judge",
        table="<results>/table.csv",
        comparisons="<results>/comparisons.csv",
    output:
        **figures(SCORE_FIGURES),
    log:
        "<logs>/{dataset}/{composition}/draw_scores.log",
    benchmark:
        "<logs>/{dataset}/{composition}/draw_scores.benchmark.tsv"
    conda:
        "../envs/base.yaml"
    threads: 1
    resources:
        mem_mb=growing(2000),
        runtime=growing(30),
    params:
        code=code_hash("workflow_scripts.report.draw_scores"),
        seed=CONFIG.seed,
        results=results_folder,
    shell:
        "python -m workflow_scripts.report.draw_scores --results {params.results:q} --dataset {wildcards.dataset:q}"
        " --composition {wildcards.composition:q} --seed {params.seed} --log {log:q}"


rule draw_examples:
    """Draw pages for print: seen captions beside their swapped ones, with each generator's images."""
    input:
        dataset=expand("<results>/{{dataset}}/{name}", name=EXAMPLES_READ_OF_DATASET),
        composition=expand("<results>/{{dataset}}/{{composition}}/{name}", name=EXAMPLES_READ_OF_COMPOSITION),
        generators=expand(
            "<results>/{{dataset}}/{{composition}}/{name}",
            name=expand(EXAMPLES_READ_OF_GENERATOR, generator=GENERATORS),
        ),
    output:
        report(
            "<results>/figures/{dataset}_{composition}_examples.pdf",
            caption="../workflow_scripts/report/captions/examples.rst",
            category="Figures",
            subcategory="{composition}",
            labels={"figure": "examples"},
        ),
    log:
        "<logs>/{dataset}/{composition}/draw_examples.log",
    benchmark:
        "<logs>/{dataset}/{composition}/draw_examples.benchmark.tsv"
    conda:
        "../envs/base.yaml"
    threads: 1
    resources:
        mem_mb=growing(2000),
        runtime=growing(30),
    params:
        code=code_hash("workflow_scripts.report.draw_examples"),
        generators=list(GENERATORS),
        examples=CONFIG.report.examples,
        seed=CONFIG.seed,
        results=results_folder,
    shell:
        "python -m workflow_scripts.report.draw_examples --results {params.results:q}"
        " --dataset {wildcards.dataset:q} --composition {wildcards.composition:q}"
        " --generators {params.generators:q} --examples {params.examples} --seed {params.seed} --log {log:q}"


rule make_page:
    """Write the page that shows all of it: one file, with examples."""
    input:
        table="<results>/table.csv",
        comparisons="<results>/comparisons.csv",
        figures=shown_figures,
        dataset=expand("<results>/{dataset}/{name}", dataset=DATASET, name=PAGE_READS_OF_DATASET),
        composition=expand(
            "<results>/{dataset}/{composition}/{name}", **ALL_COMPOSITIONS, name=PAGE_READS_OF_COMPOSITION
        ),
        generators=expand(
            "<results>/{dataset}/{composition}/{name}",
            **ALL_COMPOSITIONS,
            name=expand(PAGE_READS_OF_GENERATOR, generator=GENERATORS),
        ),
        oracle=expand(
            "<results>/{dataset}/{composition}/scores_oracle/{generator}",
            **ALL_COMPOSITIONS,
            generator=oracle_generators(),
        ),
        fid=all_fids(),
        specs=specs_page_reads(),
        compun=compun_page_reads(),
        templates=page_templates("report.html.j2"),
    output:
        report(
            "<results>/report.html",
            caption="../workflow_scripts/report/captions/page.rst",
            category="Scores",
            labels={"table": "the page to read"},
        ),
    log:
        "<logs>/make_page.log",
    benchmark:
        "<logs>/make_page.benchmark.tsv"
    conda:
        "../envs/base.yaml"
    threads: 1
    resources:
        mem_mb=growing(2000),
        runtime=growing(30),
    params:
        code=code_hash("workflow_scripts.report.make_page"),
        dataset=DATASET,
        compositions=CONFIG.compositions,
        generators=list(GENERATORS),
        oracle=oracle_generators(),
        fid=fid_generators(),
        examples=CONFIG.report.examples,
        method=CONFIG.split.method,
        sections=[*(["--specs"] if CONFIG.specs else []), *(["--compun"] if CONFIG.compun else [])],
        settings=shown_settings,
        seed=CONFIG.seed,
        results=results_folder,
    shell:
        "python -m workflow_scripts.report.make_page --results {params.results:q} --dataset {params.dataset:q}"
        " --compositions {params.compositions:q} --generators {params.generators:q} --oracle {params.oracle:q}"
        " --fid {params.fid:q} --method {params.method} {params.sections} --examples {params.examples}"
        " --settings {params.settings:q} --seed {params.seed} --log {log:q}"


if CONFIG.specs:

    rule draw_specs:
        """Draw what training with long captions changed, for each seed."""
        input:
            intrinsic=specs_results,
            similarities=f"{RESULTS}/{DATASET}/specs/{CONFIG.specs.seeds[0]}/similarities.parquet",
            images=step_images,
        output:
            **specs_figures(),
            table=report(
                "<results>/specs.csv",
                caption="../workflow_scripts/report/captions/specs.rst",
                category="Long captions",
                labels={"table": "measures of each seed"},
            ),
            text="<results>/specs.md",
        log:
            "<logs>/draw_specs.log",
        benchmark:
            "<logs>/draw_specs.benchmark.tsv"
        conda:
            "../envs/base.yaml"
        threads: 1
        resources:
            mem_mb=growing(2000),
            runtime=growing(30),
        params:
            code=code_hash("workflow_scripts.report.draw_specs"),
        shell:
            "python -m workflow_scripts.report.draw_specs --intrinsic {input.intrinsic:q}"
            " --similarities {input.similarities:q} --images {input.images:q} --table {output.table:q}"
            " --measures {output.measures:q} --gains {output.gains:q} --growing {output.growing:q} --log {log:q}"

    rule make_specs_page:
        """Write the page of long captions alone: one file."""
        input:
            specs_page_reads(),
            templates=page_templates("specs.html.j2"),
        output:
            report(
                "<results>/specs.html",
                caption="../workflow_scripts/report/captions/specs.rst",
                category="Long captions",
                labels={"table": "the page to read"},
            ),
        log:
            "<logs>/make_specs_page.log",
        benchmark:
            "<logs>/make_specs_page.benchmark.tsv"
        conda:
            "../envs/base.yaml"
        threads: 1
        resources:
            mem_mb=growing(1000),
            runtime=growing(30),
        params:
            code=code_hash("workflow_scripts.report.make_specs_page"),
            dataset=DATASET,
            settings=CONFIG.model_dump_json(include={"seed", "dataset", "specs"}),
            results=results_folder,
        shell:
            "python -m workflow_scripts.report.make_specs_page --results {params.results:q} --dataset {params.dataset:q}"
            " --settings {params.settings:q} --log {log:q}"


if CONFIG.compun:

    rule draw_compun:
        """Draw how often each model is right of compound nouns, by prompt and by kind, beside the paper's figures."""
        input:
            analysis=f"{compun_folder()}/analysis",
        output:
            **compun_figures(),
            text="<results>/compun.md",
        log:
            "<logs>/draw_compun.log",
        benchmark:
            "<logs>/draw_compun.benchmark.tsv"
        conda:
            "../envs/base.yaml"
        threads: 1
        resources:
            mem_mb=growing(2000),
            runtime=growing(30),
        params:
            code=code_hash("workflow_scripts.report.draw_compun"),
        shell:
            "python -m workflow_scripts.report.draw_compun --analysis {input.analysis:q} --text {output.text:q}"
            " --accuracy {output.accuracy:q} --examples {output.examples:q} --gains {output.gains:q}"
            " --kinds {output.kinds:q} --log {log:q}"

    rule make_compun_page:
        """Write the page of compound nouns alone: one file."""
        input:
            compun_page_reads(),
            templates=page_templates("compun.html.j2"),
        output:
            report(
                "<results>/compun.html",
                caption="../workflow_scripts/report/captions/compun.rst",
                category="Compound nouns",
                labels={"table": "the page to read"},
            ),
        log:
            "<logs>/make_compun_page.log",
        benchmark:
            "<logs>/make_compun_page.benchmark.tsv"
        conda:
            "../envs/base.yaml"
        threads: 1
        resources:
            mem_mb=growing(2000),
            runtime=growing(30),
        params:
            code=code_hash("workflow_scripts.report.make_compun_page"),
            dataset=DATASET,
            settings=CONFIG.model_dump_json(include={"seed", "dataset", "compun"}),
            results=results_folder,
        shell:
            "python -m workflow_scripts.report.make_compun_page --results {params.results:q}"
            " --dataset {params.dataset:q} --settings {params.settings:q} --log {log:q}"
