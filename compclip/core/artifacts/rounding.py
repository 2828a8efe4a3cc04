"""Round the numbers in artifacts, so that equal results give equal text."""

from collections.abc import Mapping
from typing import Any

import numpy as np

DECIMALS = 6


def rounded(value: float | None) -> float | None:
    """Return ``value`` rounded to the decimals of artifacts; None stays None."""
    return None if value is None else round(float(value), DECIMALS)


def json_values(value: Any) -> Any:
    """Return ``value`` for JSON: at every depth, floats rounded, NaN as None, and NumPy numbers as
    Python ones.
    """
    if isinstance(value, Mapping):
        return {key: json_values(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [json_values(inner) for inner in value]
    if isinstance(value, float | np.floating):
        return None if np.isnan(value) else round(float(value), DECIMALS) + 0.0
    return value.item() if isinstance(value, np.generic) else value
