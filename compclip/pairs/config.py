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
        description="rank a pair only if it occurs this often: rarer ones test nothing; 1 as "
        "published",
    )


class PairsConfig(Section):
    """The adjective-noun pairs of captions."""

    model: str = Field(
        "en_core_web_sm",
        description="spaCy pipeline; if it is not installed, its copy on PyPI is used",
    )
    nouns: str | None = Field(
        None, description="name in lexicons/nouns: only its nouns are ranked; null for any noun"
    )
    selection: Selection = Field(default_factory=Selection)
