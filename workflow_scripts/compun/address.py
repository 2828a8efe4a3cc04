"""The address of a language model and the name of the variable that holds its key: neither may hold the key itself."""

import re
from urllib.parse import unquote, urlsplit

from workflow_scripts.core.errors import UserError

VARIABLE = re.compile(r"[A-Z][A-Z0-9_]{0,63}")
NOT_A_VARIABLE = (
    "expected the name of the key's environment variable (capitals, digits and _, such as OPENAI_API_KEY); "
    "give the name, never the key itself"
)
ADDRESS_FORM = "expected an address such as http://127.0.0.1:8080/v1; pass a key by the environment only"
# Shorter values are placeholders for servers that need no key ("none", "EMPTY"); they may appear in any text.
SECRET_LENGTH = 8


def endpoint(address: str) -> str:
    """Return the URL of chat completions below an address; a UserError never quotes it, since it may hold a key."""
    try:
        parts = urlsplit(address)
        host, _ = parts.hostname, parts.port  # raises if the port is not a number, as in http://user:key/v1
    except ValueError:
        raise UserError(f"invalid address of a language model; {ADDRESS_FORM}") from None
    if not address.isprintable() or set("@;?# ") & set(address):
        raise UserError(f"the language model's address holds more than a host, a port and a path; {ADDRESS_FORM}")
    if parts.scheme not in ("http", "https") or not host:
        raise UserError(f"not an address of a language model; {ADDRESS_FORM}")
    return address.rstrip("/").removesuffix("/chat/completions") + "/chat/completions"


def check_without(address: str, key: str | None) -> None:
    """Raise UserError, which quotes neither, if ``address`` holds ``key``."""
    if key and len(key) >= SECRET_LENGTH and (key in address or key in unquote(address)):
        raise UserError(f"the language model's address holds the key; {ADDRESS_FORM}")
