# report: the table, the figures, the page.
# Needs the scores of all generators, and for figures and examples what they were made of. Gives the table, as data
# and to read, the comparisons, the figures and the page; Snakemake's own report shows them too.


report: "../compclip/report/captions/workflow.rst"


rule make_table:
    """Gather all scores in the table, compare them, and print it."""
    input:
        scores=all_scores,
        swapped=expand("<dataset>/{composition}/swapped.parquet", composition=CONFIG.compositions),
        heldout=of_compositions("heldout.json"),
        divergence=of_compositions("divergence.parquet"),
        fid=all_fids(),
        healths=of_compositions(*health_files()),
        templates=page_templates("report"),
    output:
        scores="<results>/scores.parquet",
        csv=score_table("scores", "csv", "every score", caption="table"),
        table="<results>/table.csv",
        md="<results>/table.md",
        tex="<results>/table.tex",
        comparisons=score_table("comparisons", "csv", "differences"),
        pairs=score_table("pairs", "csv", "scores by pair"),
        metrics="<results>/metrics.json",
    log:
        "<logs>/report/make_table.log",
    benchmark:
        "<logs>/report/make_table.benchmark.tsv"
    conda:
        "../envs/base.yaml"
    params:
        **readable(),
        code=code("report.make_table"),
        oracle=oracle_generators(),
        chunks=CONFIG.score.chunks,
        bootstrap=CONFIG.score.bootstrap,
    script:
        "../workflow_scripts/report/make_table.py"


rule draw_scores:
    """Draw the scores, the falls from seen, also by pair, and the judges' training."""
    input:
        judges=expand("<dataset>/{{composition}}/judges/{judge}", judge=CONFIG.judges),
        scores="<results>/scores.parquet",
        differences="<results>/comparisons.csv",
        by_pair="<results>/pairs.csv",
    output:
        **figures(SCORE_FIGURES),
    log:
        "<logs>/report/{composition}/draw_scores.log",
    benchmark:
        "<logs>/report/{composition}/draw_scores.benchmark.tsv"
    conda:
        "../envs/base.yaml"
    params:
        code=code("report.draw_scores"),
        dataset=DATASET,
        seed=CONFIG.seed,
    script:
        "../workflow_scripts/report/draw_scores.py"


rule make_page:
    """Write the page that shows everything, with examples."""
    input:
        scores=page_tables("scores.parquet"),
        comparisons=page_tables("comparisons.csv"),
        figures=shown_figures,
        shown=page_reads(),
        templates=page_templates("report", "divergence", "score", "split", *SECTIONS),
    output:
        page=score_table("report", "html", "the page to read", caption="page"),
    log:
        "<logs>/report/make_page.log",
    benchmark:
        "<logs>/report/make_page.benchmark.tsv"
    conda:
        "../envs/base.yaml"
    params:
        **readable(),
        code=code("report.make_page", *(f"compclip.{stage}.section" for stage in SECTIONS)),
        sections=SECTIONS,
        about={name: kind_of(name).ABOUT for name in GENERATORS if hasattr(kind_of(name), "ABOUT")},
        examples=CONFIG.report.examples,
        seed=CONFIG.seed,
        source=CONFIG.dataset.source,
        settings=CONFIG.model_dump(mode="json", include=DECIDING),
    script:
        "../workflow_scripts/report/make_page.py"


rule list_entries:
    """Write the page of every judged image, with its prompt, its rank and the nearest wrong caption."""
    input:
        entries_read(),
        templates=page_templates("report"),
    output:
        page=score_table("entries", "html", "every judged image"),
        data=directory("<results>/entries"),
    log:
        "<logs>/report/list_entries.log",
    benchmark:
        "<logs>/report/list_entries.benchmark.tsv"
    conda:
        "../envs/torch.yaml"
    threads: CONFIG.threads
    resources:
        **judging(4000),
    params:
        **whole_run(),
        code=code("report.list_entries"),
        judge=CONFIG.judges[0],
        train_on=CONFIG.judge.train_on,
        halves=CONFIG.seeds.halves,
        batch=CONFIG.score.batch,
        threads=CONFIG.threads,
        device=CONFIG.judge.device,
        cache=undecisive(CONFIG.cache),
    script:
        "../workflow_scripts/report/list_entries.py"
