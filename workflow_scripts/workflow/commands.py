"""The commands of the workflow: ``compclip run``, its parts, and ``compclip init``."""

import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from compclip.core.reading.documents import nearest
from compclip.core.settings import cli
from workflow_scripts.places import CONFIG_SUFFIXES, DEFAULT_CONFIG, users_or_shipped

# Each part's module, its function there, and what it does.
PARTS = {
    "check": ("check", "main", "check a config's files, models and device; no run"),
    "verify": ("verify", "main", "check a run's artifacts by their recorded digests"),
    "release": ("run", "make_release", "make a release of a run, in its folder release"),
    "unlock": ("run", "unlock", "remove the lock that a killed run left in this folder"),
}
USAGE = """usage: compclip run [CONFIG] [--cores N] [-- OPTIONS AND TARGETS OF SNAKEMAKE]
       compclip run PART [CONFIG] [--help]

Runs the workflow for a config (config.yaml), in the working folder, and prints its table.

parts:"""
# The options of a run and of a release; Snakemake's come after --.
OPTIONS = ("--config", "--cores", "--help", "-h")


def main(name: str, arguments: Sequence[str]) -> None:
    """Run the command ``name``: run or init."""
    if name == "init":
        cli.run(import_module("workflow_scripts.workflow.init").main, arguments, "compclip init")
        return
    first = next(iter(arguments), "")
    if first in ("--help", "-h"):
        lines = [f"  {part:<10}{what}" for part, (_, _, what) in PARTS.items()]
        print(USAGE, *lines, sep="\n")
        return
    if first in PARTS:
        module, function, _ = PARTS[first]
        arguments = arguments[1:]
        program = f"compclip run {first}"
    else:
        module, function, program = "run", "main", "compclip run"
    check_first(program, arguments)
    if module == "run" and function != "unlock":
        check_options(arguments)
    command = getattr(import_module(f"workflow_scripts.workflow.{module}"), function)
    words = with_config_option(arguments)
    is_help = any(word in ("--help", "-h") for word in words)
    if function == "unlock" and not is_help:
        words = []  # the lock is the folder's, whatever the config
    is_named = any(word.partition("=")[0] == "--config" for word in words)
    is_needed = function != "unlock" and not is_help
    if is_needed and not is_named and not Path(DEFAULT_CONFIG).exists():
        fault = "no such config file here"
        remedy = "name one, such as `compclip run mine.yaml`, or write one with `compclip init`"
        sys.exit(f"error: {DEFAULT_CONFIG}: {fault}; {remedy}")
    cli.run(command, words, program)


def check_first(program: str, arguments: Sequence[str]) -> None:
    """Exit with one line if the first argument is neither an option nor a config."""
    word = next(iter(arguments), "-")
    if word.startswith("-") or word.endswith(CONFIG_SUFFIXES):
        return
    configs = [path.name for path in Path().iterdir() if path.suffix in CONFIG_SUFFIXES]
    if program == "compclip run":
        fault = f"{word!r} is neither a part nor a config, whose name ends in .yaml"
        remedy = f"{nearest(word, [*PARTS, *configs])}targets of Snakemake come after --"
    else:
        fault = f"{word!r} is not a config, whose name ends in .yaml"
        remedy = nearest(word, configs) or "name a config"
    sys.exit(f"error: {program}: {fault}; {remedy.strip()}")


def check_options(arguments: Sequence[str]) -> None:
    """Exit with one line if an option of Snakemake is before ``--``, or another config after
    it.
    """
    words = list(arguments)
    border = words.index("--") if "--" in words else len(words)
    if any(word.startswith("--configfile") for word in words[border:]):
        remedy = "name the config before --: `compclip run mine.yaml`"
        sys.exit(f"error: compclip run: --configfile after --; {remedy}")
    for word in words[:border]:
        option = word.partition("=")[0]
        if option.startswith("-") and option not in OPTIONS:
            remedy = f"options of Snakemake come after --: `compclip run mine.yaml -- {option}`"
            hint = nearest(option, OPTIONS)
            sys.exit(f"error: compclip run: unknown option {option!r}; {hint}{remedy}")


def with_config_option(arguments: Sequence[str]) -> list[str]:
    """Return arguments with ``--config`` before the config, which is named without it."""
    words = list(arguments)
    for index, word in enumerate(words):
        if word == "--":
            break
        is_named = word.endswith(CONFIG_SUFFIXES) and not word.startswith("-")
        if is_named and words[index - 1 : index] != ["--config"]:
            words[index : index + 1] = ["--config", named_config(word)]
            break
    return words


def named_config(path: str) -> str:
    """Return the path of a config: the user's or, such as presets/mcd.yaml, the workflow's."""
    # In a folder without a config, a run must not begin by itself.
    return users_or_shipped(path) if len(Path(path).parts) > 1 else path
