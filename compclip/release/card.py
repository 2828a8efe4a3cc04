"""The data card of a release (README.md with the Hub's front matter), and its description in
Croissant 1.0.
"""

import re
from pathlib import Path
from typing import Any

import yaml

from compclip.core.artifacts.files import read_json
from compclip.core.artifacts.parquet import read_table
from compclip.core.identity.digests import sha256
from compclip.core.tables import CAPTIONS, PROMPTS, SPLIT, SWAPPED, VARIANTS, Schema
from compclip.plot.labels import pair_words
from compclip.plot.page import render
from compclip.release.config import ReleaseConfig
from compclip.release.file_models import Contents

CROISSANT = "http://mlcommons.org/croissant/1.0"
CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}
DATA_TYPES = {"str": "sc:Text", "int64": "sc:Integer", "Int64": "sc:Integer", "float64": "sc:Float"}
# The tables of a composition that can be loaded by name; the first is the default.
LOADED: dict[str, Schema] = {
    "prompts": PROMPTS,
    "variants": VARIANTS,
    "swapped": SWAPPED,
    "splits": SPLIT,
}
MEDIA_TYPES = {
    ".parquet": "application/x-parquet",
    ".json": "application/json",
    ".jsonl": "application/jsonlines",
    ".md": "text/markdown",
    ".zip": "application/zip",
    ".csv": "text/csv",
}


def front_matter(config: ReleaseConfig, contents: Contents) -> str:
    """Return the metadata from which ``datasets.load_dataset(folder)`` finds the tables."""
    configs: list[dict[str, Any]] = []
    for name in LOADED:
        files = []
        for composition in contents.compositions:
            # ``datasets`` allows letters, digits and _ in names of splits.
            split = re.sub(r"\W", "_", composition)
            files.append({"split": split, "path": f"{composition}/{name}.parquet"})
        configs.append({"config_name": name, "data_files": files})
    # Prompts are what a model draws.
    configs[0]["default"] = True
    captions = {"split": "captions", "path": "captions.parquet"}
    configs.append({"config_name": "captions", "data_files": [captions]})
    metadata = {
        "pretty_name": contents.name,
        "license": config.license,
        "language": ["en"],
        "task_categories": ["text-to-image"],
        "tags": ["compositionality", "benchmark", "croissant"],
        "configs": configs,
    }
    return yaml.safe_dump(metadata, sort_keys=False, allow_unicode=True)


def data_card(config: ReleaseConfig, contents: Contents, folder: Path) -> str:
    """Return README.md of the release in ``folder``."""
    lines = []
    for name, composition in contents.compositions.items():
        prompts = read_table(folder / name / "prompts.parquet", PROMPTS)
        pairs = read_json(folder / name / "heldout.json")["pairs"]
        line: dict[str, Any] = {"name": name}
        # In the order in which the table has them.
        line["splits"] = prompts["split"].value_counts(sort=False).to_dict()
        line["heldout"] = [pair_words(pair) for pair in pairs]
        line["generators"] = composition.generators
        line["judges"] = composition.judges
        lines.append(line)
    choices = folder.glob("*/choices/*.parquet")
    context = {
        "recorded": sorted({file.stem for file in choices}),
        "front": front_matter(config, contents),
        "config": config,
        "about": contents,
        "compositions": lines,
    }
    return render("data_card.md.j2", context)


def _record_set(name: str, file: str, schema: Schema) -> dict[str, Any]:
    """Return the description of a table's columns, without lists (``changes``)."""
    fields = []
    for column, values in schema.columns.items():
        # Croissant has no type for the lists of structs in ``changes``.
        if values.dtype not in DATA_TYPES:
            continue
        # Identifiers are unique in the whole description, so they name the table, too.
        identifier = f"{name}/{column}"
        field: dict[str, Any] = {"@type": "cr:Field", "@id": identifier, "name": identifier}
        field["description"] = column.replace("_", " ")
        field["dataType"] = DATA_TYPES[values.dtype]
        field["source"] = {"fileObject": {"@id": file}, "extract": {"column": column}}
        fields.append(field)
    return {"@type": "cr:RecordSet", "@id": name, "name": name, "field": fields}


def _file_object(folder: Path, name: str) -> dict[str, Any]:
    """Return the description of a file of the release in ``folder``."""
    media_type = MEDIA_TYPES.get(Path(name).suffix, "application/octet-stream")
    return {
        "@type": "cr:FileObject",
        "@id": name,
        "name": name,
        "contentUrl": name,
        "encodingFormat": media_type,
        "sha256": sha256(folder / name),
    }


def croissant(config: ReleaseConfig, contents: Contents, folder: Path) -> dict[str, Any]:
    """Return the Croissant description of the release in ``folder``: files with sha256, and columns
    of tables.
    """
    # Sorted, so that equal releases have equal descriptions.
    paths = [path for path in folder.rglob("*") if path.is_file()]
    files = sorted(path.relative_to(folder).as_posix() for path in paths)
    record_sets = [_record_set("captions", "captions.parquet", CAPTIONS)]
    for composition in contents.compositions:
        for name, schema in LOADED.items():
            file = f"{composition}/{name}.parquet"
            record_sets.append(_record_set(f"{composition}-{name}", file, schema))
    description = f"Compositional text-to-image benchmark of {contents.dataset}."
    # ``croissant.json`` and ``release.json`` are written later, so they are not among the files.
    distribution = [_file_object(folder, name) for name in files]
    return {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "name": contents.name,
        "description": config.description or description,
        "conformsTo": CROISSANT,
        "citeAs": "Park et al. Benchmark for Compositional Text-to-Image Synthesis. NeurIPS 2021.",
        "creator": {"@type": "sc:Organization", "name": config.creator},
        "license": config.license,
        "url": config.url,
        "version": contents.version,
        "distribution": distribution,
        "recordSet": record_sets,
    }
