"""What all stages of a run's plan share: folders, names, and inputs, params and resources of rules
in several stages (``plan``).
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from compclip.core.identity.fingerprint import fingerprint
from compclip.core.settings.section import COMPOSITION_FIELD
from compclip.generate.generator import load_kind
from compclip.judge.config import Training
from workflow_scripts.layout import Layout
from workflow_scripts.places import adjective_lexicons, lexicon_file, shipped
from workflow_scripts.workflow.config import Config
from workflow_scripts.workflow.rule_values import (
    ByWildcards,
    Wildcards,
    gpus,
    growing,
    literal,
    undecisive,
)

# An input: a path, several, or a function of the job's wildcards that returns them.
Input = str | list[str] | Callable[[Wildcards], str | list[str]]

# Artifacts in the folder of a composition, with the ending of their files.
COMPOSITION_FILES = {
    **dict.fromkeys(("ranking", "splits", "swapped", "prompts", "variants"), "parquet"),
    **dict.fromkeys(("heldout", "accepted"), "json"),
}


class BasePlan:
    """A run without its stages.

    Paths may contain wildcards, such as ``{composition}``. Params are functions where Snakemake
    would otherwise misread their text, or compare it (``rule_values``).
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        self.results = config.results
        self.dataset = config.dataset.name or config.dataset.source
        self.data = f"{self.results}/{self.dataset}"
        self.in_composition = f"{self.data}/{COMPOSITION_FIELD}"
        # The folder of the judges, shared by all compositions or for each.
        self.judged = self.data if config.judge.shared else self.in_composition

        self.compositions = config.compositions
        self.judges = config.members
        self.further_judges = {entry.name: entry for entry in config.judges}
        self.generators = {generator.name: generator for generator in config.generate.generators}
        self.kinds = {name: load_kind(entry.kind) for name, entry in self.generators.items()}
        self.layouts = {
            name: Layout(Path(self.results), self.dataset, name, config.judge.shared)
            for name in self.compositions
        }

        # Jobs with several threads run one after another: units of the resource ``torch``.
        self.torch_slots = 1 if config.threads > 1 else 0
        # The results folder is a function, because the linter mistakes a text at the beginning of
        # an output's path for a part of that path.
        self.results_param = literal(self.results)
        self.location_params = {"dataset": self.dataset, "results": self.results_param}
        # Which images the judges have seen.
        self.seen_params = {
            "train_on": config.judge.train_on,
            "judge_half": config.seeds.judge_half,
        }
        self.cache_param = undecisive(config.cache)
        self.parsing_params = {"model": literal(config.pairs.model), "cache": self.cache_param}

        self._fingerprints: dict[tuple[str | None, ...], str] = {}
        self._common_inputs = self._name_inputs()

    def _name_inputs(self) -> dict[str, Input]:
        inputs: dict[str, Input] = {"pairs": self.pairs_table, "forms": self.noun_forms}
        inputs["files"] = f"{self.data}/images"
        for name in ("captions", "images"):
            inputs[name] = f"{self.data}/{name}.parquet"
        for name, ending in COMPOSITION_FILES.items():
            inputs[name] = f"{self.in_composition}/{name}.{ending}"
        inputs["adjectives"] = self.composition_lexicon
        # Without a lexicon, any noun counts.
        nouns = self.config.pairs.nouns
        inputs["nouns"] = lexicon_file("nouns", nouns) if nouns else []
        # Compounds that count as one noun.
        inputs["compounds"] = shipped("lexicons/compounds/common.yaml")
        return inputs

    # Inputs

    def input(self, name: str) -> Input:
        """Return a common artifact or lexicon as an input."""
        return self._common_inputs[name]

    def inputs(self, *names: str) -> dict[str, Input]:
        """Return common artifacts and lexicons as inputs of these names."""
        return {name: self.input(name) for name in names}

    def of_compositions(self, *names: str) -> list[str]:
        """Return these files of all compositions."""
        return [
            f"{self.data}/{composition}/{name}"
            for composition in self.compositions
            for name in names
        ]

    def in_each_composition(self, path: str) -> list[str]:
        """Return a path with each composition's name in place of {composition}."""
        return [path.replace(COMPOSITION_FIELD, name) for name in self.compositions]

    def of_judged(self, *names: str) -> list[str]:
        """Return these files of all compositions of a judge."""
        if self.config.judge.shared:
            return self.of_compositions(*names)
        return [f"{self.in_composition}/{name}" for name in names]

    def shards(self, stem: str, *endings: str) -> list[str]:
        """Return the files of all shards of the images; none if all images are one shard."""
        number = self.config.dataset.shards
        if number == 1:
            return []
        return [
            f"{self.data}/{stem}/{shard}-of-{number}.{ending}"
            for shard in range(1, number + 1)
            for ending in endings
        ]

    def pairs_table(self, wildcards: Wildcards) -> str:
        """Return the pairs of a composition."""
        return str(self.layouts[wildcards.composition].read / "pairs.parquet")

    def noun_forms(self, wildcards: Wildcards) -> str:
        """Return the summary of the pairs of a composition, with the forms of nouns."""
        return self.pairs_table(wildcards).removesuffix("parquet") + "json"

    def composition_lexicon(self, wildcards: Wildcards) -> str:
        """Return the adjective lexicon of a composition."""
        return lexicon_file("adjectives", wildcards.composition)

    def lexicons_of_pairs(self, wildcards: Wildcards) -> list[str]:
        """Return the adjective lexicons of a table of pairs, whose folder ``own`` is "" for shared
        pairs.
        """
        return adjective_lexicons(wildcards.own.rstrip("/"))

    def manifests(self, generators: Iterable[str]) -> list[str]:
        """Return the manifests of these generators for a composition."""
        return [f"{self.in_composition}/generated/{name}/manifest.parquet" for name in generators]

    def made_images(self, generators: Iterable[str]) -> list[str]:
        """Return the folders of the images of these generators for a composition."""
        return [f"{self.in_composition}/generated/{name}/images" for name in generators]

    def score_folders(self, judges: Iterable[str], generators: Iterable[str]) -> list[str]:
        """Return the scores of these generators by these judges, or by the oracle, for a
        composition.
        """
        names = list(generators)
        return [
            f"{self.in_composition}/scores/{judge}/{name}" for judge in judges for name in names
        ]

    # Params

    def contents_of(self, *paths: str | None) -> str:
        """Return a fingerprint of the user's files and folders, which are read once in a run."""
        if paths not in self._fingerprints:
            self._fingerprints[paths] = fingerprint(*paths, cache=self.config.cache)
        return self._fingerprints[paths]

    def contents(self, *paths: str | None) -> ByWildcards:
        """Return this fingerprint as a param that is computed when a job needs it.

        It reruns the rule when the content of a file changes.
        """
        return lambda wildcards: self.contents_of(*paths)

    def model_params(self, device: str) -> dict[str, Any]:
        """Return the params of a step that runs a model on this device."""
        return {"threads": self.config.threads, "device": device, "cache": self.cache_param}

    def training_params(self, judge: Training) -> dict[str, Any]:
        """Return the params of every training except code, settings and seed."""
        return {
            "processes": judge.gpus,  # each GPU has a process
            "threads": self.config.threads,
            "judge_half": self.config.seeds.judge_half,
            "results": self.results_param,
            "cache": self.cache_param,
        }

    # Resources

    def model_resources(self, device: str, memory: int, minutes: int = 60) -> dict[str, Any]:
        """Return the resources of a step that runs a model on this device, with ``memory`` in
        MB.
        """
        return {
            "mem_mb": growing(memory),
            "runtime": growing(minutes),
            "gpu": gpus(device),
            "torch": self.torch_slots,
        }

    def training_resources(self, judge: Training) -> dict[str, Any]:
        """Return the resources of a training, on one host; a machine without a GPU trains too."""
        resources = {
            "gpu": 0 if judge.device == "cpu" else judge.gpus,
            "mem_mb": growing(8000 * judge.gpus),
            "runtime": growing(720),
            "torch": self.torch_slots,
        }
        if judge.gpus > 1:
            resources["nodes"] = 1
        return resources
