"""The logger of the library; who uses the library decides where its lines go."""

import logging

log = logging.getLogger("compclip")
