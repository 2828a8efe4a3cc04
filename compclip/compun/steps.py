"""The steps of stage compun: their inputs, outputs and settings."""

import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator
from pydantic_core import PydanticCustomError

from compclip.compun.config import Bootstrap, CompunConfig, Drawn, NamedModel, People
from compclip.core.section import SECRET
from compclip.core.step import Cache, Input, Key, Output, Seed, Step, Threads
from compclip.human.steps import Answers, Consent, Keep, SamplesTasks, Tasks
from compclip.plot.steps import MakeSectionPage

CompoundsTable = Annotated[Input, Field(description="compounds.parquet")]
ImagesTable = Annotated[Input, Field(description="images.parquet")]
ImageFolder = Annotated[Input, Field(description="folder that the image paths are relative to")]
Resamples = Annotated[Bootstrap, Key("compun.bootstrap")]


class DrawCompounds(Step):
    """Draw compounds: a list of them, three images of each, texts about them, and pictures to train small CLIPs on.

    A compound's picture shows one of its two things changed, both, or neither. Of the two training sets only
    ``taught`` has pictures of the tested compounds; both have single things, two things side by side, and other
    compounds of the same kinds.
    """

    drawn: Annotated[Drawn, Key("compun.drawn")] = Drawn()
    seed: Seed
    results: Path = Field(description="folder that the image paths are relative to")
    folder: Path = Field(description="folder below --results for all that is drawn")


class LoadCompounds(Step):
    """Read compound nouns and three images of each: of the compound, and of each of its two nouns.

    The list is a table with the column compound and, optionally, first, second, kind (either, both, none), n1 and n2.
    The images are named after the compound (``snow ball.jpg``), with ``_n1`` and ``_n2`` for the two nouns. A compound
    is incomplete if an image is missing or unreadable; incomplete ones are counted and named, and so are images that
    are not used.
    """

    file: Input = Field(description="the list")
    source: Input = Field(description="folder of the images")
    compounds: Output = Field(description="compounds.parquet")
    images: Output = Field(description="images.parquet, paths relative to --files")
    files: Output = Field(description="folder for the images")
    summary: Output = Field(description="compounds.json")


class AskCaptions(Step):
    """Ask a language model for example captions or descriptions of compounds, once.

    The texts are kept in a JSON file from compounds to their texts, which is saved after each answer: compounds that
    are in it are not asked for again, so that a run that was killed resumes. The server has OpenAI's interface; its API
    key is read from an environment variable and never written or shown.
    """

    compounds: Input = Field(description="list of compounds, as for load_compounds")
    kind: Literal["captions", "descriptions"] = Field("captions", description="which texts")
    count: int = Field(5, ge=1, le=20, description="texts of each compound")
    base_url: str = Field("https://api.openai.com/v1", description="address of a server with OpenAI's interface")
    model: str = Field(min_length=1, description="the model's name on the server")
    key: str = Field("OPENAI_API_KEY", description="name of the environment variable that holds the API key")
    texts: Path = Field(description="JSON file of texts, made or continued")

    @field_validator("key", "base_url", mode="before")
    @classmethod
    def _holds_no_key(cls, value: Any, info: Any) -> Any:
        pattern, form = {
            "key": (r"[A-Z][A-Z0-9_]*", "the name of an environment variable"),
            "base_url": (r"https?://[^@?#\s]+", "an address such as http://127.0.0.1:8080/v1"),
        }[info.field_name]
        if not re.fullmatch(pattern, str(value)):
            raise PydanticCustomError(SECRET, f"expected {form}; give the key by the environment only")
        return value


class Classify(Step):
    """Ask each model, by each prompt, which of three images shows a compound.

    The prompts are the template, its nouns reversed, 1 to 7 example captions, and descriptions. Each distinct image and
    text is encoded once, and embeddings are cached.

    Writes choices.parquet (a row a compound, model and prompt) and choices.json (the models, the prompts, and the
    compounds that lack texts for one).
    """

    compounds: CompoundsTable
    images: ImagesTable
    folder: ImageFolder
    captions: Input | None = Field(None, description="table of example captions (JSON or CSV)")
    descriptions: Input | None = Field(None, description="table of descriptions (JSON or CSV)")
    models: list[NamedModel] = Field(
        min_length=1,
        description='JSON, such as [{"open_clip": "ViT-L-14", "pretrained": "openai"}, {"judge": "FOLDER"},'
        ' {"transformers": "Salesforce/blip-itm-base-coco", "name": "BLIP"}]',
    )
    device: Annotated[str, Key("compun.device"), CompunConfig.model_fields["device"]] = "auto"
    threads: Threads
    cache: Cache
    choices: Output = Field(description="folder for the tables")


class AnalyzeChoices(Step):
    """Compute how often each model chooses the compound's image, by prompt, and test the differences.

    Writes one table: model, prompt, measure, value with its interval, number of compounds, and a p-value for
    differences (McNemar's test with Holm's correction).
    """

    compounds: CompoundsTable
    choices: Input = Field(description="folder that classify wrote")
    people: Input | None = Field(None, description="people.json, if people were asked")
    bootstrap: Resamples
    seed: Seed
    analysis: Output = Field(description="CSV table")


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

    The answers of workers who miss too many tasks with a known answer are excluded and counted; artifacts name no
    worker. Human accuracy is the mean of the workers' own, as in the paper's table 1.
    """

    tasks: Tasks
    answers: Answers
    keep: Annotated[float, Key("compun.human.keep"), Keep]
    bootstrap: Resamples
    seed: Seed
    people: Output = Field(description="people.json")
    by_compound: Output = Field(description="items.csv: votes and majority of each compound and kind")
    by_worker: Output = Field(description="workers.csv")


class DrawCompun(MakeSectionPage):
    """Draw accuracy by model and prompt, by the number of example captions, and wrong answers by kind; write pages.

    The paper's figures are shown next to ours where it prints them as numbers.
    """

    analysis: Input = Field(description="analysis.csv")
    text: Output = Field(description="Markdown table")
    accuracy: Output = Field(description="SVG: accuracy by model and prompt")
    examples: Output = Field(description="SVG: accuracy by the number of example captions")
    kinds: Output = Field(description="SVG: wrong answers by kind")
