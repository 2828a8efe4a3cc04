"""Check everything that a run needs before anything is computed: ``compclip run check``.

All problems are listed. Of images, some are decoded; of most other files, only names and kinds are
checked, not their content. The check downloads and computes nothing, and leaves no file.

Where steps run elsewhere, such as in conda environments, only Snakemake's own packages are here:
what needs others is then checked by the steps.
"""

import errno
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatch
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pydantic import Field
from snakemake_interface_common.exceptions import WorkflowError

from compclip.clip.config import (
    CLIP_WEIGHTS,
    FOLDER,
    HUB,
    MODELS,
    SETTINGS,
    ModelConfig,
    folder_weights,
    model_file,
)
from compclip.compun.config import CompunConfig
from compclip.core.artifacts.heldout import split_pair
from compclip.core.errors import UserError, require
from compclip.core.limits import IMAGE_SUFFIXES
from compclip.core.log import UNDER_RUN, log
from compclip.core.reading.documents import nearest, no_such
from compclip.core.reading.hub import check_hub_file
from compclip.core.settings import cli
from compclip.core.settings.cli import Command
from compclip.core.tables import PROMPT_KEY, PROMPTS, VARIANTS, are_among
from compclip.dataset.download import FileLocation
from compclip.generate.config import Generator
from compclip.generate.generator import load_kind
from compclip.judge.chooser import Asked
from compclip.judge.chooser import Kind as JudgeKind
from compclip.judge.chooser import load_kind as load_judge_kind
from compclip.judge.config import Training
from compclip.text.lexicon import load_lexicon, require_distinct
from workflow_scripts.places import (
    adjective_lexicons,
    check_writable,
    lexicon_file,
    users_or_shipped,
)
from workflow_scripts.root import run_command
from workflow_scripts.workflow.config import Config, read_config
from workflow_scripts.workflow.versions import check_versions

# Files that their authors publish in folders from which only a browser downloads, by pattern of
# their names.
DRIVE = "https://drive.google.com/drive/folders"
BY_HAND = {
    **dict.fromkeys(("split.pkl", "data.pkl"), f"{DRIVE}/1jOnNp0RkUN_QFa-GvfitbKh8YTthLtgl"),
    **dict.fromkeys(("C_CUB_*.pt", "C_Flowers_*.pt"), f"{DRIVE}/1A2I6uSnrFEgu-7QIpcxjDXE7m5799UCy"),
}

# The part of a run that targets name may not need what is missing.
IGNORED = "ignored, because targets are given"
# Images of a folder that are decoded if there are many.
DECODED = 100


@dataclass
class Findings:
    """What checks find."""

    is_local: bool = True  # whether steps run on this machine, in this environment
    errors: list[str] = field(default_factory=list)
    downloads: list[str] = field(default_factory=list)  # files that the run will download
    notes: list[str] = field(default_factory=list)  # what the run will do without

    def error(self, key: str, message: str) -> None:
        self.errors.append(f"{key}: {message}".replace("\n", "\\n"))  # a line each

    def errors_in(self, name: object) -> list[str]:
        """Return the errors, each with the name of the config."""
        return [f"{name}: {error}" for error in self.errors]

    @contextmanager
    def errors_of(self, key: str) -> Iterator[None]:
        """Turn a UserError into an error of ``key``."""
        try:
            yield
        except UserError as error:  # the checks go on, so that all problems are listed
            self.error(key, str(error))

    def exists(self, key: str, path: str | Path | None, kind: str = "file") -> bool:
        """Return whether ``path`` is a readable ``kind`` (file, folder, file or folder); add an
        error if it is not.

        None is a file that the config does not ask for.
        """
        fault = path_fault(path, kind) if path is not None else ""
        if fault:
            self.error(key, fault)
        return path is not None and not fault

    def has_images(self, key: str, folder: str) -> None:
        """Add an error if ``folder`` is not a folder with images."""
        if not self.exists(key, folder, "folder"):
            return
        walk = os.walk(folder)
        paths = (Path(parent, name) for parent, _, names in walk for name in names)
        images = (
            path for path in paths if path.suffix.lower() in IMAGE_SUFFIXES and path.is_file()
        )
        first = next(images, None)
        if first is None:
            self.error(key, f"{folder}: contains no jpg, jpeg, png or webp; correct the path")
        elif self.is_local:
            # Elsewhere, there may be no package to decode them.
            self.note_damaged(key, sorted([first, *images]))

    def note_damaged(self, key: str, images: list[Path]) -> None:
        """Add a note if images cannot be decoded, of some of them."""
        from compclip.core.reading.pictures import BrokenImage, image_size

        # Evenly over all, because decoding takes long, and all that are empty.
        step = max(1, len(images) // DECODED)
        decoded = {*images[::step], *(file for file in images if not file.stat().st_size)}
        faults = {}
        for file in sorted(decoded):
            try:
                image_size(file)
            except BrokenImage as error:
                faults[file] = str(error)
        if faults:
            file, fault = next(iter(faults.items()))
            count = f"{len(faults):,} damaged images among the {len(decoded):,} that were read"
            self.notes.append(f"{key}: {count}, the first {file} ({fault}); replace them")


def path_fault(path: str | Path, kind: str) -> str:
    """Return what is wrong with the path of a file, folder, or file or folder; "" if it can be
    read.
    """
    try:
        status = Path(path).stat()
    except OSError as error:
        # ENOTDIR: a file stands in place of a folder of the path. Others: a name that is too long.
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            return missing_fault(path, kind)
        beginning = str(path)[:80]
        return f"{beginning}: {error.strerror}; correct the path"
    is_folder = stat.S_ISDIR(status.st_mode)
    if kind in ("file", "folder") and is_folder != (kind == "folder"):
        return f"{path}: not a {kind}; give the path of a {kind}"
    # Such as what a download leaves that failed; a pipe has no size.
    if stat.S_ISREG(status.st_mode) and not status.st_size:
        return f"{path}: empty file; {by_hand(path) or 'get it again'}"
    return "" if os.access(path, os.R_OK) else f"{path}: not readable; fix its permissions"


def missing_fault(path: str | Path, kind: str) -> str:
    remedy = by_hand(path)
    return f"{path}: no such file; {remedy}" if remedy else no_such(path, kind)


def by_hand(path: str | Path) -> str:
    """Return how to get a file that its authors publish, "" for other files."""
    folders = (folder for pattern, folder in BY_HAND.items() if fnmatch(Path(path).name, pattern))
    return "".join(f"download it from {folder} to this path" for folder in folders)


class Check(Command):
    """Check a config's files, models and device."""

    config: Path = Field(Path("config.yaml"), description="config.yaml, a preset's or your own")


def check_config(config: Config, is_local: bool = True) -> Findings:
    """Return what is missing; ``is_local``: steps run on this machine, in this environment."""
    findings = Findings(is_local)
    _check_dataset(config, findings)
    _check_language(config, findings)
    if config.scored:
        _check_generators(config, findings)
        for judge in config.judge.each(config.compositions):
            check_model("judge", judge, findings)
        _check_judges(config, findings)
    elif "generators" in config.generate.model_fields_set:
        findings.notes.append("generate.generators: not used, because the data set has no images")
    _check_files(config, findings)
    if config.specs:
        check_model("specs.base", config.specs.base, findings)
    for model in config.compun.models if config.compun else ():
        key = f"compun.models: {model.title}"
        findings.exists(key, model.judge, "folder")
        if model.open_clip:
            check_model(key, model.judge_config(), findings)
    for key, folder in (("results", config.results), ("cache", config.cache)):
        with findings.errors_of(key):
            check_writable(Path(folder))
    with findings.errors_of("results"):
        # A run would mix its artifacts with the user's files.
        check_own(Path(config.results))
    # Last, because it imports torch, which takes seconds.
    if config.scored and is_local and not findings.errors:
        check_trainable(config.judge, findings)
    return findings


def _check_dataset(config: Config, findings: Findings) -> None:
    key = f"dataset.{config.dataset.source}"
    settings = getattr(config.dataset, config.dataset.source)
    # Only sources with published files have places; only the user's own captions are a file.
    source_files = settings.places() if hasattr(settings, "places") else {}
    for name, source_file in source_files.items():
        if not source_file.is_remote:
            findings.exists(f"{key}.{name}", str(source_file.local(Path())))
        elif not source_file.local(Path(config.cache)).is_file():
            findings.downloads.append(source_file.name or source_file.address)
    if hasattr(settings, "file"):
        errors = len(findings.errors)
        findings.exists(f"{key}.file", settings.file, "file or folder")
        # ``images: null``: only captions, which are split but not scored.
        if settings.images is not None:
            findings.has_images(f"{key}.images", settings.images)
        is_sound = findings.is_local and len(findings.errors) == errors
        if is_sound and not _has_read(config, Path(settings.file)):
            _check_table(key, settings, config.pairs.selection.min_count, findings)


def _has_read(config: Config, table: Path) -> bool:
    """Whether an earlier run has read the table as it is, which takes long if it is large."""
    captions = config.data_folder / "captions.parquet"
    return captions.is_file() and captions.stat().st_mtime > table.stat().st_mtime


def _check_table(key: str, settings: Any, min_count: int, findings: Findings) -> None:
    """Check that a table can be read and has as many captions as a ranked pair needs, and note
    which of its images have no file.
    """
    from pyarrow import parquet

    from compclip.dataset.sources.table import find_files, spool_rows, survey

    with findings.errors_of(key), tempfile.TemporaryDirectory() as scratch:
        table = Path(settings.file)
        rows = Path(scratch, "rows.parquet")
        unreadable, _ = spool_rows(table, settings.columns, rows)
        images, paths, _ = survey(table, rows, unreadable)
        n_captions = parquet.read_metadata(rows).num_rows
        if n_captions < min_count:
            few = f"{table}: {n_captions} captions are too few"
            need = f"a pair is ranked if it occurs {min_count} times (pairs.selection.min_count)"
            findings.error(key, f"{few}; {need}")
        if settings.images is not None:
            ids = list(images["image_id"])
            files, _ = find_files(Path(settings.images), ids, paths)
            missing = [image_id for image_id in ids if image_id not in files]
            if missing:
                count = f"{len(missing):,} of the table's {len(ids):,} images are missing"
                first = paths.get(missing[0], missing[0])
                findings.notes.append(f"{key}.images: {count}, the first {first}")


def is_weights_file(weights: str | None) -> bool:
    """Whether pretrained weights are a file, not a tag of open_clip, which has neither a folder nor
    an ending.
    """
    if weights is None:
        return False
    return "/" in weights or bool(Path(weights).suffix) or os.path.exists(weights)


def check_model(key: str, config: ModelConfig, findings: Findings) -> None:
    """Check the files that ``config`` names.

    Torch is imported only to look up a tag of open_clip, which is not known without it.
    """
    check_model_name(key, config, findings)
    weights = config.pretrained
    is_found = is_weights_file(weights) and findings.exists(f"{key}.pretrained", weights)
    if is_found and findings.is_local:
        with findings.errors_of(key):
            from compclip.clip.sources import find_source

            find_source(config)
    if config.tower:
        for setting in ("weights", "rename"):
            path = getattr(config.tower, setting)
            # With a colon, it is a file inside an installed package.
            if path and ":" not in path:
                findings.exists(f"{key}.tower.{setting}", users_or_shipped(path))


def check_model_name(key: str, config: ModelConfig, findings: Findings) -> None:
    """Check that a model, and a tag of its weights, exist."""
    name = config.model
    weights = config.pretrained
    if name.startswith(FOLDER):
        folder = name.removeprefix(FOLDER)
        if findings.exists(f"{key}.model", folder, "folder"):
            with findings.errors_of(f"{key}.model"):
                folder_weights(Path(folder))
    elif name.startswith(HUB):
        if config.revision is None:
            fault = f"no commit is pinned, so results change when {name} does"
            findings.notes.append(f"{key}.revision: {fault}")
        with findings.errors_of(f"{key}.model"):
            # Another machine may have other files in its cache.
            for files in ([SETTINGS], CLIP_WEIGHTS) if findings.is_local else ():
                check_hub_file(name.removeprefix(HUB), files)
    elif name.endswith(".json"):
        findings.exists(f"{key}.model", name)
    elif not findings.is_local:
        # Only open_clip knows its models.
        return
    elif model_file(name) is None and name not in open_clip_models():
        findings.error(f"{key}.model", unknown_model(name))
    elif weights and not is_weights_file(weights):
        with findings.errors_of(f"{key}.pretrained"):
            check_tag(name, weights)


def check_tag(model: str, tag: str) -> None:
    """Raise UserError unless open_clip has weights of this tag, and they can be had here."""
    from compclip.clip.sources import find_tag, hub_place

    repository, files = hub_place(find_tag("", model, tag))
    check_hub_file(repository, files)


def unknown_model(name: str) -> str:
    bundled = sorted(path.stem for path in MODELS.glob("*.json"))
    suggestion = nearest(name, {*bundled, *open_clip_models()})
    return (
        f"unknown model {name!r}; {suggestion}choose one of open_clip's, one of "
        f"{', '.join(bundled)}, or the path of a model config"
    )


def check_trainable(config: Training, findings: Findings) -> None:
    """Check that the patterns of a judge's trained parameters fit a model whose config is here."""
    # Without training, or if all parameters are trained, no pattern can be wrong.
    is_checked = config.epochs and config.trainable != ["*"] and not config.model.startswith(HUB)
    if is_checked:
        from compclip.judge import training

        with findings.errors_of("judge"):
            training.check_trainable(config)


def open_clip_models() -> set[str]:
    """Return the names of open_clip's models without importing it, and so torch."""
    library = find_spec("open_clip")
    folders = (library.submodule_search_locations if library else None) or ()
    return {
        path.stem for folder in folders for path in Path(folder, "model_configs").glob("*.json")
    }


def _check_language(config: Config, findings: Findings) -> None:
    """Check the lexicons and the spaCy pipeline."""
    with findings.errors_of("compositions"):
        for composition in config.compositions:
            # Lexicons that are used together must not list the same form.
            files = adjective_lexicons(composition)
            require_distinct([load_lexicon(Path(file)) for file in files])
    with findings.errors_of("pairs.nouns"):
        if config.pairs.nouns:
            load_lexicon(Path(lexicon_file("nouns", config.pairs.nouns)))
    for composition in config.compositions:
        with findings.errors_of("split.heldout.pairs"):
            _check_listed(config, composition)
    with findings.errors_of("pairs.model"):
        if findings.is_local:
            # Elsewhere, other pipelines may be installed.
            from compclip.text.language import installed_name

            installed_name(config.pairs.model, config.pairs.model)


def _check_listed(config: Config, composition: str) -> None:
    """Raise UserError if a listed pair has a word that the lexicons lack."""
    listed = config.split.heldout.listed(composition)
    if not listed:
        return
    lexicons = {"adjectives": composition, "nouns": config.pairs.nouns}
    for kind, words in zip(lexicons, zip(*map(split_pair, listed), strict=True), strict=True):
        name = lexicons[kind]
        # Without a lexicon of nouns, any noun may be ranked.
        if name is None:
            continue
        known = load_lexicon(Path(lexicon_file(kind, name))).words
        for word in words:
            fault = f"{word!r} is not in lexicons/{kind}/{name}.yaml"
            require(word in known, composition, fault, f"{nearest(word, known)}correct the pair")


def _check_generators(config: Config, findings: Findings) -> None:
    """Check folders of images, and models that make some."""
    for generator in config.generate.generators:
        key = f"generate.generators: {generator.name}"
        kind = load_kind(generator.kind)
        all_settings = [generator.settings(composition) for composition in config.compositions]
        # Compositions may share a folder, which is then checked once.
        paths = [settings.path for settings in all_settings if hasattr(settings, "path")]
        for path in dict.fromkeys(paths):
            findings.has_images(key, path)
        if findings.is_local:
            _preview_images(config, generator, key, findings)
        if kind.MODEL:
            _check_diffusers(key, {settings.model for settings in all_settings}, findings)


def _check_judges(config: Config, findings: Findings) -> None:
    """Check the models and files of further judges, and note what their answers will cost."""
    for entry in config.judges:
        key = f"judges: {entry.name}"
        kind = load_judge_kind(entry.kind)
        for composition in config.compositions:
            settings = entry.settings(composition)
            if isinstance(settings, ModelConfig):
                check_model(key, settings.of(composition), findings)
            file = getattr(settings, "file", None)
            if file and findings.is_local and not Path(file).is_file():
                listed = config.data_folder / composition / "options.jsonl"
                fault = f"{file}: no such table of answers"
                remedy = f"make {listed} with snakemake, and answer it (docs/judges.md)"
                findings.error(key, f"{fault}; {remedy}")
            if kind.preview is not None:
                with findings.errors_of(key):
                    message = kind.preview(settings, _count_choices(config, composition, kind))
                    if message:
                        findings.notes.append(f"{key}: {composition}: {message}")


def _count_choices(config: Config, composition: str, judge: JudgeKind) -> Asked | None:
    """Return the numbers of choices of a composition that a judge is asked; None before a run has
    listed prompts.
    """
    from compclip.core.artifacts.parquet import read_table
    from compclip.judge.certify import ITEMS, RIGHT_TEXTS

    folder = config.data_folder / composition
    files = [folder / "prompts.parquet", folder / "variants.parquet"]
    if not all(file.is_file() for file in files):
        return None
    prompts = read_table(files[0], PROMPTS)
    variants = read_table(files[1], VARIANTS)
    has_variants = are_among(prompts, variants, PROMPT_KEY)
    kinds = [load_kind(generator.kind) for generator in config.generate.generators]
    counts = []
    for rows in (prompts[has_variants], prompts):
        by_split = rows.groupby("split").size()
        counts.append(sum(int(by_split.get(split, 0)) for kind in kinds for split in kind.SPLITS))
    adjectives, all_prompts = counts
    # Of each right text, with and without its image.
    certificate = 2 * ITEMS * RIGHT_TEXTS if judge.CERTIFIED else 0
    return Asked(adjectives, all_prompts, certificate)


def _preview_images(config: Config, generator: Generator, key: str, findings: Findings) -> None:
    """Note which images a generator lacks for the prompts that an earlier run has listed."""
    preview = load_kind(generator.kind).preview
    if preview is None:
        return
    from compclip.core.artifacts.parquet import read_table  # slow to import

    for composition in config.compositions:
        prompts = config.data_folder / composition / "prompts.parquet"
        if not prompts.is_file():
            continue
        with findings.errors_of(key):
            missing = preview(generator.settings(composition), read_table(prompts, PROMPTS))
            if missing:
                findings.notes.append(f"{key}: {composition}: {missing}")


def _check_diffusers(key: str, models: set[str], findings: Findings) -> None:
    for model in models:
        # Other models are names on the Hub.
        if model.startswith((".", "/", "~")):
            findings.exists(f"{key}: model", model, "folder")
    if findings.is_local and find_spec("diffusers") is None:
        remedy = "pip install the version of envs/diffusers.yaml"
        findings.error(key, f"the package diffusers is not installed; {remedy}")


def _check_files(config: Config, findings: Findings) -> None:
    """Check the files and folders that other sections name."""
    published = config.split.published
    if published:
        for composition in config.compositions:
            findings.exists("split.published.split", published.file("split", composition))
            findings.exists("split.published.data", published.file("data", composition))
    # Weights from an address are downloaded by the step.
    if config.score.fid and not FileLocation(config.score.fid.weights).is_remote:
        findings.exists("score.fid.weights", config.score.fid.weights)
    for path in config.human.answers if config.human else ():
        findings.exists("human.answers", path)
    if config.specs and config.specs.data:
        for name, path in config.specs.data:
            kind = "folder" if "images" in name else "file or folder"
            findings.exists(f"specs.data.{name}", path, kind)
    if config.compun:
        _check_compun_files(config.compun, findings)


def _check_compun_files(compun: CompunConfig, findings: Findings) -> None:
    if compun.compounds:
        findings.exists("compun.compounds.file", users_or_shipped(compun.compounds.file))
        findings.exists("compun.compounds.images", compun.compounds.images, "folder")
    findings.exists("compun.captions", compun.captions)
    findings.exists("compun.descriptions", compun.descriptions)
    for path in compun.human.answers if compun.human else ():
        findings.exists("compun.human.answers", path)


def check_before_jobs(workflow: Any, config: Config, name: str) -> None:
    """Have Snakemake check its config before its first job, unless ``make run`` has checked it.

    ``name``: of the config, in messages; a workflow may have several modules.
    """
    if not workflow.is_main_process:
        return
    is_checked = UNDER_RUN in os.environ
    is_dry = workflow.output_settings.dryrun
    # Snakemake calls no hooks in a dry run, and others only when it has made environments.
    if not is_checked and (is_dry or workflow.deployment_settings.deployment_method):
        errors = check_config(config, is_local=False).errors_in(name)
        _warn(errors, "before its first job, a run stops at this")
    # In a module, ``onstart:`` is ignored. A job whose output all others take as ``ancient`` fails
    # in Snakemake 9.27: if its output is missing, all jobs run again; if the job runs for another
    # reason, no other job runs, whatever else has changed.
    others = workflow._onstart

    def check(log_file: str) -> None:
        if not is_checked:
            check_jobs(workflow, config, name)
        check_versions(workflow)
        others(log_file)

    workflow._onstart = check


def check_jobs(workflow: Any, config: Config, name: str) -> None:
    """Raise WorkflowError for what jobs would miss; with targets, which may need only a part of the
    run, warn.
    """
    is_local = workflow.local_exec and not workflow.deployment_settings.deployment_method
    if is_local and find_spec("pandas") is None:
        raise WorkflowError(
            f"no packages for steps are installed; add --use-conda, or use `{run_command()}`"
        )
    errors = check_config(config, is_local).errors_in(name)
    if errors and not workflow.dag_settings.targets:
        raise WorkflowError("\n".join(errors))
    _warn(errors, IGNORED)


def check_own(folder: Path) -> None:
    """Raise UserError if a folder contains files, but none that a run has made."""
    # A run that failed in its first step has made only logs; results/mine may be another run's.
    made = ("logs", "*/logs", "*/*/logs", "**/.digests")
    if not folder.is_dir() or any(any(folder.glob(pattern)) for pattern in made):
        return
    names = sorted(path.name for path in folder.iterdir())
    fault = f"contains {', '.join(names[:3])}, but nothing that a run has made"
    require(not names, folder, fault, "choose an empty or a new folder")


def _warn(errors: list[str], consequence: str) -> None:
    for error in errors:
        log.warning("warning: %s (%s)", error, consequence)


def report_findings(path: Path, is_local: bool = True, has_targets: bool = False) -> None:
    """Log what a config file's run downloads; raises UserError with a line for each error, with
    targets only warns.
    """
    findings = check_config(read_config(path), is_local)
    if findings.downloads:
        log.info("%s: the run downloads %s", path, ", ".join(findings.downloads))
    for note in findings.notes:
        log.warning("warning: %s: %s", path, note)
    errors = findings.errors_in(path)
    if errors and not has_targets:
        # Whoever prints the error puts "error: " before its first line only.
        raise UserError("\nerror: ".join(errors))
    _warn(errors, IGNORED)


def main(command: Check) -> None:
    report_findings(command.config)
    log.info(
        "%s: no problems found; `%s` starts the run",
        command.config,
        run_command(config=command.config),
    )


if __name__ == "__main__":
    cli.run(main)
