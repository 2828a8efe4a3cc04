# runs: several runs in one, each with its own config and results folder.
# Needs the inputs of the runs. Gives their outputs, and one table of all their scores.
from contextlib import contextmanager


include: "common/config.smk"


from workflow_scripts.workflow.config import run_values

VALUES = run_values(config)
TABLES = [
    "scores.parquet",
    "scores.csv",
    "table.csv",
    "comparisons.csv",
    "pairs.csv",
    "table.md",
    "table.tex",
]


# Placeholders in the rules' paths.
pathvars:
    results=CONFIG.results,
    logs=f"{CONFIG.results}/logs",


@contextmanager
def errors_of(run):
    """Name the run in errors."""
    try:
        yield
    except WorkflowError as error:
        raise WorkflowError(f"runs.{run}: {error}")


# The rules of a run have its name as a prefix.
for RUN in CONFIG.runs:
    MODULE, PREFIX = f"run {RUN}", f"{RUN}_"

    module:
        name: MODULE
        snakefile:
            "../Snakefile"
        config:
            VALUES[RUN]

    with errors_of(RUN):

        use rule * from MODULE as PREFIX*


def of_run(run):
    """Return what rules/common.smk defines for a run."""
    return globals()[f"run {run}"]


# The folders of the runs that have a table; runs of captions without images have none.
SCORED = {run: of_run(run).RESULTS for run in CONFIG.runs if not of_run(run).CAPTIONS_ALONE}


# What each run makes, and the common table.
OUTPUTS = [output for run in CONFIG.runs for output in of_run(run).OUTPUTS]
OUTPUTS += [f"{CONFIG.results}/{name}" for name in TABLES if SCORED]


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
        code=code_hash("workflow_scripts.runs.join_tables"),
        runs=list(SCORED),
    script:
        "../workflow_scripts/runs/join_tables.py"
