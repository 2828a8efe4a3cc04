"""Write the page of all judged images, and a data file for each composition, which the page loads
on demand.

The data files are scripts, because a page on disk may not read JSON.
"""

import json

from compclip.core.artifacts.files import atomic_folder
from compclip.core.log import log
from compclip.core.tables import TESTS
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
            generated = read_generated(layout, params.generators, params.judges)
            data = list_entries(generated, **tables)
            name = layout.composition
            # Without spaces, because the text has many megabytes.
            text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
            # A call, because the page loads the file as a script.
            script = f"received({json.dumps(name)},{text});\n"
            (folder / f"{name}.js").write_text(script, encoding="utf-8")
            generators = data["generators"].values()
            count = sum(len(columns["prompt"]) for columns in generators)
            megabytes = len(text.encode()) / 1e6
            log.info("%s: %s judged images, %.1f MB", name, f"{count:,}", megabytes)
    context = {name: getattr(params, name) for name in ("dataset", "compositions", "judges")}
    context["splits"] = [SPLIT_NAMES[split] for split in TESTS]
    write_page(render("entries.html.j2", context), job.output.page)


if __name__ == "__main__":
    run_script(main)
