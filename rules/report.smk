# report: the table, the figures, the page.
# Needs the scores of all generators, and for figures and examples what they were made of. Gives the table, as data
# and to read, the comparisons, the figures and the page; Snakemake's own report shows them too.


report: "../workflow_scripts/report/captions/workflow.rst"


rule make_table:
    """Gather all scores in the table, compare them, and print it."""
    input:
        scores=all_scores,
        swapped=expand(RESULTS + "/{dataset}/{composition}/swapped.parquet", **ALL_COMPOSITIONS),
    output:
        csv=RESULTS + "/table.csv",
        md=RESULTS + "/table.md",
        tex=RESULTS + "/table.tex",
        comparisons=RESULTS + "/comparisons.csv",
    params:
        code=code_hash("workflow_scripts.report.make_table"),
        dataset=DATASET,
        compositions=CONFIG.compositions,
        generators=list(GENERATORS),
        oracle=oracle_generators(),
        chunks=CONFIG.score.chunks,
        bootstrap=CONFIG.score.bootstrap,
        results=RESULTS,
    log:
        LOGS + "/make_table.log",
    benchmark:
        LOGS + "/make_table.benchmark.tsv"
    conda:
        "../envs/base.yaml"
    threads: 1
    resources:
        mem_mb=2000,
    shell:
        "python -m workflow_scripts.report.make_table --results {params.results:q} --dataset {params.dataset:q}"
        " --compositions {params.compositions:q} --generators {params.generators:q} --oracle {params.oracle:q}"
        " --chunks {params.chunks} --bootstrap {params.bootstrap} --output {params.results:q} --log {log:q}"
