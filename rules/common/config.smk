# The checked config, of one run or of several.
import os
import sys
from pathlib import Path

# Otherwise waiting threads of torch spin, which makes a step ten times as slow on shared cores.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
sys.path.insert(0, workflow.basedir)

from compclip.core.code import code_hash
from compclip.core.errors import UserError
from workflow_scripts.workflow.check import check_jobs
from workflow_scripts.workflow.config import load_config, read_values

try:
    # The files are read again, because Snakemake keeps the last of duplicate keys.
    for FILE in workflow.configfiles if workflow.is_main_process else []:
        read_values(Path(FILE))
    CONFIG = load_config(config)
except UserError as error:
    raise WorkflowError(str(error))

if CONFIG.container:

    containerized: CONFIG.container
