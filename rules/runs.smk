# runs: several runs in one, each with its own config and results folder.
# Needs the inputs of the runs. Gives their outputs, and one table of all their scores.
from workflow_scripts.workflow.config import run_values
from workflow_scripts.workflow.loading import errors_of_run
from workflow_scripts.workflow.plan import plans_of_runs
from workflow_scripts.workflow.rule_values import code

VALUES = run_values(config)
PLANS = plans_of_runs(config)
# The folders of the runs that have a table; runs of captions without images have none.
SCORED = {run: plan.results for run, plan in PLANS.items() if plan.config.scored}
TABLES = [
    "scores.parquet",
    "scores.csv",
    "table.csv",
    "comparisons.csv",
    "pairs.csv",
    "table.md",
    "table.tex",
]
# What each run makes, and the common table.
OUTPUTS = [output for plan in PLANS.values() for output in plan.outputs]
OUTPUTS += [f"{CONFIG.results}/{name}" for name in TABLES if SCORED]


# Placeholders in the rules' paths.
pathvars:
    results=CONFIG.results,
    logs=f"{CONFIG.results}/logs",


# The rules of a run have its name as a prefix.
for RUN in CONFIG.runs:
    MODULE = f"run {RUN}"
    PREFIX = f"{RUN}_"

    module:
        name: MODULE
        snakefile:
            "../Snakefile"
        config:
            VALUES[RUN]

    with errors_of_run(RUN):

        use rule * from MODULE as PREFIX*


rule join_tables:
    """Join the tables of all runs."""
    input:
        tables=expand("{folder}/{name}", folder=SCORED.values(), name=TABLES),
    output:
        joined=expand("<results>/{name}", name=TABLES),
    log:
        "<logs>/runs/join_tables.log",
    conda:
        "../envs/base.yaml"
    params:
        code=code("report.join_tables"),
        runs=list(SCORED),
    script:
        "../workflow_scripts/report/join_tables.py"
