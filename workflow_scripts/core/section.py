"""The base of every section of the config."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

# Names that may be a folder in results/ and a wildcard of a rule.
NAME = r"^[A-Za-z0-9][A-Za-z0-9_-]*$"
NAME_RULE = "letters, digits, - and _, the first a letter or digit"
# The type of an error (``PydanticCustomError``) at a value that must not be shown, because it may be an API key.
SECRET = "secret"


class Section(BaseModel):
    """Unknown keys are refused, and nothing changes after the check."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())
