# From captions and images to the CLIP-R-Precision table. Each stage is a file in rules/ and a
# package in compclip/ of the same name.
from snakemake.utils import min_version

min_version("9.27")


# Everything that can be checked before the first job.
onstart:
    check_jobs(workflow, config)


if config.get("runs"):

    # Several runs in one: this file, once for each.
    include: "rules/runs.smk"

else:

    include: "rules/common.smk"
    include: "rules/dataset.smk"
    include: "rules/pairs.smk"
    include: "rules/split.smk"
    include: "rules/divergence.smk"
    include: "rules/judge.smk"
    include: "rules/generate.smk"
    include: "rules/score.smk"
    include: "rules/report.smk"
    include: "rules/release.smk"
    include: "rules/targets.smk"

    if CONFIG.specs:

        include: "rules/specs.smk"

    if CONFIG.compun:

        include: "rules/compun.smk"

    if CONFIG.human:

        include: "rules/human.smk"


rule all:
    default_target: True
    input:
        OUTPUTS,
