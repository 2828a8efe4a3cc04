"""Write the page of all judged images, and a data file for each composition, which the page loads
on demand.

The data files are scripts, because a page on disk may not read JSON.
"""

import json

from compclip.core.log import log
from compclip.core.tables import TESTS
from compclip.io import atomic_folder
from compclip.plot.labels import SPLIT_NAMES
from compclip.plot.page import render, write_page
from compclip.report.list_entries import list_entries
from workflow_scripts.job import Job, run_script
from workflow_scripts.report.artifacts import layouts, read_composition, read_generated


def main(job: Job) -> None:
    params = job.params
    with atomic_folder(job.output.data) as folder:
        for layout in layouts(job):
            tables = read_composition(layout, "pairs", "prompts", "swapped")
            data = list_entries(read_generated(layout, params.generators, params.judges), **tables)
            name, text = (
                layout.composition,
                json.dumps(data, ensure_ascii=False, separators=(",", ":")),
            )
            (folder / f"{name}.js").write_text(
                f"received({json.dumps(name)},{text});\n", encoding="utf-8"
            )
            count = sum(len(columns["prompt"]) for columns in data["generators"].values())
            log.info("%s: %s judged images, %.1f MB", name, f"{count:,}", len(text.encode()) / 1e6)
    context = {name: getattr(params, name) for name in ("dataset", "compositions", "judges")}
    context["splits"] = [SPLIT_NAMES[split] for split in TESTS]
    write_page(render("entries.html.j2", context), job.output.page)


if __name__ == "__main__":
    run_script(main)
