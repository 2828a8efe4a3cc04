"""The logger of the library; its users decide where the lines go."""

import logging

log = logging.getLogger("compclip")
# Set by ``make run``, which itself shows progress, results and the error of a step.
UNDER_RUN = "COMPCLIP_RUN"
