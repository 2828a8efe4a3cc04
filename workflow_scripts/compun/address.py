"""Where a language model is asked, and what is never written down: its key is named, and stays in the environment."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from workflow_scripts.common.errors import UserError

# Of an environment variable that holds a key.
VARIABLE = re.compile(r"[A-Z][A-Z0-9_]{0,63}")
NOT_A_VARIABLE = (
    "the name of the key's environment variable has capitals, digits and _ alone, as OPENAI_API_KEY: "
    "give the name, never the key itself"
)


def endpoint(address: str) -> str:
    """Where questions go to, below an address as ``https://api.openai.com/v1``; UserError for what is none."""
    remedy = "give it as http://127.0.0.1:8080/v1, and a key by the environment alone"
    try:
        parts = urlsplit(address)
        host = parts.hostname
    except ValueError:
        raise UserError(f"the language model's address is none: {remedy}") from None
    if parts.username is not None or parts.query or parts.fragment:
        # Not quoted: it may hold a key.
        raise UserError(f"the language model's address holds more than a host and a path: {remedy}")
    if parts.scheme not in ("http", "https") or not host:
        raise UserError(f"{address}: no address of a language model: {remedy}")
    return address.rstrip("/").removesuffix("/chat/completions") + "/chat/completions"
