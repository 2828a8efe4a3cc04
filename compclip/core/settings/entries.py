"""Entries of lists in the config whose kind is a module: generators and judges."""

import json
from typing import Any, ClassVar, Self

from pydantic import Field, model_validator

from compclip.core.errors import UserError
from compclip.core.settings import plugins
from compclip.core.settings.section import COMPOSITION_FIELD, NAME, Section


class PluginEntry(Section):
    """A name, or ``{name, kind, ...}`` with the settings of its kind beside them."""

    # Of subclasses: what an entry is called, the package of its kinds and what these define, and
    # earlier names of kinds.
    ENTRY: ClassVar[str]
    KINDS: ClassVar[str]
    INTERFACE: ClassVar[type[plugins.Interface]]
    RENAMED: ClassVar[dict[str, str]] = {}

    name: str = Field(pattern=NAME)
    kind: str
    options: dict[str, Any] = Field(default_factory=dict, description="the settings of the kind")

    @model_validator(mode="before")
    @classmethod
    def _expand(cls, value: Any) -> Any:
        """Move the settings of the kind, which are beside the name, to ``options``."""
        # A name alone is a kind without settings.
        if isinstance(value, str):
            value = {"name": value}
        if not isinstance(value, dict):
            return value
        # The kind is the name unless it is given.
        fields: dict[str, Any] = {"kind": value.get("name"), "options": {}}
        settings = {}
        for key, setting in value.items():
            if key in cls.model_fields:
                fields[key] = setting
            else:
                settings[key] = setting
        # Of another type, they are refused as such.
        if isinstance(fields["options"], dict):
            fields["options"] = fields["options"] | settings
        return fields

    @model_validator(mode="after")
    def _checked(self) -> Self:
        fault = plugins.unknown(self.KINDS, self.kind)
        if self.kind in self.RENAMED:
            fault = f"{self.kind!r}: renamed; write {self.RENAMED[self.kind]}"
        if fault:
            raise ValueError(fault)
        # A mistake in the settings is found when the config is read, not hours later.
        try:
            plugins.settings(self._interface, self.options, f"{self.ENTRY} {self.name!r}")
        except UserError as error:
            raise ValueError(str(error)) from error
        return self

    @property
    def _interface(self) -> plugins.Interface:
        return self.INTERFACE.of(plugins.load(self.KINDS, self.kind))

    def settings(self, composition: str) -> Any:
        """Return the checked settings of the kind; the composition's name replaces {composition} in
        texts.
        """
        # As JSON, which has the texts of any depth; the name without its quotes.
        name = json.dumps(composition)[1:-1]
        options = json.loads(json.dumps(self.options).replace(COMPOSITION_FIELD, name))
        return self._interface.Settings.model_validate(options)
