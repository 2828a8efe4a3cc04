"""The config's ``divergence``."""

from pydantic import Field

from compclip.core.settings.section import Count, Section


class Subgraphs(Section):
    """The finer definition of compounds: subgraphs of the dependency parse, as in CFQ."""

    nodes: int = Field(
        5, ge=2, le=8, description="maximum words of a connected subgraph; paths have any length"
    )
    keep: Count = Field(100_000, ge=1, description="number of heaviest compounds that count")


class DivergenceConfig(Section):
    """How far test is from train (DBCA)."""

    shuffles: Count = Field(10, ge=2, description="random splits of the same sizes to compare with")
    subgraphs: Subgraphs | None = Field(
        default_factory=Subgraphs, description="null: pairs only, without parsing every caption"
    )
