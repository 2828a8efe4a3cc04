"""The commands that need no workflow: ``compclip divergence --train a.jsonl --test b.jsonl``.

Each is the ``main`` of a module that is imported on demand; ``compclip NAME --help`` lists its
options.
"""

import sys
from importlib import import_module

COMMANDS = {
    "score": ("score.score_files", "score images by a judge: R-precision and adjective accuracy"),
    "submit": ("release.submit", "score a model's images on a release: a submission"),
    "verify": ("release.verify", "verify a submission, with or without its images"),
    "leaderboard": ("release.leaderboard", "compare the submissions of a release on a page"),
    "aggregate": ("score.aggregate", "score a published pickle of predictions"),
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


def main() -> None:
    """Run the command that the first argument names."""
    name, arguments = sys.argv[1:2], sys.argv[2:]
    if not name or name[0] not in COMMANDS:
        lines = [f"  {command:<18}{what}" for command, (_, what) in COMMANDS.items()]
        wanted = name == ["--help"]
        print(
            "usage: compclip COMMAND [--help]",
            *lines,
            sep="\n",
            file=sys.stdout if wanted else sys.stderr,
        )
        sys.exit(0 if wanted else 2)
    # Imported here, because the list above works without the library's dependencies.
    run = import_module("compclip.core.settings.cli").run
    run(import_module(f"compclip.{COMMANDS[name[0]][0]}").main, arguments, f"compclip {name[0]}")


if __name__ == "__main__":
    main()
