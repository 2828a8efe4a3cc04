"""Ask each model, by each prompt, which of three images shows a compound: its own, or that of one of its nouns?

Source: Kumar et al., "Do Vision-Language Models Understand Compound Nouns?" (NAACL 2024), sections 3 to 6.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from workflow_scripts.clip.device import find_device
from workflow_scripts.clip.embed import Embedder, InvalidEmbedding, file_digest, similarities
from workflow_scripts.clip.prompts import ENSEMBLE, Ensembles, Prompts, class_vectors, read_templates, read_texts
from workflow_scripts.clip.tokens import say_cut
from workflow_scripts.compun.choices import is_tied, standings
from workflow_scripts.compun.models import CannotLoad, open_model, without_folders
from workflow_scripts.compun.prompts import compound_prompts
from workflow_scripts.compun.steps import Classify
from workflow_scripts.core import cli
from workflow_scripts.core.cli import log
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import atomic_folder, read_table, write_json, write_table
from workflow_scripts.core.rounding import DECIMALS
from workflow_scripts.core.tables import CHOICES, COMPOUND_IMAGES, COMPOUNDS, RETRIEVAL, ROLES
from workflow_scripts.dataset.source import named
from workflow_scripts.specs import evaluation
from workflow_scripts.specs.evaluation import encode_images

MAX_SIMILARITIES = 1 << 25  # in memory at once, 4 bytes each


@dataclass
class Images:
    """Distinct images of all compounds.

    Attributes:
        vectors: (m, d), of unit length.
        columns: the rows in ``vectors`` of a compound's three images, in the order of ROLES.
        lost: the names of unreadable image files, and of compounds that are incomplete because of them.
    """

    vectors: np.ndarray
    columns: dict[str, tuple[int, int, int]]
    lost: dict[str, list[str]]


# What models answered: frames of a model and prompt, with the columns of CHOICES and of RETRIEVAL.
Answers = list[tuple[pd.DataFrame, pd.DataFrame]]


def choose(three: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the answers of ROLES (n,) to similarities (n, 3), and whether they are right (n,), as ties are not."""
    # argmax takes the first of ties, so distractors precede the compound.
    order = np.array([1, 2, 0])
    answers = order[three[:, order].argmax(axis=1)]
    return np.array(ROLES, dtype=object)[answers], answers == 0


def encode_compounds(embedder: Embedder, images: pd.DataFrame, folder: Path) -> Images:
    """Encode all readable images in ``folder``, each distinct one once, and find the compounds that have all three."""
    present = images[images["path"].notna()]
    paths = [folder / path for path in present["path"]]
    vectors, fault = encode_images(embedder, paths)
    readable = np.flatnonzero(fault == "")
    first: dict[str, int] = {}
    place = {row: first.setdefault(file_digest(paths[row]), len(first)) for row in readable.tolist()}
    rows = np.unique(list(place.values()), return_index=True)[1]
    owners = enumerate(zip(present["compound"], present["role"], strict=True))
    image_of = {owner: place[row] for row, owner in owners if row in place}
    names = list(dict.fromkeys(images["compound"]))
    columns = {name: (image_of[name, ROLES[0]], image_of[name, ROLES[1]], image_of[name, ROLES[2]])
               for name in names if all((name, role) in image_of for role in ROLES)}  # fmt: skip
    broken = present.iloc[np.flatnonzero(fault != "")]
    lost = {
        "images_lost": broken["path"].tolist(),
        "compounds_lost": [name for name in broken["compound"].unique() if name not in columns],
    }
    return Images(vectors[readable[rows]], columns, lost)


def ask(embedder: Embedder, model: str, prompts: Prompts, images: Images) -> Answers:
    """Return a model's choices (from six decimals) and ranks."""
    asked = {
        prompt: {name: ensembles for name, ensembles in texts.items() if name in images.columns}
        for prompt, texts in prompts.items()
    }
    distinct = list(dict.fromkeys(tuple(t) for own in asked.values() for e in own.values() for t in e))
    vectors = class_vectors(embedder.texts, distinct)
    place = {ensemble: row for row, ensemble in enumerate(distinct)}
    answers: Answers = []
    for prompt, own in asked.items():
        if not own:
            continue
        names = list(own)
        classes = class_vectors(
            lambda ensembles: vectors[[place[tuple(texts)] for texts in ensembles]], list(own.values()), unit=False
        )
        columns = np.array([images.columns[name] for name in names])
        three, above, tied = stand(classes, images.vectors, columns)
        answer, right = choose(three)
        head = {"compound": names, "model": model, "prompt": prompt}
        values = {f"similarity_{role}": three[:, i] for i, role in enumerate(ROLES)}
        choices = pd.DataFrame({**head, **values, "answer": answer, "right": right})
        ranks = pd.DataFrame({**head, "images": len(images.vectors), "above": above, "tied": tied})
        answers.append((choices, ranks))
    return answers


def stand(classes: np.ndarray, images: np.ndarray, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the similarities of classes to their three images, and the ``standings`` of the first among all.

    classes: (n, d); images: (m, d); columns: (n, 3) rows of ``images``. Return (n, 3) with six decimals, (n,) and (n,).
    """
    rows_of = similarities(classes, images)
    three = np.empty((len(classes), 3))
    above, tied = np.empty(len(classes), np.int64), np.empty(len(classes), np.int64)
    step = max(1, MAX_SIMILARITIES // len(images))
    for start in range(0, len(classes), step):
        rows = np.arange(start, min(start + step, len(classes)))
        values = rows_of(rows)
        three[rows] = np.take_along_axis(values, columns[rows], axis=1)
        above[rows], tied[rows] = standings(values, columns[rows, 0])
    return three.round(DECIMALS), above, tied


def ask_all(
    step: Classify, prompts: Prompts, images: pd.DataFrame
) -> tuple[Answers, dict[str, Any], Mapping[str, Sequence[str]]]:
    """Return each model's answers, the content of models.json, and what is lost because images are unreadable."""
    texts = distinct_texts(prompts)
    answers: Answers = []
    loaded, failed = list[dict[str, Any]](), list[dict[str, str]]()
    lost: Mapping[str, Sequence[str]] = {}
    for model in step.models:
        log.info("%s", model.title)
        try:
            with open_model(model, step.asked.batch, step.threads, step.asked.device, step.cache) as embedder:
                readable = encode_compounds(embedder, images, step.folder)
                own = ask(embedder, model.title, prompts, readable)
                cut = evaluation.count_truncated(embedder, texts)
                loaded.append({"model": model.title, **evaluation.judge_of(embedder), "texts_cut": cut})
        except (CannotLoad, InvalidEmbedding) as error:
            reason = without_folders(str(error))
            log.warning("warning: %s: not loaded: %s", model.title, reason)
            failed.append({"model": model.title, "reason": reason})
            continue
        say_cut(cut, len(texts), "texts")
        lost = readable.lost
        answers += own
    if not answers:
        reason = f"{failed[0]['model']}: {failed[0]['reason']}"
        raise UserError(f"none of {len(step.models)} models could be asked: {reason}")
    if failed:
        log.warning(
            "warning: %d of %d models were not asked, and a rerun does not try them again; once they are available, run"
            " snakemake --forcerun classify", len(failed), len(step.models),
        )  # fmt: skip
    return answers, {"loaded": loaded, "not_loaded": failed}, lost


def distinct_texts(prompts: Prompts) -> list[str]:
    return list(dict.fromkeys(t for own in prompts.values() for some in own.values() for texts in some for t in texts))


def summarize(
    compounds: pd.DataFrame, table: pd.DataFrame, prompts: Prompts, lacking: Mapping[str, Sequence[str]],
    lost: Mapping[str, Sequence[str]], templates: str | None,
) -> dict[str, Any]:  # fmt: skip
    """Return the content of choices.json."""

    def about(prompt: str, own: Mapping[str, Ensembles]) -> dict[str, Any]:
        return {
            "compounds": len(own),
            "lacking": named(lacking[prompt]),
            "texts": sum(len(texts) for ensembles in own.values() for texts in ensembles),
            "for_example": next(iter(own.values()))[0][0],
        }

    return {
        "compounds": len(compounds),
        "complete": int(compounds["complete"].sum()),
        "incomplete": named(compounds.loc[~compounds["complete"], "compound"].tolist()),
        **{reason: named(names) for reason, names in lost.items()},
        "templates": templates,
        "prompts": {prompt: about(prompt, own) for prompt, own in prompts.items()},
        "answers": len(table),
        "ties": int(is_tied(table).sum()),
    }


def main(step: Classify) -> None:
    find_device(step.asked.device, "--asked.device")
    compounds, images = read_table(step.compounds, COMPOUNDS), read_table(step.images, COMPOUND_IMAGES)
    whole = compounds[compounds["complete"]]
    if whole.empty:
        raise UserError(f"{step.compounds}: none of {len(compounds)} compounds is complete; add their images")
    captions, descriptions = (read_texts(p, "compound") if p else {} for p in (step.captions, step.descriptions))
    templates = None if step.asked.templates == "none" else read_templates(step.asked.templates)
    prompts, lacking = compound_prompts(whole, captions, descriptions, step.asked.examples, templates)
    log.info(
        "%d models encode %d images and %d texts each, of %d compounds and %d prompts; an embedding takes about 3 KB",
        len(step.models), images["path"].notna().sum(), len(distinct_texts(prompts)), len(whole), len(prompts),
    )  # fmt: skip
    answers, models, lost = ask_all(step, prompts, images)
    table, ranks = (pd.concat(frames, ignore_index=True) for frames in zip(*answers, strict=True))
    for prompt, names in lacking.items():
        # An ensemble lacks what the prompt itself lacks.
        if names and not prompt.endswith(ENSEMBLE):
            log.warning("warning: %s: %d compounds lack texts for it, the first is %s", prompt, len(names), names[0])
    name = None if templates is None else Path(step.asked.templates).name
    summary = summarize(compounds, table, prompts, lacking, lost, name)
    if summary["ties"]:
        log.warning("warning: %d of %d answers are ties, which are not right", summary["ties"], len(table))
    with atomic_folder(step.choices) as folder:
        write_table(table, folder / "choices.parquet", CHOICES)
        write_table(ranks, folder / "retrieval.parquet", RETRIEVAL)
        write_json(models, folder / "models.json")
        write_json(summary, folder / "choices.json")
    for (title, prompt), accuracy in table.groupby(["model", "prompt"], sort=False)["right"].mean().items():
        log.info("%s, %s: %.1f %%", title, prompt, 100 * accuracy)


if __name__ == "__main__":
    cli.run(main)
