# report: the table, the figures, the page.
# Needs the scores of all generators and, for figures and examples, their inputs. Gives the table,
# as data and for readers, the comparisons, the figures and the page; Snakemake's own report shows
# them, too.


report: "../compclip/report/captions/workflow.rst"


rule make_table:
    """Gather all scores in the table, compare them, and print it."""
    input:
        scores=SCORES + ORACLE_SCORES,
        captions="<dataset>/captions.parquet",
        swapped=of_compositions("swapped.parquet"),
        ranking=of_compositions("ranking.parquet"),
        heldout=of_compositions("heldout.json"),
        divergence=of_compositions("divergence.parquet"),
        variants=of_compositions("variants.json"),
        fid=FIDS,
        healths=HEALTHS,
        templates=page_templates("report"),
    output:
        scores="<results>/scores.parquet",
        csv=in_report("<results>/scores.csv", "table", "Scores", table="every score"),
        table="<results>/table.csv",
        md="<results>/table.md",
        tex="<results>/table.tex",
        comparisons=in_report(
            "<results>/comparisons.csv", "comparisons", "Scores", table="differences"
        ),
        pairs=in_report("<results>/pairs.csv", "pairs", "Scores", table="scores by pair"),
        metrics="<results>/metrics.json",
    log:
        "<logs>/report/make_table.log",
    benchmark:
        "<logs>/report/make_table.benchmark.tsv"
    conda:
        "../envs/base.yaml"
    params:
        **READABLE,
        code=code("report.make_table"),
        oracle=ORACLE_GENERATORS,
        controls=CONTROLS,
        chunks=CONFIG.score.chunks,
    script:
        "../workflow_scripts/report/make_table.py"


rule draw_scores:
    """Draw what is composed, the scores, held-out pairs, and the judges' training."""
    input:
        judges=expand("<judged>/judges/{judge}", judge=CONFIG.judges, allow_missing=True),
        scores="<results>/scores.parquet",
        by_pair="<results>/pairs.csv",
    output:
        **SCORE_FIGURES,
    log:
        "<logs>/report/{composition}/draw_scores.log",
    benchmark:
        "<logs>/report/{composition}/draw_scores.benchmark.tsv"
    conda:
        "../envs/base.yaml"
    params:
        code=code("report.draw_scores"),
        dataset=DATASET,
        reference=CONFIG.reference,
        seed=CONFIG.seed,
    script:
        "../workflow_scripts/report/draw_scores.py"


rule make_page:
    """Write the page of all results, with examples."""
    input:
        scores=branch(not CAPTIONS_ALONE, then="<results>/scores.parquet"),
        comparisons=branch(not CAPTIONS_ALONE, then="<results>/comparisons.csv"),
        figures=SHOWN_FIGURES,
        shown=PAGE_READS,
        templates=page_templates("report", "divergence", "score", "split", *SECTIONS),
    output:
        page=in_report("<results>/report.html", "page", "Scores", table="the page to read"),
    log:
        "<logs>/report/make_page.log",
    benchmark:
        "<logs>/report/make_page.benchmark.tsv"
    conda:
        "../envs/base.yaml"
    params:
        **READABLE,
        code=code("report.make_page", *(f"workflow_scripts.{stage}.section" for stage in SECTIONS)),
        sections=SECTIONS,
        about={name: kind_of(name).ABOUT for name in GENERATORS if kind_of(name).ABOUT},
        examples=CONFIG.report.examples,
        seed=CONFIG.seed,
        source=CONFIG.dataset.source,
        settings=CONFIG.model_dump(mode="json", include=DECIDING),
    script:
        "../workflow_scripts/report/make_page.py"


rule list_entries:
    """Write the page of all judged images, with prompts and ranks."""
    input:
        EXAMPLES,
        PAIRS_READ,
        templates=page_templates("report"),
    output:
        page=in_report("<results>/entries.html", "entries", "Scores", table="every judged image"),
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
        **WHOLE_RUN,
        code=code("report.list_entries"),
        judges=CONFIG.judges,
    script:
        "../workflow_scripts/report/list_entries.py"
