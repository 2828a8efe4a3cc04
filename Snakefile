# From captions and images to the CLIP-R-Precision table. Each stage is a file in rules/ and a
# package in compclip/ of the same name.
import os
import sys

from snakemake.utils import min_version

min_version("9.27")

# Otherwise waiting threads of torch spin, which makes a step ten times as slow on shared cores.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
# This file's own folder; as a module, ``workflow.basedir`` is the importer's.
sys.path.insert(0, workflow.current_basedir.get_path_or_uri(secret_free=True))

from workflow_scripts.workflow.check import check_before_jobs
from workflow_scripts.workflow.loading import config_name, load_checked, needs_default_config

if needs_default_config(workflow):

    configfile: "config.yaml"


CONFIG = load_checked(workflow, config, __name__)
check_before_jobs(workflow, CONFIG, config_name(workflow, __name__))

if CONFIG.container:

    containerized: CONFIG.container


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


if plan.specs:

    include: "rules/specs.smk"


if plan.compun:

    include: "rules/compun.smk"


if plan.human:

    include: "rules/human.smk"


rule all:
    default_target: True
    input:
        OUTPUTS,
