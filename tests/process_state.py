"""The settings of a process that belong to whoever calls the library."""

import csv
import locale
import logging
import os
import random
import signal
import sys
import warnings
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
import torch
from PIL import Image, ImageFile


def process_state() -> dict[str, Any]:
    """Return the settings of the process, comparable by ``==``; torch's random stream as a list."""
    log, root = logging.getLogger("compclip"), logging.getLogger()
    return {
        "argv": list(sys.argv),
        "csv": csv.field_size_limit(),
        "cudnn": (
            torch.backends.cudnn.allow_tf32,
            torch.backends.cudnn.benchmark,
            torch.backends.cudnn.enabled,
        ),
        "cwd": os.getcwd(),
        "environment": {
            name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"
        },
        "filled": torch.utils.deterministic.fill_uninitialized_memory,
        "hidden modules": [name for name, module in sys.modules.items() if module is None],
        "locale": locale.setlocale(locale.LC_ALL),
        "logging": (
            logging.raiseExceptions,
            root.level,
            list(root.handlers),
            logging.root.manager.disable,
        ),
        "matplotlib": dict(matplotlib.rcParams),
        "numpy": (np.geterr(), str(np.random.get_state()), np.get_printoptions()),
        "our log": (log.level, list(log.handlers), list(log.filters), log.disabled, log.propagate),
        "pandas": [
            pd.get_option(f"display.{name}") for name in ("max_rows", "max_columns", "precision")
        ],
        "path": list(sys.path),
        "pillow": (Image.MAX_IMAGE_PIXELS, ImageFile.LOAD_TRUNCATED_IMAGES),
        "random": random.getstate(),
        "signals": {
            name: signal.getsignal(name) for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        },
        "torch": (
            torch.get_num_threads(),
            torch.get_deterministic_debug_mode(),
            torch.get_default_dtype(),
        ),
        "torch's random stream": torch.get_rng_state().tolist(),
        "warnings": list(warnings.filters),
    }


def changes(before: dict[str, Any], after: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return what differs, by its name."""
    return {name: (value, after[name]) for name, value in before.items() if after[name] != value}
