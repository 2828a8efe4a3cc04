"""The base of every section of the config, and settings that sections and commands share."""

import re
from pathlib import Path
from typing import Annotated, Any, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

# Valid names of folders in results/ and wildcards of rules.
NAME = r"^[A-Za-z0-9][A-Za-z0-9_-]*$"
NAME_RULE = "letters, digits, - and _, the first a letter or digit"
# The context in which a config is validated.
OF_CONFIG = "config"
NUMBER = re.compile(r"\s*[-+]?[\d._]+(e[-+]?\d+)?\s*", re.IGNORECASE)
# In paths of the config, replaced by the name of the composition.
COMPOSITION_FIELD = "{composition}"

# Numbers of things: more than that is a slip of the keyboard, and would exhaust memory or never
# end.
Count = Annotated[int, Field(le=1_000_000_000)]
SeedNumber = Annotated[int, Field(ge=0, le=2**63 - 1)]
Seed = Annotated[SeedNumber, Field(0, description="seed of every random choice")]
Threads = Annotated[
    int, Field(2, ge=1, le=1024, description="threads; changes floating-point rounding")
]
CacheFolder = Annotated[
    Path,
    Field(
        Path(".cache"), validate_default=True, description="folder of what steps reuse between runs"
    ),
]


class Section(BaseModel):
    """Base of sections; refuses unknown keys, and is immutable."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, protected_namespaces=(), allow_inf_nan=False
    )

    @field_validator("*", mode="before")
    @classmethod
    def _refuse_as_number(cls, value: Any, info: ValidationInfo) -> Any:
        """Refuse booleans, which Python takes for 0 and 1, and in a config (``OF_CONFIG``) numbers
        in quotation marks; options of commands are texts.
        """
        kinds = types_in(cls.model_fields[info.field_name or ""].annotation)
        is_number = int in kinds or float in kinds
        if not is_number or bool in kinds:
            return value
        for number in value if isinstance(value, list) else [value]:
            if isinstance(number, bool):
                raise ValueError("expected a number")
            # A field may take texts, too.
            is_quoted = isinstance(number, str) and NUMBER.fullmatch(number)
            if info.context == OF_CONFIG and is_quoted and str not in kinds:
                raise ValueError("expected a number; remove the quotation marks")
        return value


def types_in(annotation: Any) -> list[Any]:
    """Return the types that a field's annotation consists of."""
    inner = get_args(annotation)
    if not inner:
        return [annotation]
    return [kind for argument in inner for kind in types_in(argument)]


def sections_in(annotation: Any) -> list[type[Section]]:
    """Return the sections that a field's annotation consists of."""
    return [
        kind
        for kind in types_in(annotation)
        if isinstance(kind, type) and issubclass(kind, Section)
    ]
