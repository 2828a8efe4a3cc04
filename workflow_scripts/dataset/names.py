"""Types of settings that name files: below a folder, at an address, or published under a name."""

from typing import Annotated

from pydantic import BeforeValidator

SHA256 = r"^[0-9a-fA-F]{64}$"


def _checked(value: object) -> object:
    names = value if isinstance(value, list) else [value]
    if value is not None and not (names and all(isinstance(name, str) and name for name in names)):
        raise ValueError("expected a name or an address, or a list of them")
    return value


# In the config: a name below the root, an address, or several.
Names = Annotated[str | list[str], BeforeValidator(_checked)]
NamesOrNone = Annotated[str | list[str] | None, BeforeValidator(_checked)]
