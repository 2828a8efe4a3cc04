# The plan of the run, by whose names the rules are declared.
from workflow_scripts.places import packaged
from workflow_scripts.workflow.plan import RunPlan
from workflow_scripts.workflow.rule_values import (
    caption,
    code,
    growing,
    literal,
    one_of,
    page_templates,
    section,
    seed_in_path,
    undecisive,
)

plan = RunPlan(CONFIG)
OUTPUTS = plan.outputs


# Placeholders in the rules' paths: <dataset> is the data set's folder in <results>, <judged> the
# folder of its judges.
pathvars:
    results=plan.results,
    dataset=plan.data,
    logs=f"{plan.results}/logs",
    judged=plan.judged,
    training=f"{plan.results}/logs/judge{plan.judged.removeprefix(plan.data)}",


wildcard_constraints:
    composition=one_of(plan.compositions),
    generator=one_of(plan.generators),
    judge=one_of(plan.judge.trained),
    shard="[0-9]+",
    shards="[0-9]+",
    # The folder of the pairs of a composition with its own lexicons; "" for those that share the
    # data set's.
    own=f"(({'|'.join(plan.pairs.unshared)})/)?",
