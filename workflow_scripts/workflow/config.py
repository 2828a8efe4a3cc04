"""The config: a typed model for each section, declared in its stage's ``config.py``.

Only the models define keys, with default, range and meaning. A config file is laid over their
defaults; unknown keys are refused.
"""

import json
import os
import re
from pathlib import Path
from typing import Any, Self

from pydantic import Field, ValidationError, ValidationInfo, field_validator, model_validator
from pydantic_core import ErrorDetails

from compclip.compun.config import CompunConfig
from compclip.core.errors import UserError, require
from compclip.core.identity.code import ROOT
from compclip.core.reading.documents import decode, nearest, no_such, parse_yaml
from compclip.core.settings.section import (
    COMPOSITION_FIELD,
    NAME,
    NAME_RULE,
    OF_CONFIG,
    CacheFolder,
    Section,
    Seed,
    SeedNumber,
    Threads,
    sections_in,
)
from compclip.dataset.config import DatasetConfig
from compclip.dataset.source import load_source
from compclip.divergence.config import DivergenceConfig
from compclip.generate.config import GenerateConfig
from compclip.generate.generator import load_kind
from compclip.human.config import HumanConfig
from compclip.judge.config import FurtherJudge, JudgeConfig, SeedsOfTraining
from compclip.pairs.config import PairsConfig
from compclip.release.config import ReleaseConfig
from compclip.report.config import ReportConfig
from compclip.score.config import ScoreConfig
from compclip.specs.config import SpecsConfig
from compclip.split.config import SplitConfig
from compclip.text.lexicon import SHARED
from workflow_scripts.places import WORKFLOW_ROOT, shipped
from workflow_scripts.root import workflow_version

# The longest mapping that an error message shows, in characters.
MAX_SHOWN = 100
# Branches of unions in the locations of pydantic's errors; others have brackets, such as
# ``literal['auto']``.
BRANCHES = {
    "str",
    "int",
    "float",
    "bool",
    "constrained-int",
    "constrained-str",
    "constrained-float",
}
# tables that only drawn birds have, and those that generators may read with every source
OF_SKETCHES = {"scenes", "facts"}
COMMON_TABLES = {"captions", "images", "pairs", "splits", "swapped", "prompts", "variants"}
# Keys that a config does not take from its base.
NOT_INHERITED = {"results", "release"}
# Sections whose files are inputs of rules, and what Snakemake takes for a wildcard in their paths.
WITH_INPUTS = {"pairs", "judge", "specs", "compun", "human"}
FREE_TEXTS: dict[str, Any] = {"human": {"consent"}, "compun": {"human": {"consent"}}}
WILDCARD = re.compile(r"\{\s*\w+\s*[,}]")
# a file or an address; Snakemake puts it into a command line
CONTAINER = r"^[\w./@+=,:~ -]+$"
# Keys of earlier versions, with their present names, and the present names of their values.
RENAMED: dict[str, tuple[str, dict[str, Any]]] = {
    "judge.share": ("judge.shared", {}),
    "score.health": ("score.max_bias", {}),
    "seeds.halves": ("seeds.judge_half", {}),
    "split.heldout.least": ("split.heldout.min_pairs", {}),
    "split.heldout.prefer": ("split.heldout.prefer_swappable", {"any": False, "swappable": True}),
    "split.violations": ("split.on_violation", {"refuse": "error", "count": "warn"}),
}
# Keys of earlier versions without a successor, with what to do instead.
REMOVED = {
    "runs": "write a Snakefile that imports the workflow once for each data set (docs/captions.md)"
}


class SeedsConfig(Section):
    """Seeds of parts of a run, to repeat it with a single random choice changed; null: `seed`."""

    world: SeedNumber | None = Field(None, description="what the source draws")
    split: SeedNumber | None = Field(None, description="held-out pairs, splits and swaps")
    judge_half: SeedNumber | None = Field(
        None, description="which half of the test images judges train on"
    )


class Config(Section):
    """A run of compclip."""

    base: str | None = Field(
        None,
        min_length=1,
        description="the config that this one is laid over, beside it, in the working folder or in "
        "the checkout; its results and release do not count",
    )
    version: str | None = Field(
        None, description="the version of compclip that the run needs; another one is refused"
    )
    seed: Seed
    # Validated also if absent, so that its seeds are completed.
    seeds: SeedsConfig = Field(default_factory=SeedsConfig, validate_default=True)
    threads: Threads
    results: str = Field("results", min_length=1, description="folder of the artifacts")
    cache: CacheFolder
    container: str | None = Field(
        None,
        pattern=CONTAINER,
        description="file or address of an image with all environments, for --sdm conda apptainer",
    )
    compositions: list[str] = Field(
        ["color", "shape"], min_length=1, description="names in lexicons/adjectives"
    )
    dataset: DatasetConfig = Field(default_factory=DatasetConfig)
    pairs: PairsConfig = Field(default_factory=PairsConfig)
    split: SplitConfig = Field(default_factory=lambda: SplitConfig.model_validate({}))
    divergence: DivergenceConfig = Field(default_factory=DivergenceConfig)
    judge: JudgeConfig = Field(default_factory=lambda: JudgeConfig.model_validate({}))
    judges: list[FurtherJudge] = Field(
        default_factory=list,
        description="judges of the same images, each {name, kind, ...} (docs/judges.md); the first "
        "leads, unless `judge` does",
    )
    generate: GenerateConfig = Field(default_factory=GenerateConfig)
    score: ScoreConfig = Field(default_factory=ScoreConfig)
    report: ReportConfig = Field(default_factory=ReportConfig)
    release: ReleaseConfig = Field(default_factory=lambda: ReleaseConfig.model_validate({}))
    specs: SpecsConfig | None = Field(None, description="null: no training with long captions")
    compun: CompunConfig | None = Field(None, description="null: no compound nouns")
    human: HumanConfig | None = Field(None, description="null: no study with people")

    @property
    def members(self) -> list[str]:
        """The names of the leading judge's members: their seeds."""
        return [str(seed) for seed in self.seeds_of(self.judge)]

    @property
    def leading(self) -> str:
        """The name of the leading judge in tables of several."""
        return self.judge.name

    def seeds_of(self, judge: SeedsOfTraining) -> list[int]:
        """Return the seeds of a judge's members."""
        # A verdict needs two members, and only trained ones differ by seed.
        default = 2 if self.judge.shared and judge.epochs else 1
        return judge.seeds or [*range(self.seed, self.seed + default)]

    @property
    def data_folder(self) -> Path:
        """The folder of the data set's artifacts."""
        return Path(self.results, self.dataset.name or self.dataset.source)

    def _of_kind(self, kind: str) -> str | None:
        """The name of the first generator of a kind; None if there is none."""
        names = (generator.name for generator in self.generate.generators if generator.kind == kind)
        return next(names, None)

    @property
    def reference(self) -> str | None:
        """The generator that shows what is asked; None if there is none."""
        kind = "faithful" if self.dataset.source == "sketch" else "photographs"
        return self.score.reference or self._of_kind(kind)

    @property
    def anchors(self) -> dict[str, tuple[str | None, str | None]]:
        """The reference and the usual pair of each split, between which what is composed is
        measured.
        """
        is_drawn = self.dataset.source == "sketch"
        # On seen prompts, a memorizer draws what is asked, so it is no lower anchor.
        usual_of_seen = self._of_kind("usual" if is_drawn else "usual_photographs")
        usual = self._of_kind("memorizer" if is_drawn else "usual_photographs")
        reference = self.reference
        reference_of_swapped = reference
        # The photographs of a data set show no swapped caption.
        kinds = {generator.name: generator.kind for generator in self.generate.generators}
        if reference and "test_swapped" not in load_kind(kinds[reference]).SPLITS:
            reference_of_swapped = self._of_kind("pair_photographs")
        return {
            "test_seen": (reference, usual_of_seen),
            "test_unseen": (reference, usual),
            "test_swapped": (reference_of_swapped, usual),
        }

    @property
    def training_data(self) -> dict[str, str]:
        """What each generator was trained on."""
        return {generator.name: generator.trained_on for generator in self.generate.generators}

    @property
    def scored(self) -> bool:
        """Whether images are generated and judged: the source has images, and there are
        generators.
        """
        settings = getattr(self.dataset, self.dataset.source)
        # Only the user's own captions may come without images, by ``images: null``.
        has_images = getattr(settings, "images", ...) is not None
        return has_images and bool(self.generate.generators)

    @field_validator("version")
    @classmethod
    def _this(cls, version: str | None) -> str | None:
        present = workflow_version()
        if version not in (None, present):
            raise ValueError(
                f"this is compclip {present}; install that version, or remove this line"
            )
        return version

    @model_validator(mode="before")
    @classmethod
    def _first_judge_leads(cls, values: Any) -> Any:
        """Take the first of ``judges`` for the leading one, unless ``judge`` is given."""
        if not isinstance(values, dict) or "judge" in values:
            return values
        judges = values.get("judges")
        # The model reports what is not a list of judges.
        if not isinstance(judges, list) or not judges or not isinstance(judges[0], dict | str):
            return values
        first, *further = judges
        if isinstance(first, str):
            first = {"name": first}
        leading = {key: value for key, value in first.items() if key != "kind"}
        kind = first.get("kind", first.get("name"))
        if kind is None:
            raise ValueError("judges.0: no name; write {name, kind, ...}")
        if kind != "clip":
            raise ValueError(
                f"judges: the first judge leads and needs embeddings, but is of kind {kind!r}; put "
                "one of kind clip first, or give judge"
            )
        return values | {"judge": leading, "judges": further}

    @field_validator("judges")
    @classmethod
    def _distinct(cls, judges: list[FurtherJudge], info: ValidationInfo) -> list[FurtherJudge]:
        names = [judge.name for judge in judges]
        # Absent if ``judge`` itself is faulty.
        if "judge" in info.data:
            names.append(info.data["judge"].name)
        repeated = [name for name in names if names.count(name) > 1]
        if repeated:
            raise ValueError(f"judge {repeated[0]!r}: name in use; give each another name")
        return judges

    @field_validator("seeds")
    @classmethod
    def _complete(cls, seeds: SeedsConfig, info: ValidationInfo) -> SeedsConfig:
        missing = [name for name, value in seeds if value is None]
        return seeds.model_copy(update=dict.fromkeys(missing, info.data.get("seed")))

    @field_validator("results", "cache", mode="before")
    @classmethod
    def _local(cls, folder: object) -> object:
        """Return the normalized folder; refuse one that contains the workflow or the working
        folder, or whose name would be misread.
        """
        if "://" in str(folder):
            raise ValueError(
                "expected a local folder; DVC copies results to other storage (docs/sharing.md)"
            )
        # The field's own type reports what is not a text.
        if not isinstance(folder, str) or not folder:
            return folder
        for other in (WORKFLOW_ROOT, Path.cwd()):
            if other.is_relative_to(os.path.realpath(folder)):
                raise ValueError(f"contains {other}; choose a folder such as results/x")
        # Unusual characters, and names that begin with "-", which look like options.
        misread = re.search(r"[^\w ./@+,=:-]|(?<![^/])-", folder)
        if misread:
            raise ValueError(
                f"{misread[0]!r} would be misread by Snakemake or a shell; rename the folder"
            )
        return os.path.normpath(folder)

    @field_validator("cache")
    @classmethod
    def _apart(cls, cache: Path, info: ValidationInfo) -> Path:
        """Refuse a cache among the artifacts, which are versioned and verified, and artifacts in
        the cache.
        """
        # Absent if ``results`` itself is faulty.
        results = info.data.get("results", "results")
        real_results = Path(results).resolve()
        real_cache = cache.resolve()
        if real_cache.is_relative_to(real_results) or real_results.is_relative_to(real_cache):
            raise ValueError(f"overlaps with results ({results}); choose another folder")
        return cache

    @field_validator("compositions")
    @classmethod
    def _known(cls, names: list[str]) -> list[str]:
        folder = "lexicons/adjectives"
        for name in SHARED:
            # Some steps of the library read these by their names.
            if folder != shipped(folder) and Path(folder, f"{name}.yaml").exists():
                raise ValueError(
                    f"{folder}/{name}.yaml: has the name of a lexicon of compclip; rename it"
                )
        files = [*Path(folder).glob("*.yaml"), *Path(shipped(folder)).glob("*.yaml")]
        lexicons = sorted({path.stem for path in files})
        for name in names:
            # The name is a part of paths and a wildcard of rules.
            if not re.fullmatch(NAME, name):
                raise ValueError(
                    f"{name!r}: a composition's name has {NAME_RULE}; rename its lexicon"
                )
            if name not in lexicons:
                allowed = f"{nearest(name, lexicons)}allowed: {', '.join(lexicons)}"
                raise ValueError(f"no lexicons/adjectives/{name}.yaml; {allowed}")
            if names.count(name) > 1:
                raise ValueError(f"duplicate entry {name}; remove one")
        return names

    @model_validator(mode="after")
    def _sections_fit(self) -> Self:
        """Check that the sections are consistent."""
        self._check_names()
        self._check_source()
        self._check_judges()
        self._check_inputs()
        return self

    def _check_names(self) -> None:
        """Check the settings that name compositions or a generator."""
        self._check_compositions("split.heldout.pairs", self.split.heldout.pairs)
        self._check_compositions("score.balance.dominant", self.score.balance.dominant)
        published = self.split.published
        # One file cannot be the split of several compositions.
        if published and len(self.compositions) > 1:
            for path in (published.split, published.data):
                if path and COMPOSITION_FIELD not in path:
                    raise ValueError(
                        f"split.published: {path}: several compositions; add {COMPOSITION_FIELD} "
                        "to the path"
                    )
        if self.judge.shared and COMPOSITION_FIELD in (self.judge.pretrained or ""):
            raise ValueError(
                f"judge.pretrained: {COMPOSITION_FIELD} names a judge for each composition; set "
                "shared: false"
            )
        self._check_generator("score.reference", self.score.reference)
        for name in (self.human and self.human.generators) or []:
            self._check_generator("human.generators", name)

    def _check_compositions(self, key: str, value: object) -> None:
        """Check the compositions of a setting that may be a mapping by composition."""
        if not isinstance(value, dict):
            return
        unknown = sorted(value.keys() - {*self.compositions})
        if unknown:
            allowed = ", ".join(self.compositions)
            raise ValueError(f"{key}: unknown composition {unknown[0]}; allowed: {allowed}")

    def _check_generator(self, key: str, name: str | None) -> None:
        names = [generator.name for generator in self.generate.generators]
        if name and name not in names:
            allowed = ", ".join(names) or "none"
            raise ValueError(f"{key}: {name} is not in generate.generators; allowed: {allowed}")

    def _check_source(self) -> None:
        """Check that the data set has the tables and images that other sections read."""
        source = self.dataset.source
        tables = load_source(source).TABLES
        # Without images to judge, generators are ignored.
        for generator in self.generate.generators if self.scored else ():
            absent = {*load_kind(generator.kind).TABLES}.difference(COMMON_TABLES, tables)
            if absent:
                names = " and ".join(sorted(absent))
                if absent <= OF_SKETCHES:
                    names += " of sketches"
                fault = f"{generator.name} reads the {names}, not in source {source}"
                raise ValueError(
                    f"generate.generators: {fault}; use photographs, shuffled, folder or diffusers"
                )
        # People are asked about generated images.
        if self.human and not self.scored:
            raise ValueError("human: there are no images to ask about; remove this section")
        # Long captions of sketches are made from their scenes.
        if self.specs and self.specs.data is None and "scenes" not in tables:
            raise ValueError(
                f"specs.data: null describes sketches, but dataset.source is {source}; name long "
                "captions"
            )

    def _check_judges(self) -> None:
        """Check that further CLIP judges see what the leading one does."""
        for entry in self.judges:
            settings = entry.settings("")
            if not isinstance(settings, SeedsOfTraining):
                continue
            # All judges must not have seen the judged images, and train on one kind of machine.
            for key in ("train_on", "gpus", "device"):
                expected = getattr(self.judge, key)
                if getattr(settings, key) != expected:
                    raise ValueError(
                        f"judges: {entry.name}.{key}: expected {expected!r}, as of the leading "
                        "judge (the first, or judge of this config or its base)"
                    )

    def _check_inputs(self) -> None:
        """Check the sections whose files are inputs of rules: there, Snakemake has no way to write
        braces.
        """
        values = self.model_dump(mode="json", include=WITH_INPUTS, exclude=FREE_TEXTS)
        for name, section in values.items():
            texts = json.dumps(section, ensure_ascii=False).replace(COMPOSITION_FIELD, "")
            wildcard = WILDCARD.search(texts)
            if wildcard:
                raise ValueError(
                    f"{name}: {wildcard[0]} in a path is a wildcard for Snakemake; rename the file "
                    "or folder"
                )


def _allowed(location: tuple[str | int, ...]) -> list[str]:
    """Return the allowed keys of the section at ``location``, as far as it can be resolved."""
    section: type[Section] = Config
    for word in location:
        # Places in lists and branches of unions are not fields.
        if isinstance(word, str) and word in section.model_fields:
            field = section.model_fields[word]
            inner_sections = sections_in(field.annotation)
            section = next(iter(inner_sections), section)
    return sorted(section.model_fields)


def _setting(location: tuple[str | int, ...]) -> tuple[str | int, ...]:
    """Return a fault's location without the branches of unions: pydantic reports a fault for each
    branch.
    """
    return tuple(w for w in location if isinstance(w, int) or not (w in BRANCHES or "[" in w))


def _as_written(location: tuple[str | int, ...], first_leads: bool) -> tuple[str | int, ...]:
    """Return the location of a setting in the user's config, where the first of ``judges`` may be
    ``judge`` of the model.
    """
    if first_leads and location[:1] == ("judge",):
        return ("judges", 0, *location[1:])
    if first_leads and location[:1] == ("judges",) and len(location) > 1:
        return ("judges", int(location[1]) + 1, *location[2:])
    return location


def _describe(error: ValidationError, first_leads: bool = False) -> list[str]:
    """Return the faults of a config, a line each: the key, the expected value, the value.

    first_leads: whether the first of ``judges`` was taken for ``judge``.
    """
    faults: dict[tuple[str | int, ...], str] = {}
    for fault in error.errors():
        location = _setting(fault["loc"])
        # A fault inside a union is reported for each branch; the first report is enough.
        is_reported = any(_overlap(location, reported) for reported in faults)
        if not is_reported:
            key = ".".join(map(str, _as_written(location, first_leads)))
            faults[location] = _describe_fault(fault, key)
    return list(faults.values())


def _overlap(first: tuple[str | int, ...], second: tuple[str | int, ...]) -> bool:
    """Whether one location is inside the other."""
    shorter = min(len(first), len(second))
    return first[:shorter] == second[:shorter]


def _fault_message(fault: ErrorDetails) -> str:
    kind = fault["type"]
    value = fault["input"]
    if kind == "list_type" and isinstance(value, str | int | float):
        return f"expected a list; write [{value}]"
    if kind == "string_pattern_mismatch" and fault["ctx"]["pattern"].startswith(NAME):
        return f"a name has {NAME_RULE}; rename it"
    # pydantic's own message, without what readers of a config need not know
    return fault["msg"].removeprefix("Value error, ").partition(", unable to parse")[0]


def _describe_renamed(key: str, value: object) -> str:
    """Return the fault of a key of an earlier version: what to write instead."""
    name, values = RENAMED[key]
    present = values.get(value, value) if isinstance(value, str) else value
    config = present
    for word in reversed(name.split(".")):
        config = {word: config}
    try:
        Config.model_validate(config)
    except ValidationError as error:
        # The new key may refuse the old value.
        faults = [fault for fault in _describe(error) if fault.startswith(f"{name}: ")]
        if faults:
            return f"{key}: renamed to {faults[0]}"
    # As in YAML, where texts need no quotes.
    text = present if isinstance(present, str) else json.dumps(present, default=str)
    return f"{key}: renamed; write {name}: {text}"


def _describe_fault(fault: ErrorDetails, key: str) -> str:
    location = fault["loc"]
    message = _fault_message(fault)
    if fault["type"] == "extra_forbidden" and key in RENAMED:
        return _describe_renamed(key, fault["input"])
    if fault["type"] == "extra_forbidden" and key in REMOVED:
        return f"{key}: removed; {REMOVED[key]}"
    if fault["type"] == "extra_forbidden":
        allowed = _allowed(location[:-1])
        return f"{key}: unknown key; {nearest(location[-1], allowed)}allowed: {', '.join(allowed)}"
    if not key:  # of the whole config
        return message
    value = repr(fault["input"])
    # The message may have it already; settings of a kind may have a password.
    if value in message or location[-1] == "options":
        return f"{key}: {message}"
    # Sections do not help to find the fault, and that of a judge may have a password.
    content = fault["input"] if isinstance(fault["input"], list) else [fault["input"]]
    if any(isinstance(item, dict) for item in content):
        return f"{key}: {message}"
    if len(value) > MAX_SHOWN:
        value = f"{value[:MAX_SHOWN]} …"
    return f"{key}: {message}, got {value}"


def load_config(values: dict[str, Any], prefix: str = "config", file: Path | None = None) -> Config:
    """Check a config, which may be that of a ``file``; UserError names ``prefix``, the first faulty
    key, and what is allowed.
    """
    for root in (ROOT, WORKFLOW_ROOT):
        require(
            not any(brace in str(root) for brace in "{}"),
            root,
            "braces in the checkout's folder are wildcards for Snakemake",
            "rename it",
        )
    base = values.get("base")
    values = with_base(values, prefix, (file,) if file else ())
    if base:
        prefix = f"{prefix} (base {base})"
    try:
        return Config.model_validate(values, context=OF_CONFIG)
    except ValidationError as error:
        # several lines, each with its own prefix
        first_leads = "judge" not in values
        faults = [f"{prefix}: {fault}" for fault in _describe(error, first_leads)]
        raise UserError("\nerror: ".join(faults)) from None


def read_values(path: Path) -> dict[str, Any]:
    """Return the content of a config file, unchecked."""
    try:
        values = parse_yaml(decode(path))
    except FileNotFoundError as error:
        raise UserError(no_such(path, "config file")) from error
    except OSError as error:
        raise UserError(
            f"{path}: not readable as a config ({error.strerror}); correct CONFIG"
        ) from error
    except ValueError as error:
        raise UserError(f"{path}: not valid YAML: {error}") from error
    require(
        # An empty file is None.
        isinstance(values, dict),
        path,
        "expected keys and values",
        "write at least one key, such as `seed: 0`",
    )
    return values


def read_config(path: Path) -> Config:
    """Return the checked config of a file."""
    return load_config(read_values(path), str(path), path)


def overlay(base: dict[str, Any], top: dict[str, Any]) -> dict[str, Any]:
    """Return ``top`` laid over ``base`` key by key, as Snakemake merges several config files."""
    merged = dict(base)
    for key, value in top.items():
        base_value = base.get(key)
        if isinstance(value, dict) and isinstance(base_value, dict):
            merged[key] = overlay(base_value, value)
        else:
            merged[key] = value
    return merged


def with_base(
    values: dict[str, Any], prefix: str = "config", within: tuple[Path, ...] = ()
) -> dict[str, Any]:
    """Return the values laid over those of their ``base``, which may have a base itself.

    Not inherited are the folder of its results and what its release says of its maker.

    Args:
        values: content of a config.
        prefix: of errors.
        within: the files of this config and of those whose base it is, as far as they are known.

    Raises:
        UserError: there is no such config, or it is its own base.
    """
    base = values.get("base")
    # The model reports what is not a text.
    if not isinstance(base, str) or not base:
        return values
    key = f"{prefix}: base"
    path = _find_base(base, key, within)
    try:
        read = read_values(path)
    except UserError as error:
        raise UserError(f"{key}: {error}") from error
    base_values = with_base(read, str(path), (*within, path))
    inherited = {name: value for name, value in base_values.items() if name not in NOT_INHERITED}
    return overlay(inherited, {name: value for name, value in values.items() if name != "base"})


def _find_base(base: str, key: str, within: tuple[Path, ...]) -> Path:
    """Return the file of a base: beside its config, in the working folder or with the workflow."""
    folders = [Path(), WORKFLOW_ROOT]
    if within:
        config = within[-1]
        # A preset means a config that comes with it, wherever it is used.
        if WORKFLOW_ROOT in config.resolve().parents:
            folders.reverse()
        folders.insert(0, config.parent)
    existing = [folder / base for folder in folders if (folder / base).exists()]
    # The working folder's config.yaml may be laid over the one that comes with the workflow.
    seen = {file.resolve() for file in within}
    others = [path for path in existing if path.resolve() not in seen]
    require(others or not existing, key, f"{base} is its own base", "name another config")
    return others[0] if others else Path(base)
