"""The config's ``generate``."""

from typing import ClassVar

from pydantic import Field, field_validator

from compclip.core.settings import plugins
from compclip.core.settings.entries import PluginEntry
from compclip.core.settings.section import Section
from compclip.generate.generator import GENERATOR_KINDS, Kind, TrainingData, load_kind


class Generator(PluginEntry):
    """A name, or ``{name, kind, ...}`` with the settings of its kind beside them."""

    ENTRY: ClassVar[str] = "generator"
    KINDS: ClassVar[str] = GENERATOR_KINDS
    INTERFACE: ClassVar[type[plugins.Interface]] = Kind
    RENAMED: ClassVar[dict[str, str]] = {
        "habit": "usual_photographs",
        "stand_ins": "pair_photographs",
    }

    kind: str = Field(description="file in compclip/generate/generators; if absent, the name")
    training_data: TrainingData | None = Field(
        None,
        description="what the model was trained on; split: the train images of this split alone, "
        "which a verdict requires; null: unknown for folders and models",
    )

    @property
    def trained_on(self) -> TrainingData:
        """What the model was trained on."""
        return self.training_data or load_kind(self.kind).TRAINING_DATA


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
