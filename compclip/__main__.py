"""The command ``compclip``: ``compclip run mine.yaml``, and what needs no workflow, such as
``compclip divergence --train a.jsonl --test b.jsonl``.

The latter are each the ``main`` of a module that is imported on demand; ``compclip NAME --help``
lists its options.
"""

import difflib
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from compclip.core.identity.installation import shipped_folder, version_in
from compclip.core.memory import collect_rarely

COMMANDS = {
    "score": ("score.score_files", "score images by a judge: R-precision and adjective accuracy"),
    "submit": ("release.submit", "score a model's images on a release: a submission"),
    "verify": ("release.verify", "verify a submission, with or without its images"),
    "leaderboard": ("release.leaderboard", "compare the submissions of a release on a page"),
    "aggregate": ("score.aggregate", "score a published pickle of predictions"),
    "ratings": ("human.ratings", "correlate scores of images with ratings by people"),
    "divergence": ("divergence.measure", "measure how far two sets of samples diverge"),
    "divide": ("divergence.divide", "divide samples into train and test by divergence"),
    "nouns": ("pairs.draft_nouns", "draft a noun lexicon from captions"),
    "specs": ("specs.score", "score pairs of an image and a text by SPECS"),
    "specs-zero-shot": ("specs.zero_shot", "classify images by a judge without training"),
    "specs-released": (
        "specs.published_weights",
        "make a judge of released weights of SPECS or Long-CLIP",
    ),
}
# Those of the workflow, which the library does not know.
OF_WORKFLOW = {
    "run": "run the workflow for a config; compclip run --help lists its parts",
    "init": "write a config to start from, for a table of captions or for drawn birds",
}


def run_workflow(name: str, arguments: list[str]) -> None:
    """Run a command of the workflow, which is loaded only now."""
    # Its other packages come with it, or from the same extra.
    if find_spec("snakemake") is None:
        remedy = "pip install 'compclip[workflow]'"
        sys.exit(f"error: compclip {name}: the package snakemake is not installed; {remedy}")
    sys.path.insert(0, str(shipped_folder(Path(__file__).resolve().parent)))
    import_module("workflow_scripts.workflow.commands").main(name, arguments)


def main() -> None:
    """Run the command that the first argument names."""
    name, arguments = sys.argv[1:2], sys.argv[2:]
    if name and name[0] in OF_WORKFLOW:
        run_workflow(name[0], arguments)
        return
    if name == ["--version"]:
        print("compclip", version_in(Path(__file__).resolve().parents[1]))
        return
    if not name or name[0] not in COMMANDS:
        descriptions = OF_WORKFLOW | {command: what for command, (_, what) in COMMANDS.items()}
        lines = [f"  {command:<18}{what}" for command, what in descriptions.items()]
        wanted = name in (["--help"], ["-h"])
        print(
            "usage: compclip COMMAND [--help]",
            *lines,
            sep="\n",
            file=sys.stdout if wanted else sys.stderr,
        )
        if name and not wanted:
            closest = difflib.get_close_matches(name[0], descriptions, 1)
            hint = f"did you mean {closest[0]}?" if closest else "choose one of these"
            print(f"error: compclip: unknown command {name[0]!r}; {hint}", file=sys.stderr)
        sys.exit(0 if wanted else 2)
    collect_rarely()
    # Imported here, because the list above works without the library's dependencies.
    run = import_module("compclip.core.settings.cli").run
    run(import_module(f"compclip.{COMMANDS[name[0]][0]}").main, arguments, f"compclip {name[0]}")


if __name__ == "__main__":
    main()
