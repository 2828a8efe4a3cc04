"""The steps of stage split: their inputs, outputs and settings."""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from compclip.core.step import HalvesSeed, Input, Key, Output, SplitSeed, Step
from compclip.split.config import Divergence, Draw, Draws, PerImage, PromptRule, TestSeen, TrainOn, Violations
from compclip.text.lexicon import COMPOUNDS

Captions = Annotated[Input, Field(description="captions.parquet")]
Images = Annotated[Input, Field(description="images.parquet")]
Pairs = Annotated[Input, Field(description="pairs.parquet")]
Ranking = Annotated[Input, Field(description="ranking.parquet")]
Heldout = Annotated[Input, Field(description="heldout.json")]
Splits = Annotated[Input, Field(description="splits.parquet")]
Swapped = Annotated[Input, Field(description="swapped.parquet")]
Prompts = Annotated[Input, Field(description="prompts.parquet")]
Adjectives = Annotated[Input, Field(description="the composition's lexicon (YAML)")]
KnownNouns = Annotated[Input | None, Field(description="noun lexicon (YAML); without it only held-out nouns are known")]
PairsNouns = Annotated[Input | None, Field(description="noun lexicon (YAML); without it only nouns in pairs are known")]
Compounds = Annotated[Input, Field(description="lexicon of compound nouns (YAML)")]


class CompositionStep(Step):
    """The base of steps whose seeds or messages depend on data set and composition."""

    dataset: str = Field(description="name of the data set")
    composition: str = Field(description="name of the composition")

    @property
    def where(self) -> str:
        return f"{self.dataset}/{self.composition}"


class DivideImages(CompositionStep):
    """Divide the images so that train and test diverge in their pairs, and hardly in their adjectives and nouns.

    Follows DBCA (Keysers et al. 2020), with images as samples: an image goes with all its captions.
    """

    captions: Captions
    pairs: Pairs
    ranking: Ranking
    divergence: Annotated[Divergence, Key("split.divergence")] = Divergence()
    seed: SplitSeed
    division: Output = Field(description="division.parquet")
    summary: Output = Field(description="division.json: target and result")


class SampleHeldout(CompositionStep):
    """Draw the pairs that are held out from the middle of the ranking, or take listed, published or missing ones.

    Paper, section "Compositional Split Generation": 10 % of the unique pairs, sampled between the 25th and the 75th
    percentile of the list sorted by frequency. With a division by divergence: the pairs missing from train.
    """

    ranking: Ranking
    draw: Annotated[Draw, Key("split.heldout")] = Draw()
    listed: list[str] = Field([], description="hold out these pairs (adjective_noun) instead of drawing")
    published: Path | None = Field(None, description="hold out the pairs of this split.pkl instead of drawing")
    adjectives: Input | None = Field(None, description="with listed or published: the composition's lexicon (YAML)")
    nouns: Input | None = Field(None, description="likewise, the noun lexicon (YAML), if there is one")
    division: Input | None = Field(None, description="division.parquet: hold out the pairs missing from its train")
    pairs: Input | None = Field(None, description="with listed or division: pairs.parquet")
    seed: SplitSeed
    heldout: Output = Field(description="heldout.json")


class MakeSplits(CompositionStep):
    """Divide the images into train, test_seen and test_unseen, or take a published division, or one by divergence.

    An image of test_unseen has a held-out pair in some caption; test_seen is drawn from the rest.
    """

    captions: Captions
    pairs: Pairs
    ranking: Ranking
    heldout: Heldout
    test_seen: Annotated[TestSeen, Key("split.test_seen")]
    published: Path | None = Field(None, description="take the images of this split.pkl instead of drawing")
    division: Input | None = Field(None, description="take the sides of this division.parquet instead of drawing")
    adjectives: Adjectives
    nouns: KnownNouns = None
    compounds: Compounds = COMPOUNDS
    seed: SplitSeed
    splits: Output = Field(description="splits.parquet")
    csv: Output = Field(description="the same as CSV")
    summary: Output = Field(description="splits.json: counts")


class SwapAdjectives(CompositionStep):
    """Swap adjectives in the captions of test_seen so that each changed pair is held out, or take published swaps."""

    captions: Captions
    pairs: Pairs
    heldout: Heldout
    splits: Splits
    adjectives: Adjectives
    nouns: PairsNouns = None
    compounds: Compounds = COMPOUNDS
    published: Path | None = Field(None, description="take the swapped captions of this data.pkl")
    seed: SplitSeed
    swapped: Output = Field(description="swapped.parquet")
    summary: Output = Field(description="swapped.json: counts")


class MakePrompts(CompositionStep):
    """List the images that every generator is asked to make: a caption, and the file name of its image.

    prompts.jsonl is for people with their own model: for each line, draw ``text`` and save the image as ``file_name``
    in a folder, which the generator kind ``folder`` reads.
    """

    captions: Captions
    images: Images
    pairs: Pairs
    ranking: Ranking
    heldout: Heldout
    splits: Splits
    swapped: Swapped
    prompt_rule: Annotated[PromptRule, Key("split.prompts")]
    draws: Annotated[Draws, Key("split.draws")]
    per_image: Annotated[PerImage, Key("split.per_image")]
    train_on: Annotated[TrainOn, Key("judge.train_on")]
    candidates: Annotated[
        int | None, Key("score.candidates", decides=False), Field(None, description="candidates that must be available")
    ]
    seed: SplitSeed
    halves: HalvesSeed
    prompts: Output = Field(description="prompts.parquet")
    jsonl: Output = Field(description="the same as JSON lines")
    summary: Output = Field(description="prompts.json: counts")
    widths: Output = Field(
        description="widths.json: prompts, images, pairs and half the expected width of the interval of each split"
    )


class MakeVariants(CompositionStep):
    """Make the variants of each prompt: its copies with every other ranked adjective of the noun in its pair."""

    captions: Captions
    pairs: Pairs
    ranking: Ranking
    swapped: Swapped
    prompts: Prompts
    adjectives: Adjectives
    nouns: PairsNouns = None
    variants: Output = Field(description="variants.parquet")


class Audit(CompositionStep):
    """Re-establish what the splits promise, from words and the lexicons' surface forms alone.

    Violations and suspicions are listed; ``accept_split`` refuses a split with violations.
    """

    captions: Captions
    heldout: Heldout
    splits: Splits
    swapped: Swapped
    adjectives: Adjectives
    nouns: KnownNouns = None
    compounds: Compounds = COMPOUNDS
    reports: list[Input] = Field([], description="of a published split: summaries of the steps that read it (JSON)")
    unused: Input = Field(description="splits.json, with the images of no split")
    violations: Annotated[Violations, Key("split.violations")] = "refuse"
    audit: Output = Field(description="audit.json")


class AcceptSplit(CompositionStep):
    """Refuse a split in which the audit found violations, unless split.violations is count."""

    audit: Input = Field(description="audit.json")
    is_published: bool = Field(False, description="the split is published, so its faults cannot be fixed here")
    accepted: Output = Field(description="written only for an accepted split (JSON)")


class Export(Step):
    """Write the splits in the published formats, and the train list for people who train generators.

    split.pkl: ``{"train": [...], "test_seen": [...], "test_unseen": [...], "heldout_pairs": [...]}``.
    data.pkl: ``{image_id: {caption_id: {"text", "swapped_text", "changes_made": {"noun", "original_adj",
    "new_adj"}}}}``, the last two only for a swapped caption; changes_made is the first change that makes its pair.
    """

    captions: Captions
    images: Images
    heldout: Heldout
    splits: Splits
    swapped: Swapped
    folder: Output = Field(description="folder for the files; an existing one is replaced")


class DrawSplits(CompositionStep):
    """Draw what the splits of a composition hold: the adjectives and nouns of each, and the swapped pairs.

    They replace the paper's figures 8 to 23. Every figure is an SVG that states its definition, its n and its seed.
    """

    pairs: Pairs
    ranking: Ranking
    splits: Splits
    swapped: Swapped
    prompts: Prompts
    dominant: int = Field(description="number of dominant swapped pairs")
    ratio: Annotated[float, Key("score.balance.ratio")] = Field(description="reduced to this multiple of the next")
    seed: SplitSeed
    adjectives: Output = Field(description="SVG: adjectives in each split")
    nouns: Output = Field(description="SVG: nouns in each split")
    swapped_pairs: Output = Field(description="SVG: swapped pairs, before and after balancing")
