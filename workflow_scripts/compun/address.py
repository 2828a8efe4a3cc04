"""Where a language model is asked, and what is never written down: its key is named, and stays in the environment."""

from __future__ import annotations

import re
from urllib.parse import unquote, urlsplit

from workflow_scripts.core.errors import UserError

# Of an environment variable that holds a key.
VARIABLE = re.compile(r"[A-Z][A-Z0-9_]{0,63}")
NOT_A_VARIABLE = (
    "the name of the key's environment variable has capitals, digits and _ alone, as OPENAI_API_KEY: "
    "give the name, never the key itself"
)
REMEDY = "give it as http://127.0.0.1:8080/v1, and a key by the environment alone"
# What a user may set for a server that wants no key ("none", "EMPTY") is no secret, and may stand in any text.
SECRET_LENGTH = 8


def endpoint(address: str) -> str:
    """Where questions go to, below an address as ``https://api.openai.com/v1``.

    Raises UserError, which never quotes the address, for what is none: it may hold a key.
    """
    try:
        parts = urlsplit(address)
        host, _ = parts.hostname, parts.port  # raises for a port that is no number, as in http://user:key/v1
    except ValueError:
        raise UserError(f"the language model's address is none: {REMEDY}") from None
    if not address.isprintable() or set("@;?# ") & set(address):
        raise UserError(f"the language model's address holds more than a host, a port and a path: {REMEDY}")
    if parts.scheme not in ("http", "https") or not host:
        raise UserError(f"no address of a language model: {REMEDY}")
    return address.rstrip("/").removesuffix("/chat/completions") + "/chat/completions"


def check_without(address: str, key: str | None) -> None:
    """Raises UserError, which quotes neither, for an address in which the key stands."""
    if key and len(key) >= SECRET_LENGTH and (key in address or key in unquote(address)):
        raise UserError(f"the language model's address holds the key: {REMEDY}")
