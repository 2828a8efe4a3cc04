"""State from which texts the images of a folder were made."""

from pathlib import Path

import pandas as pd

from compclip.core.artifacts.files import json_lines, write_text
from compclip.core.settings.arguments import Made
from compclip.core.settings.calls import checked
from compclip.generate.generator import MANIFEST_NAME


@checked
def write_manifest(folder: str | Path, prompts: Made) -> None:
    """Write ``manifest.jsonl`` into a folder of images: the texts from which the images were made.

    Args:
        prompts: columns file_name and text, as in prompts.jsonl; optionally seed and status (``ok``
            or why the image is missing). The lines of other images are kept.

    Raises:
        UserError: a text or a name is missing or blank, or a name has two rows.
    """
    file = Path(folder) / MANIFEST_NAME
    columns = [name for name in ("file_name", "text", "seed", "status") if name in prompts]
    tables = [prompts[columns]]
    if file.is_file():
        tables.insert(0, pd.read_json(file, lines=True, dtype=False))
    lines = pd.concat(tables).drop_duplicates("file_name", keep="last")
    write_text("".join(json_lines(lines)), file)
