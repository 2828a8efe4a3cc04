"""Which of its three images does a model choose for a compound: its own, or that of one of its two nouns?

Every model is asked by every prompt that there is text for: the template, the constituents reversed, 1 to --examples
example captions, descriptions; and each of these again by the ensemble of --templates. Writes to the output folder
choices.parquet (a row a compound, model and prompt), retrieval.parquet (the same with all images as candidates),
models.json (what was loaded, and what could not be and why) and choices.json (what was left out). Each distinct image
and text is encoded once; the cache serves later runs.

Source: Kumar et al., "Do Vision-Language Models Understand Compound Nouns?" (NAACL 2024), sections 3 to 6.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from workflow_scripts.clip.device import find_device
from workflow_scripts.clip.embed import Embedder, file_digest, similarities
from workflow_scripts.clip.prompts import ENSEMBLE, Ensembles, Prompts, read_templates, read_texts
from workflow_scripts.clip.tokens import say_cut
from workflow_scripts.compun.choices import is_tied
from workflow_scripts.compun.models import CannotLoad, open_model, read_models
from workflow_scripts.compun.prompts import compound_prompts
from workflow_scripts.compun.retrieval import standings
from workflow_scripts.core import cli
from workflow_scripts.core.cli import log
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import atomic_folder, read_table, write_json, write_table
from workflow_scripts.core.rounding import DECIMALS as DIGITS
from workflow_scripts.core.tables import CHOICES, COMPOUND_IMAGES, COMPOUNDS, RETRIEVAL, ROLES
from workflow_scripts.dataset.source import named
from workflow_scripts.specs import evaluation
from workflow_scripts.specs.evaluation import encode_images
from workflow_scripts.specs.zero_shot import class_vectors

# Similarities that lie in memory at once, 4 bytes each.
HELD = 1 << 25


@dataclass
class Images:
    """Different images (m, d), of unit length; ``columns``: of each compound its three, by ROLES, as places there.

    lost: the names of image files that cannot be read, and of the compounds that they cost.
    """

    vectors: np.ndarray
    columns: dict[str, tuple[int, int, int]]
    lost: dict[str, list[str]]


def choose(three: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The answers (n,), of ROLES, and whether they are right (n,).

    three (n, 3): similarities to the images of ROLES. A tie of the compound's image with another is not right.
    """
    # The first of several greatest: a distractor goes before the compound.
    order = np.array([1, 2, 0])
    answers = order[three[:, order].argmax(axis=1)]
    return np.array(ROLES, dtype=object)[answers], answers == 0


def encode_compounds(embedder: Embedder, images: pd.DataFrame, folder: Path) -> Images:
    """All images that can be read, each of different bytes once, and those compounds of which all three can.

    images: columns of ``COMPOUND_IMAGES``, paths relative to ``folder``.
    """
    there = images[images["path"].notna()]
    paths = [folder / path for path in there["path"]]
    vectors, fault = encode_images(embedder, paths)
    seen = np.flatnonzero(fault == "")
    first: dict[bytes, int] = {}
    place = {row: first.setdefault(file_digest(paths[row]), len(first)) for row in seen}
    rows = np.unique(list(place.values()), return_index=True)[1]
    owners = zip(there["compound"], there["role"], strict=True)
    found = {owner: place[row] for row, owner in enumerate(owners) if row in place}
    names = list(dict.fromkeys(images["compound"]))
    columns = {name: (found[name, ROLES[0]], found[name, ROLES[1]], found[name, ROLES[2]])
               for name in names if all((name, role) in found for role in ROLES)}  # fmt: skip
    bad = np.flatnonzero(fault != "")
    lost = {
        "images_lost": there["path"].iloc[bad].tolist(),
        "compounds_lost": [name for name in there["compound"].iloc[bad].unique() if name not in columns],
    }
    return Images(vectors[seen[rows]], columns, lost)


def ask(
    embedder: Embedder, model: str, prompts: Prompts, images: Images
) -> tuple[list[pd.DataFrame], list[pd.DataFrame]]:
    """A model's choices and standings: frames with the columns of CHOICES and of RETRIEVAL, one a prompt.

    Similarities have six decimals, and the choices are made of these. Raises CannotLoad where the model gives no
    numbers.
    """
    asked = {prompt: {n: e for n, e in own.items() if n in images.columns} for prompt, own in prompts.items()}
    distinct = list(dict.fromkeys(tuple(texts) for own in asked.values() for e in own.values() for texts in e))
    vectors = class_vectors(embedder.texts, distinct)
    if not (np.isfinite(vectors).all() and np.isfinite(images.vectors).all()):
        raise CannotLoad("its embeddings are no numbers")
    place = {ensemble: row for row, ensemble in enumerate(distinct)}
    choices, ranks = [], []
    for prompt, own in asked.items():
        if not own:
            continue
        names = list(own)
        classes = class_vectors(
            lambda texts: vectors[[place[tuple(some)] for some in texts]], list(own.values()), "similarities"
        )
        columns = np.array([images.columns[name] for name in names])
        three, above, tied = stand(classes, images.vectors, columns)
        answer, right = choose(three)
        head = {"compound": names, "model": model, "prompt": prompt}
        values = {f"similarity_{role}": three[:, i] for i, role in enumerate(ROLES)}
        choices.append(pd.DataFrame({**head, **values, "answer": answer, "right": right}))
        ranks.append(pd.DataFrame({**head, "images": len(images.vectors), "above": above, "tied": tied}))
    return choices, ranks


def stand(classes: np.ndarray, images: np.ndarray, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(n, 3) the similarities of n classes to their images, columns (n, 3) of ``images`` (m, d), with six decimals;
    (n,) and (n,) ``standings`` of the first of them among all."""
    rows_of = similarities(classes, images)
    three = np.empty((len(classes), 3))
    above, tied = np.empty(len(classes), np.int64), np.empty(len(classes), np.int64)
    step = max(1, HELD // len(images))
    for start in range(0, len(classes), step):
        part = np.arange(start, min(start + step, len(classes)))
        values = rows_of(part)
        three[part] = np.take_along_axis(values, columns[part], axis=1)
        above[part], tied[part] = standings(values, columns[part, 0])
    return three.round(DIGITS), above, tied


def main(options: argparse.Namespace) -> None:
    models = read_models(options.models)
    if options.examples < 1:
        raise UserError(f"--examples {options.examples}: at least 1")
    find_device(options.device, "--device")
    compounds, images = read_table(options.compounds, COMPOUNDS), read_table(options.images, COMPOUND_IMAGES)
    whole = compounds[compounds["complete"]]
    if whole.empty:
        raise UserError(f"{options.compounds}: none of {len(compounds)} compounds is complete: get their images")
    captions, descriptions = (
        read_texts(path, "compound") if path else {} for path in (options.captions, options.descriptions)
    )
    templates = None if options.templates == "none" else read_templates(options.templates)
    prompts, lacking = compound_prompts(whole, captions, descriptions, options.examples, templates)
    texts = distinct_texts(prompts)
    log.info(
        "%d models, each to encode %d images and %d texts of %d compounds by %d prompts, and to keep some 3 KB of each",
        len(models), images["path"].notna().sum(), len(texts), len(whole), len(prompts),
    )  # fmt: skip

    choices: list[pd.DataFrame] = []
    ranks: list[pd.DataFrame] = []
    loaded: list[dict[str, Any]] = []
    failed: list[dict[str, str]] = []
    lost: Mapping[str, Sequence[str]] = {}
    for model in models:
        log.info("%s", model.title)
        try:
            with open_model(model, options) as embedder:
                seen = encode_compounds(embedder, images, options.folder)
                own = ask(embedder, model.title, prompts, seen)
                cut = evaluation.count_cut(embedder, texts)
                about = {"model": model.title, **evaluation.judge_of(embedder), "texts_cut": cut}
        except CannotLoad as error:
            log.warning("warning: %s: not loaded: %s", model.title, error)
            failed.append({"model": model.title, "reason": str(error)})
            continue
        say_cut(cut, len(texts), "texts")
        lost = seen.lost
        loaded.append(about)
        choices += own[0]
        ranks += own[1]
    if not choices:
        raise UserError(f"none of {len(models)} models could be asked: {models[0].title}: {failed[0]['reason']}")
    if failed:
        log.warning(
            "warning: %d of %d models were not asked, and a rerun does not try them again by itself: once they can be"
            " had, snakemake --forcerun classify", len(failed), len(models),
        )  # fmt: skip

    table = pd.concat(choices, ignore_index=True)
    for prompt, names in lacking.items():
        # An ensemble lacks what the prompt itself does.
        if names and not prompt.endswith(ENSEMBLE):
            log.warning("warning: %s: %d compounds lack what it takes, the first is %s", prompt, len(names), names[0])
    ties = int(is_tied(table).sum())
    if ties:
        log.warning("warning: %d of %d answers are ties, which are not right", ties, len(table))
    summary = {
        "compounds": len(compounds),
        "complete": len(whole),
        "incomplete": named(compounds.loc[~compounds["complete"], "compound"].tolist()),
        **{reason: named(names) for reason, names in lost.items()},
        "templates": None if templates is None else Path(options.templates).name,
        "prompts": {
            prompt: {
                "compounds": len(own),
                "lacking": named(lacking[prompt]),
                "texts": sum(len(texts) for ensembles in own.values() for texts in ensembles),
                "for_example": next(iter(own.values()))[0][0],
            }
            for prompt, own in prompts.items()
        },
        "answers": len(table),
        "ties": ties,
    }
    with atomic_folder(options.output) as folder:
        write_table(table, folder / "choices.parquet", CHOICES)
        write_table(pd.concat(ranks, ignore_index=True), folder / "retrieval.parquet", RETRIEVAL)
        write_json({"loaded": loaded, "not_loaded": failed}, folder / "models.json")
        write_json(summary, folder / "choices.json")
    shares = table.groupby(["model", "prompt"], sort=False)["right"].mean()
    for (title, prompt), share in shares.items():
        log.info("%s, %s: %.1f %%", title, prompt, 100 * share)


def distinct_texts(prompts: Mapping[str, Mapping[str, Ensembles]]) -> list[str]:
    return list(dict.fromkeys(t for own in prompts.values() for some in own.values() for texts in some for t in texts))


def arguments() -> argparse.ArgumentParser:
    parser = cli.parser(__doc__)
    parser.add_argument("--compounds", type=Path, required=True, help="compounds.parquet")
    parser.add_argument("--images", type=Path, required=True, help="images.parquet")
    parser.add_argument("--folder", type=Path, required=True, help="the folder of images, from which its paths start")
    parser.add_argument("--captions", type=Path, help="captions.json: example captions of each compound")
    parser.add_argument("--descriptions", type=Path, help="descriptions.json: descriptions of each compound")
    parser.add_argument(
        "--examples", type=int, default=7, help="captions of a compound, at most (default: %(default)s)"
    )
    parser.add_argument(
        "--templates",
        default="imagenet",
        help="of the ensembles: imagenet (80), simple (7), a file with {} a line, or none (default: %(default)s)",
    )
    parser.add_argument(
        "--models",
        required=True,
        help='JSON: a list as [{"open_clip": "ViT-L-14", "pretrained": "openai"}, {"judge": "FOLDER"},'
        ' {"transformers": "Salesforce/blip-itm-base-coco", "name": "BLIP"}]',
    )
    parser.add_argument("--cache", type=Path, default=Path(".cache"), help="folder that keeps models and embeddings")
    parser.add_argument("--batch", type=int, default=256, help="items encoded at once; another number, other last bits")
    parser.add_argument("--threads", type=int, default=2, help="another number, other last bits")
    parser.add_argument("--device", default="auto", choices=("auto", "cpu", "cuda"))
    parser.add_argument("--output", type=Path, required=True, metavar="FOLDER", help="for the tables")
    return parser


if __name__ == "__main__":
    cli.run(main, arguments())
