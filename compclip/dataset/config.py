"""The config's ``dataset``: which source, and each source's own settings under its name."""

from typing import Any, Self

from pydantic import Field, create_model, field_validator, model_validator

from compclip.core.errors import UserError
from compclip.core.settings import plugins
from compclip.core.settings.section import NAME, Count, Section
from compclip.dataset.source import SOURCES, load_source


class _Dataset(Section):
    """The images and captions."""

    source: str = Field(
        "sketch", validate_default=True, description="a file in compclip/dataset/sources"
    )
    limit: Count | None = Field(None, ge=1, description="take only this many images")
    shards: Count = Field(
        1, ge=1, description="jobs that divide a step that reads all captions; results are the same"
    )
    name: str = Field(
        "", pattern=rf"{NAME}|^$", description="folder in results; empty: the source's name"
    )

    @field_validator("source")
    @classmethod
    def _known(cls, source: str) -> str:
        fault = plugins.unknown(SOURCES, source)
        if fault:
            raise ValueError(fault)
        # Loaded here, so that a fault of the module is an error of this key.
        try:
            load_source(source)
        except UserError as error:
            raise ValueError(str(error)) from error
        return source

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if getattr(self, self.source) is None:
            raise ValueError(f"source {self.source} needs its settings under dataset.{self.source}")
        return self


def _sources() -> dict[str, Any]:
    """Return a field for each source: its ``Settings``, optional if all of its fields have
    defaults.
    """
    fields: dict[str, Any] = {}
    for name in plugins.available(SOURCES):
        try:
            settings = load_source(name).Settings
        except UserError:  # the error of a config that chooses it
            continue
        is_required = any(field.is_required() for field in settings.model_fields.values())
        # None until the config has its section; ``_complete`` then asks for it.
        if is_required:
            fields[name] = (settings | None, None)
        else:
            fields[name] = (settings, Field(default_factory=settings))
    return fields


DatasetConfig = create_model(
    "DatasetConfig", __base__=_Dataset, __doc__=_Dataset.__doc__, **_sources()
)
