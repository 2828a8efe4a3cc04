# The checked config, of one run or of several.
import os
import sys

# Otherwise waiting threads of torch spin, which makes a step ten times as slow on shared cores.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
sys.path.insert(0, workflow.basedir)

from compclip.core.code import code_hash
from compclip.core.errors import UserError
from workflow_scripts.workflow.check import check_jobs
from workflow_scripts.workflow.config import snakemake_config

try:
    CONFIG = snakemake_config(config, workflow.configfiles if workflow.is_main_process else [])
except UserError as error:
    raise WorkflowError(str(error))

if CONFIG.container:

    containerized: CONFIG.container
