# report: the table, the figures, the page.
# Needs the scores of all generators and, for figures and examples, their inputs. Gives the table,
# as data and for readers, the comparisons, the figures and the page; Snakemake's own report shows
# them, too.


report: caption("workflow")


rule make_table:
    """Gather all scores in the table, compare them, and print it."""
    input:
        scores=plan.score.scores + plan.score.oracle_scores,
        captions="<dataset>/captions.parquet",
        swapped=plan.of_compositions("swapped.parquet"),
        ranking=plan.of_compositions("ranking.parquet"),
        heldout=plan.of_compositions("heldout.json"),
        divergence=plan.of_compositions("divergence.parquet"),
        variants=plan.of_compositions("variants.json"),
        fid=plan.score.fids,
        bias_checks=plan.score.bias_checks,
        templates=page_templates("report"),
    output:
        scores="<results>/scores.parquet",
        csv=report(
            "<results>/scores.csv",
            caption=caption("table"),
            category="Scores",
            labels={"table": "every score"},
        ),
        table="<results>/table.csv",
        md="<results>/table.md",
        tex="<results>/table.tex",
        comparisons=report(
            "<results>/comparisons.csv",
            caption=caption("comparisons"),
            category="Scores",
            labels={"table": "differences"},
        ),
        pairs=report(
            "<results>/pairs.csv",
            caption=caption("pairs"),
            category="Scores",
            labels={"table": "scores by pair"},
        ),
        metrics="<results>/metrics.json",
    log:
        "<logs>/report/make_table.log",
    benchmark:
        "<logs>/report/make_table.benchmark.tsv"
    conda:
        "../envs/base.yaml"
    params:
        **plan.report.table_params,
        code=code("report.make_table"),
        oracle_generators=plan.score.oracle_generators,
        controls=plan.generate.controls,
        chunks=plan.config.score.chunks,
    script:
        "../workflow_scripts/report/make_table.py"


rule compare_judges:
    """Estimate what generators compose by each judge, and how far judges agree."""
    input:
        scores=plan.score.scores,
        choices=plan.score.choices,
        certificates=plan.score.certificates,
        certified=plan.score.certificate_items,
        bias_checks=plan.score.bias_checks,
        captions="<dataset>/captions.parquet",
        swapped=plan.of_compositions("swapped.parquet"),
        ranking=plan.of_compositions("ranking.parquet"),
        heldout=plan.of_compositions("heldout.json"),
    output:
        csv=report(
            "<results>/judges.csv",
            caption=caption("judges"),
            category="Scores",
            labels={"table": "scores by judge"},
        ),
        json="<results>/judges.json",
    log:
        "<logs>/report/compare_judges.log",
    benchmark:
        "<logs>/report/compare_judges.benchmark.tsv"
    conda:
        "../envs/base.yaml"
    params:
        **plan.report.table_params,
        code=code("report.compare_judges"),
        further=plan.report.further_kinds,
        leading=plan.config.leading,
    script:
        "../workflow_scripts/report/compare_judges.py"


rule draw_scores:
    """Draw what is composed, the scores, held-out pairs, and the judges' training."""
    input:
        judges=plan.judge.of_composition,
        scores="<results>/scores.parquet",
        by_pair="<results>/pairs.csv",
    output:
        **{
            name: report(
                path,
                caption=caption(name),
                category="Figures",
                subcategory="{composition}",
                labels={"figure": name},
            )
            for name, path in plan.report.figures.items()
        },
    log:
        "<logs>/report/{composition}/draw_scores.log",
    benchmark:
        "<logs>/report/{composition}/draw_scores.benchmark.tsv"
    conda:
        "../envs/base.yaml"
    params:
        code=code("report.draw_scores"),
        dataset=plan.dataset,
        reference=plan.config.reference,
        seed=plan.config.seed,
    script:
        "../workflow_scripts/report/draw_scores.py"


rule make_page:
    """Write the page of all results, with a gallery."""
    input:
        scores=branch(plan.config.scored, then="<results>/scores.parquet"),
        comparisons=branch(plan.config.scored, then="<results>/comparisons.csv"),
        by_pair=branch(plan.config.scored, then="<results>/pairs.csv"),
        figures=plan.report.shown_figures,
        shown=plan.page_inputs,
        templates=page_templates("report", "divergence", "score", "split", *plan.report.sections),
    output:
        page=report(
            "<results>/report.html",
            caption=caption("page"),
            category="Scores",
            labels={"table": "the page to read"},
        ),
    log:
        "<logs>/report/make_page.log",
    benchmark:
        "<logs>/report/make_page.benchmark.tsv"
    conda:
        "../envs/base.yaml"
    params:
        **plan.report.table_params,
        code=code("report.make_page", *plan.report.section_modules),
        sections=plan.report.sections,
        about=plan.generate.descriptions,
        examples=plan.config.report.examples,
        seed=plan.config.seed,
        source=plan.config.dataset.source,
        settings=plan.report.deciding_settings,
    script:
        "../workflow_scripts/report/make_page.py"


rule list_entries:
    """Write the page of all judged images, with prompts and ranks."""
    input:
        plan.report.examples,
        plan.pairs.tables,
        templates=page_templates("report"),
    output:
        page=report(
            "<results>/entries.html",
            caption=caption("entries"),
            category="Scores",
            labels={"table": "every judged image"},
        ),
        data=directory("<results>/entries"),
    log:
        "<logs>/report/list_entries.log",
    benchmark:
        "<logs>/report/list_entries.benchmark.tsv"
    conda:
        "../envs/base.yaml"
    resources:
        mem_mb=4000,
    params:
        **plan.report.entry_params,
        code=code("report.list_entries"),
        judges=plan.judges,
    script:
        "../workflow_scripts/report/list_entries.py"
