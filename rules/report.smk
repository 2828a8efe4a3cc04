# report: the table, the figures, the page.
# Needs the scores of all generators, and for figures and examples what they were made of. Gives the table, as data
# and to read, the comparisons, the figures and the page; Snakemake's own report shows them too.


report: "../workflow_scripts/report/captions/workflow.rst"


rule make_table:
    """Gather all scores in the table, compare them, and print it."""
    input:
        scores=all_scores,
        swapped=expand("<dataset>/{composition}/swapped.parquet", **ALL_COMPOSITIONS),
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


rule draw_scores:
    """Draw the scores, the differences, also by divergence, and the judge's training."""
    input:
        judge="<dataset>/{composition}/judge",
        table="<results>/table.csv",
        comparisons="<results>/comparisons.csv",
    output:
        **figures(SCORE_FIGURES),
    log:
        "<logs>/{composition}/draw_scores.log",
    benchmark:
        "<logs>/{composition}/draw_scores.benchmark.tsv"
    conda:
        "../envs/base.yaml"
    params:
        code=code_hash("workflow_scripts.report.draw_scores"),
        seed=CONFIG.seed,
        results=results_folder,
    shell:
        "python -m workflow_scripts.report.draw_scores --results {params.results:q} --dataset {DATASET:q}"
        " --composition {wildcards.composition:q} --seed {params.seed} --log {log:q}"


rule draw_examples:
    """Draw pages for print: seen captions beside their swapped ones, with each generator's images."""
    input:
        dataset=expand("<dataset>/{name}", name=EXAMPLES_READ_OF_DATASET),
        composition=expand("<dataset>/{{composition}}/{name}", name=EXAMPLES_READ_OF_COMPOSITION),
        generators=expand(
            "<dataset>/{{composition}}/{name}",
            name=expand(EXAMPLES_READ_OF_GENERATOR, generator=GENERATORS),
        ),
    output:
        report(
            "<results>/figures/<name>_{composition}_examples.pdf",
            caption="../workflow_scripts/report/captions/examples.rst",
            category="Figures",
            subcategory="{composition}",
            labels={"figure": "examples"},
        ),
    log:
        "<logs>/{composition}/draw_examples.log",
    benchmark:
        "<logs>/{composition}/draw_examples.benchmark.tsv"
    conda:
        "../envs/base.yaml"
    params:
        code=code_hash("workflow_scripts.report.draw_examples"),
        generators=list(GENERATORS),
        examples=CONFIG.report.examples,
        seed=CONFIG.seed,
        results=results_folder,
    shell:
        "python -m workflow_scripts.report.draw_examples --results {params.results:q}"
        " --dataset {DATASET:q} --composition {wildcards.composition:q}"
        " --generators {params.generators:q} --examples {params.examples} --seed {params.seed} --log {log:q}"


rule make_page:
    """Write the page that shows all of it: one file, with examples."""
    input:
        table="<results>/table.csv",
        comparisons="<results>/comparisons.csv",
        figures=shown_figures,
        dataset=expand("<dataset>/{name}", dataset=DATASET, name=PAGE_READS_OF_DATASET),
        composition=expand("<dataset>/{composition}/{name}", **ALL_COMPOSITIONS, name=PAGE_READS_OF_COMPOSITION),
        generators=expand(
            "<dataset>/{composition}/{name}",
            **ALL_COMPOSITIONS,
            name=expand(PAGE_READS_OF_GENERATOR, generator=GENERATORS),
        ),
        oracle=expand(
            "<dataset>/{composition}/scores_oracle/{generator}",
            **ALL_COMPOSITIONS,
            generator=oracle_generators(),
        ),
        fid=all_fids(),
        specs=specs_page_reads(),
        compun=compun_page_reads(),
        templates=page_templates("report", *SECTIONS),
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
    params:
        code=code_hash("workflow_scripts.report.make_page", *(f"workflow_scripts.{name}.section" for name in SECTIONS)),
        dataset=DATASET,
        compositions=CONFIG.compositions,
        generators=list(GENERATORS),
        oracle=oracle_generators(),
        fid=fid_generators(),
        examples=CONFIG.report.examples,
        method=CONFIG.split.method,
        sections=SECTIONS,
        settings=shown_settings,
        seed=CONFIG.seed,
        results=results_folder,
    shell:
        "python -m workflow_scripts.report.make_page --results {params.results:q} --dataset {params.dataset:q}"
        " --compositions {params.compositions:q} --generators {params.generators:q} --oracle {params.oracle:q}"
        " --fid {params.fid:q} --method {params.method} --sections {params.sections} --examples {params.examples}"
        " --settings {params.settings:q} --seed {params.seed} --log {log:q}"
