# The published benchmark on birds and flowers, with one table of both (`make paper`). Which files are
# downloaded by hand, and where to put them: docs/published.md.
PRESETS = {
    name: {"base": f"presets/published_{name}.yaml", "results": f"results/presets/published_{name}"}
    for name in ("birds", "flowers")
}
RESULTS = "results/presets/published"
TABLES = [
    "scores.parquet",
    "scores.csv",
    "table.csv",
    "comparisons.csv",
    "pairs.csv",
    "table.md",
    "table.tex",
]


module birds:
    snakefile:
        "../Snakefile"
    config:
        PRESETS["birds"]


module flowers:
    snakefile:
        "../Snakefile"
    config:
        PRESETS["flowers"]


use rule * from birds as birds_*


use rule * from flowers as flowers_*


# A module's Snakefile puts the packages of the workflow on the path.
from workflow_scripts.workflow.rule_values import code


rule join_tables:
    """Join the tables of both data sets."""
    input:
        tables=expand(
            "{folder}/{name}",
            folder=[preset["results"] for preset in PRESETS.values()],
            name=TABLES,
        ),
    output:
        joined=expand(f"{RESULTS}/{{name}}", name=TABLES),
    log:
        f"{RESULTS}/logs/report/join_tables.log",
    conda:
        "../envs/base.yaml"
    params:
        code=code("report.join_tables"),
        runs=list(PRESETS),
    script:
        "../workflow_scripts/report/join_tables.py"


rule all:
    default_target: True
    input:
        rules.birds_all.input,
        rules.flowers_all.input,
        rules.join_tables.output,
