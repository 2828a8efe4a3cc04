"""Find the captions of a shard in which word order states a held-out pair, and the parse does not.

Otherwise ``make_splits`` finds them itself, which takes most of its time.
"""

from typing import Any

from compclip.core.artifacts.files import write_json
from compclip.core.artifacts.heldout import read_heldout
from compclip.core.tables import in_blocks
from compclip.split.composition import Lexicons
from compclip.split.make_splits import find_contested
from compclip.split.reading import reader_of
from workflow_scripts.inputs import read_blocks, read_lexicons
from workflow_scripts.job import Job, run_script


def main(job: Job) -> None:
    heldout = read_heldout(job.input.heldout)
    lexicons = Lexicons(**read_lexicons(job, "adjectives", "nouns", "compounds"))
    reader = reader_of(heldout, *lexicons.forms(), lexicons.compounds)
    contested: list[dict[str, Any]] = []
    for captions, pairs in in_blocks(*read_blocks(job, "captions", "pairs").values()):
        contested += find_contested(captions, pairs, heldout, reader)
    write_json(contested, job.output.contested)


if __name__ == "__main__":
    run_script(main)
