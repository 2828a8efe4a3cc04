"""The logger of the library; who uses the library decides where its lines go."""

import logging

log = logging.getLogger("compclip")
# Set by ``make run``, which shows progress, the error of a step and results itself.
UNDER_RUN = "COMPCLIP_RUN"
