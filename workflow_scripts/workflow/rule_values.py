"""Values of inputs, params and resources of rules that do not depend on the config."""

from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeVar

from pydantic import BaseModel

from compclip.clip.config import ModelConfig
from compclip.core.identity.code import ROOT, code_hash
from workflow_scripts.places import packaged, users_or_shipped


class Wildcards(Protocol):
    """The values of a job's wildcards, as Snakemake gives them to functions of rules."""

    def __getattr__(self, name: str) -> str: ...

    def __getitem__(self, name: str) -> str: ...

    def get(self, name: str, default: str = "") -> str: ...

    def keys(self) -> Iterable[str]: ...


# Snakemake passes further arguments by name: they must be called ``input`` and ``attempt``.
ByWildcards = Callable[[Wildcards], Any]
ByInput = Callable[[Wildcards, Any], Any]
ByAttempt = Callable[[Wildcards, int], int]
Model = TypeVar("Model", bound=ModelConfig)


def code(script: str, *modules: str) -> str:
    """Return the identity of the code of ``stage.script``, and of further modules that decide its
    result.
    """
    return code_hash(f"workflow_scripts.{script}", *modules)


def with_shipped_table(config: Model) -> Model:
    """Return the settings of a model with the path of a rename table that comes with the
    workflow.
    """
    if config.tower is None or config.tower.rename is None:
        return config
    table = users_or_shipped(config.tower.rename)
    return config.model_copy(update={"tower": config.tower.model_copy(update={"rename": table})})


def section(model: BaseModel, kind: type[BaseModel] | None = None) -> dict[str, Any]:
    """Return a section of the config as a param; with a model ``kind``, only the keys that it
    declares.
    """
    keys = set(kind.model_fields) if kind else None
    return model.model_dump(mode="json", include=keys)


def literal(value: Any) -> ByWildcards:
    """Return a param with a text of the user's, in which Snakemake would otherwise read words in
    braces as wildcards.
    """
    return lambda wildcards: value


def undecisive(value: Any) -> ByInput:
    """Return a param whose change does not rerun a rule: Snakemake does not compare params that
    depend on inputs.
    """
    return lambda wildcards, input: value


def growing(amount: int) -> ByAttempt:
    """Return the memory or time to request: ``amount``, and as much again for each retry."""
    return lambda wildcards, attempt: amount * attempt


def seed_in_path(wildcards: Wildcards) -> int:
    """Return the seed that is part of a job's paths."""
    return int(wildcards.seed)


def gpus(device: str) -> int:
    """Return the number of GPUs of a step that runs a model: one, or none on the CPU.

    A step with the device ``auto`` asks for a GPU and runs without, if there is none.
    """
    return 0 if device == "cpu" else 1


def one_of(names: Iterable[str]) -> str:
    """Return a pattern of these names; without names, one that never matches.

    A pattern with ``?``, such as ``(?!)``, would not do, because addresses use this character.
    """
    return "|".join(names) or "$."


def page_templates(*stages: str) -> list[str]:
    """Return the templates of these stages, and those that all pages share."""
    folders = [ROOT / "compclip" / stage / "templates" for stage in ("plot", *stages)]
    files = [file for folder in folders for file in folder.iterdir()]
    return sorted(packaged(str(file.relative_to(ROOT))) for file in files)


def caption(name: str) -> str:
    """Return the text that Snakemake's own report shows beside an output."""
    return str(ROOT / "compclip" / "report" / "captions" / f"{name}.rst")
