"""The plans of stages that run only if the config has their section (``plan``)."""

import os
from typing import Any, NamedTuple

from compclip.clip.config import ModelConfig
from compclip.compun.config import TRAININGS, CompunConfig
from compclip.human.config import HumanConfig, Sampling
from compclip.specs.config import SpecsConfig
from workflow_scripts.places import users_or_shipped
from workflow_scripts.workflow.rule_values import section, with_shipped_table


class LongCaptionFiles(NamedTuple):
    """Training captions and their images, growing test captions and their images."""

    captions: str
    images: str
    growing_captions: str
    growing_images: str


def _folder_of(file: str) -> str:
    return os.path.dirname(file) or "."


class SpecsPlan:
    """Stage specs: the CLIP that is stretched, its long captions, and what its page shows."""

    def __init__(self, config: SpecsConfig, results: str, dataset: str) -> None:
        self.config = config
        # The experiment runs once for each seed.
        self.folder = f"{results}/{dataset}/specs/{{seed}}"
        self.figure = f"{results}/figures/{dataset}_specs_measures.svg"
        self.long_captions = self._long_captions(f"{results}/{dataset}/images")
        base = with_shipped_table(config.base)
        self.model = section(base, ModelConfig)
        # Those that decide the initial weights.
        self.model_files = base.files()
        # The measures of all seeds, and the judges of the first, which the pages show.
        folders = [self.folder.format(seed=seed) for seed in config.seeds]
        self.intrinsic = [f"{folder}/intrinsic.json" for folder in folders]
        self.judges = [f"{folders[0]}/specs", f"{folders[0]}/stretched"]
        # Inputs of the page of a run, which has a section on long captions.
        self.page_files = [f"{results}/specs.csv", self.figure, *self.judges, self.intrinsic[0]]
        self.outputs = [f"{results}/specs.csv", f"{results}/specs.html"]

    def _long_captions(self, sketches: str) -> LongCaptionFiles:
        """Return the user's long captions, or descriptions of the sketches."""
        data = self.config.data
        if data is None:
            return LongCaptionFiles(
                f"{self.folder}/examples.parquet",
                sketches,
                f"{self.folder}/steps.parquet",
                sketches,
            )
        growing_images = data.increment_images or data.images
        return LongCaptionFiles(
            data.examples,
            data.images or _folder_of(data.examples),
            data.increments,
            growing_images or _folder_of(data.increments),
        )


class CompunPlan:
    """Stage compun: compounds, texts about them, models to ask, and what its page shows."""

    def __init__(self, config: CompunConfig, results: str, dataset: str) -> None:
        self.config = config
        self.folder = f"{results}/{dataset}/compun"
        self._plan_compounds()
        self._plan_models()
        # The user's files with answers of people.
        self.answers = config.human.answers if config.human else []

        self.figures = {
            name: f"{results}/figures/{dataset}_compun_{name}.svg"
            for name in ("accuracy", "examples", "kinds")
        }
        # Inputs of the stage's page, except its figures and the analysis.
        names = ["choices", "compounds.parquet", "images.parquet"]
        if self.is_drawn:
            names.append("drawn/list.csv")
        self.page_inputs = [f"{self.folder}/{name}" for name in names]
        # Inputs of the page of a run, which has a section on compound nouns.
        self.page_files = [*self.figures.values(), f"{self.folder}/analysis.csv", *self.page_inputs]
        self.outputs = [f"{results}/compun.md", f"{results}/compun.html"]
        if config.human:
            self.outputs.append(f"{self.folder}/human/tasks.json")

    def _plan_compounds(self) -> None:
        """Plan the compounds, their images and texts about them: the user's, or drawn ones."""
        config = self.config
        drawn = f"{self.folder}/drawn"
        # Whether the compounds are drawn, and small CLIPs trained on their pictures.
        self.is_drawn = config.compounds is None
        self.listed = f"{drawn}/list.csv"
        self.images = f"{drawn}/images"
        self.users_compounds: list[str] = []
        if config.compounds:
            self.listed = users_or_shipped(config.compounds.file)
            self.images = config.compounds.images
            self.users_compounds = [self.listed, self.images]

        # The user's texts; otherwise those of drawn compounds, or none.
        self.captions: str | list[str] = config.captions or []
        self.descriptions: str | list[str] = config.descriptions or []
        self.users_texts = [file for file in (config.captions, config.descriptions) if file]
        if self.is_drawn:
            self.captions = config.captions or f"{drawn}/captions.json"
            self.descriptions = config.descriptions or f"{drawn}/descriptions.json"

        # The artifacts of the compounds, as inputs.
        self.compounds = {
            "compounds": f"{self.folder}/compounds.parquet",
            "images": f"{self.folder}/images.parquet",
            "folder": f"{self.folder}/images",
        }
        # Training pictures of the small CLIPs.
        self.training_tables = [
            f"{drawn}/training/{name}.parquet" for name in ("captions", "images", *TRAININGS)
        ]

    def _plan_models(self) -> None:
        """Plan the models to ask: the small CLIPs, and the user's."""
        small_clips: dict[str, str] = {}
        if self.is_drawn:
            small_clips = {name: f"{self.folder}/judges/{name}" for name in TRAININGS}
        models = self.config.models
        self.users_models = [str(path) for model in models for path in model.places()]
        self.model_files = [*small_clips.values(), *self.users_models]
        self.models: list[dict[str, Any]] = [
            {"name": name, "judge": folder} for name, folder in small_clips.items()
        ]
        self.models += [model.model_dump(mode="json", exclude_none=True) for model in models]


class HumanPlan:
    """Stage human: the generators whose images people see, and how many tasks they get."""

    def __init__(self, config: HumanConfig, generators: list[str]) -> None:
        self.config = config
        self.generators = config.generators or generators
        self.sampling = section(config, Sampling)
        # Targets in the folder of each composition.
        self.outputs = ["human/tasks.json"]
        if config.answers:
            self.outputs.append("human/analysis.json")
