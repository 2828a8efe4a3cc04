"""The config's ``generate``."""

import json
from typing import Any, Self

from pydantic import Field, field_validator, model_validator

from compclip.core.errors import UserError
from compclip.core.settings import plugins
from compclip.core.settings.section import COMPOSITION_FIELD, NAME, Section
from compclip.generate.generator import GENERATOR_KINDS, TrainingData, load_kind

# Kinds of earlier versions, with their present names.
RENAMED_KINDS = {"habit": "usual_photographs", "stand_ins": "pair_photographs"}


class Generator(Section):
    """A name, or ``{name, kind, ...}`` with the settings of its kind beside them."""

    name: str = Field(pattern=NAME)
    kind: str = Field(description="file in compclip/generate/generators; if absent, the name")
    training_data: TrainingData | None = Field(
        None,
        description="what the model was trained on; split: the train images of this split alone, "
        "which a verdict requires; null: unknown for folders and models",
    )
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
        fault = plugins.unknown(GENERATOR_KINDS, self.kind)
        if self.kind in RENAMED_KINDS:
            fault = f"{self.kind!r}: renamed; write {RENAMED_KINDS[self.kind]}"
        if fault:
            raise ValueError(fault)
        # A mistake in the settings is found when the config is read, not hours later.
        try:
            plugins.settings(load_kind(self.kind), self.options, f"generator {self.name!r}")
        except UserError as error:
            raise ValueError(str(error)) from error
        return self

    @property
    def trained_on(self) -> TrainingData:
        """What the model was trained on."""
        return self.training_data or load_kind(self.kind).TRAINING_DATA

    def settings(self, composition: str) -> Any:
        """Return the checked settings of the kind; the composition's name replaces {composition} in
        texts.
        """
        # As JSON, which has the texts of any depth; the name without its quotes.
        name = json.dumps(composition)[1:-1]
        options = json.loads(json.dumps(self.options).replace(COMPOSITION_FIELD, name))
        return load_kind(self.kind).Settings.model_validate(options)


class GenerateConfig(Section):
    """The images to be judged."""

    generators: list[Generator] = Field(
        default_factory=lambda: [
            Generator(name=kind, kind=kind)
            for kind in ("photographs", "usual_photographs", "pair_photographs")
        ],
        description="none: only the captions are split",
    )

    @field_validator("generators")
    @classmethod
    def _distinct(cls, generators: list[Generator]) -> list[Generator]:
        names = [generator.name for generator in generators]
        # A generator's name is the folder of its images.
        repeated = [name for name in names if names.count(name) > 1]
        if repeated:
            raise ValueError(f"duplicate generator {repeated[0]!r}; give each a different name")
        return generators
