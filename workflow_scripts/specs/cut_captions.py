"""Index a source of long captions: which examples are usable, and where the chunks of each caption end."""

from workflow_scripts.core import cli
from workflow_scripts.core.io import write_json
from workflow_scripts.specs.data import open_examples
from workflow_scripts.specs.steps import CutCaptions


def main(step: CutCaptions) -> None:
    examples = open_examples(step.examples, step.images, step.parsing.model, step.cache, step.processes)
    write_json(examples.summary, step.summary)


if __name__ == "__main__":
    cli.run(main)
