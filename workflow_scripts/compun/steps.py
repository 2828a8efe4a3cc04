"""The steps of stage compun: their inputs, outputs and settings."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator

from workflow_scripts.compun.config import (
    Asked,
    Asking,
    Bootstrap,
    Compounds,
    Drawn,
    NamedModel,
    People,
    check_titles,
)  # fmt: skip
from workflow_scripts.core.step import Cache, Input, Key, Output, Seed, Step, Threads
from workflow_scripts.human.steps import Answers, Consent, Keep, SamplesTasks, Tasks
from workflow_scripts.plot.steps import MakeSectionPage

CompoundsTable = Annotated[Input, Field(description="compounds.parquet")]
ImagesTable = Annotated[Input, Field(description="images.parquet")]
ImageFolder = Annotated[Input, Field(description="folder that the image paths are relative to")]
Resamples = Annotated[Bootstrap, Key("compun.bootstrap")]


class DrawCompounds(Step):
    """Draw compounds: a list of them, three images of each, texts about them, and pictures to train small CLIPs on.

    A compound's picture shows one of its two things changed, both, or neither. Of the two training sets only
    ``taught`` has pictures of the tested compounds; both have single things, two things side by side, and other
    compounds of the same kinds.

    Writes list.csv and images/, which load_compounds reads, captions.json and descriptions.json, which ask_captions
    reads, drawn.json, and training/, which train_judge reads.
    """

    drawn: Annotated[Drawn, Key("compun.drawn")] = Drawn()
    seed: Seed
    results: Path = Field(description="folder that the image paths are relative to")
    folder: Path = Field(description="folder below --results for all that is drawn")


class LoadCompounds(Step):
    """Read compound nouns and three images of each: of the compound, and of each of its two nouns.

    The images lie in a folder or an archive, local or remote, and are named after the compound (``snow ball.jpg``),
    with ``_n1`` and ``_n2`` for the two nouns, in any image format; or the list has columns with their paths. The list
    selects: images of other compounds are skipped, counted and named. A compound is called what its images are called.
    Without a list, the image names are the list.

    A compound is incomplete if an image is missing or unreadable; incomplete ones are counted and named.
    """

    origin: Compounds = Field(Compounds(), description="the list and the images")
    take_unlisted: bool = Field(
        False, description="also take compounds that have all three images and are not listed, as for images: compun"
    )
    cache: Cache
    compounds: Output = Field(description="compounds.parquet")
    images: Output = Field(description="images.parquet, paths relative to --files")
    files: Output = Field(description="folder for the images")
    summary: Output = Field(description="compounds.json")


class AskCaptions(Step):
    """Collect example captions or descriptions of nouns: from a file, or by asking a language model.

    The file is JSON, {"garden hose": ["…", "…"]}, or a table (CSV, TSV, JSON lines, Parquet) with one text a row and
    the columns compound and caption (or description). For nouns that it lacks, the language model is asked: any server
    with OpenAI's interface, local ones included. Its API key is read from an environment variable and is never
    written. Every answer is cached as it arrives, so that an interrupted run resumes when it is run again.
    """

    kind: Literal["captions", "descriptions"] = Field("captions", description="which texts")
    compounds: Input = Field(description="compounds.parquet, or a list of nouns (.txt, .csv)")
    file: Input | None = Field(None, description="file of texts that exist already")
    ask: Asking = Field(Asking(), description="how the language model is asked")
    dry_run: bool = Field(False, description="only report how many requests are needed")
    cache: Cache
    texts: Output = Field(description="JSON from nouns to their texts")
    summary: Output = Field(description="where the texts come from, and what is unusual (JSON)")


class Classify(Step):
    """Ask each model, by each prompt, which of three images shows a compound.

    The prompts are the template, its nouns reversed, example captions (1 to --asked.examples of them), descriptions;
    and each of these again by the ensemble of --asked.templates. Each distinct image and text is encoded once, and
    embeddings are cached.

    Writes choices.parquet (a row a compound, model and prompt), retrieval.parquet (the same with all images as
    candidates), models.json (which models were loaded, and why others were not) and choices.json (what was skipped).
    """

    compounds: CompoundsTable
    images: ImagesTable
    folder: ImageFolder
    captions: Input | None = Field(None, description="captions.json: example captions of each compound")
    descriptions: Input | None = Field(None, description="descriptions.json: descriptions of each compound")
    models: list[NamedModel] = Field(
        min_length=1,
        description='JSON, such as [{"open_clip": "ViT-L-14", "pretrained": "openai"}, {"judge": "FOLDER"},'
        ' {"transformers": "Salesforce/blip-itm-base-coco", "name": "BLIP"}]',
    )
    asked: Annotated[Asked, Key("compun")] = Asked()
    threads: Threads
    cache: Cache
    choices: Output = Field(description="folder for the tables")

    @field_validator("models")
    @classmethod
    def _titles_differ(cls, models: list[NamedModel]) -> list[NamedModel]:
        return check_titles(models)


class AnalyzeChoices(Step):
    """Compute how often each model chooses the compound's image, by prompt, and test the differences.

    Writes tables (CSV): accuracy, with bootstrap intervals over compounds; comparisons of prompts and of models
    (McNemar's test with Holm's correction); kinds, by what the compound's picture shows of its nouns, if the list
    states it; retrieval, among all images; and beside, the paper's figures and ours.
    """

    compounds: CompoundsTable
    choices: Input = Field(description="folder that classify wrote")
    people: Input | None = Field(None, description="people.json, if people were asked")
    bootstrap: Resamples
    seed: Seed
    analysis: Output = Field(description="folder for the tables and summary.json")


class SampleCompunTasks(SamplesTasks):
    """Make a task for people of each complete compound: which of three pictures shows it; is it confusing?

    In ``confusing`` tasks the pictures have names, and people say whether they are hard to tell apart. Checks are
    those of stage human.
    """

    compounds: CompoundsTable
    images: ImagesTable
    folder: ImageFolder
    kinds: Annotated[list[str], Key("compun.human.kinds"), People.model_fields["kinds"]] = ["compound"]
    consent: Annotated[str | None, Key("compun.human.consent"), Consent] = None


class AnalyzePeople(Step):
    """Report how often people choose the compound's picture, how far they agree, and which compounds confuse them.

    The answers of workers who miss too many tasks with a known answer are excluded and counted; artifacts name nobody.
    Human accuracy is the mean of the workers' own, as in the paper's table 1.
    """

    tasks: Tasks
    answers: Answers
    keep: Annotated[float, Key("compun.human.keep"), Keep]
    bootstrap: Resamples
    seed: Seed
    people: Output = Field(description="people.json")
    by_compound: Output = Field(description="items.csv: votes and majority of each compound and kind")
    by_worker: Output = Field(description="workers.csv")


class DrawCompun(Step):
    """Draw accuracy by model and prompt, by the number of example captions, gains over the template, and by kind.

    The paper's figures are shown next to ours where it prints them as numbers.
    """

    analysis: Input = Field(description="folder that analyze_choices wrote")
    text: Output = Field(description="Markdown table")
    accuracy: Output = Field(description="SVG: accuracy by model and prompt")
    examples: Output = Field(description="SVG: accuracy by the number of example captions")
    gains: Output = Field(description="SVG: differences between prompts and models")
    kinds: Output = Field(description="SVG: wrong answers and similarities by kind")


class MakeCompunPage(MakeSectionPage):
    """Write the page about compound nouns: one file that fetches nothing."""
