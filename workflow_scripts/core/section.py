"""The base of every section of the config."""

from __future__ import annotations

from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from workflow_scripts.core.errors import UserError

# What may be a folder in results/ and a wildcard of a rule.
NAME = r"^[A-Za-z0-9][A-Za-z0-9_-]*$"
# The type of an error (``PydanticCustomError``) at a value that is not to be shown: it may be a key.
SECRET = "secret"


class Section(BaseModel):
    """Unknown keys are refused, and nothing changes after the check."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())


Model = TypeVar("Model", bound=BaseModel)


def read_settings(kind: type[Model], text: str) -> Model:
    """The settings that a step is given as ``--settings``, in JSON. UserError names the first faulty key."""
    try:
        return kind.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"]))
        raise UserError(f"--settings: {key + ': ' if key else ''}{first['msg']}") from error
