"""Ask each model, by each prompt, which of three images shows a compound: its own or one of a noun
of it.

Source: Kumar et al., "Do Vision-Language Models Understand Compound Nouns?" (NAACL 2024), sections
3 to 6.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from compclip.clip.device import find_device
from compclip.clip.embed import Embedder
from compclip.clip.tokens import report_truncated, truncated_texts
from compclip.compun.asked_models import Runtime, open_model
from compclip.compun.config import NamedModel
from compclip.compun.prompts import Prompts, compound_prompts, distinct_texts
from compclip.core.artifacts.rounding import DECIMALS
from compclip.core.errors import require
from compclip.core.log import log
from compclip.core.settings.arguments import Matrix
from compclip.core.settings.calls import checked
from compclip.core.tables import ROLES
from compclip.dataset.source import named

CLASSIFY_BATCH = 256  # items encoded at once; changes floating-point rounding


@checked
def choose_compound(three: Matrix) -> tuple[np.ndarray, np.ndarray]:
    """Choose among the three images of each compound the one that is most similar to its text.

    Source: Kumar et al., "Do Vision-Language Models Understand Compound Nouns?" (NAACL 2024),
    section 3.

    Args:
        three: (n, 3) similarities with the compound's own image and those of its first and its
            second noun.

    Returns:
        The choices (n,), of ``tables.ROLES``, and whether they are right (n,); a tie is not.

    Raises:
        UserError: an argument is refused (docs/library.md).
    """
    fault = f"expected (n, {len(ROLES)}) similarities, got {three.shape}"
    require(three.shape[1] == len(ROLES), "three", fault)
    # argmax returns the first of ties, so distractors precede the compound.
    order = np.array([1, 2, 0])  # columns of ``three``, and numbers of ROLES
    answers = order[three[:, order].argmax(axis=1)]
    return np.array(ROLES, dtype=object)[answers], answers == 0


def ask_model(
    embedder: Embedder,
    model: str,
    prompts: Prompts,
    texts: Sequence[str],
    images: np.ndarray,
    columns: pd.DataFrame,
) -> pd.DataFrame:
    """Return the rows of CHOICES for one model.

    ``texts`` are the distinct texts of all prompts. ``images`` are (m, d), distinct; ``columns``
    has their rows of a compound's three images, in the order of ROLES.
    """
    tables = []  # of each prompt
    vectors = embedder.texts(texts).astype(float)
    vector_by_text = dict(zip(texts, vectors, strict=True))
    for prompt, texts_by_compound in prompts.items():
        prompt_vectors = []
        for compound_texts in texts_by_compound.values():
            # The mean similarity of several texts is the similarity of their mean vector.
            text_vectors = [vector_by_text[text] for text in compound_texts]
            prompt_vectors.append(np.mean(text_vectors, axis=0))
        # Answers are ties if they agree in the decimals that artifacts have.
        similarities = (np.stack(prompt_vectors) @ images.T).round(DECIMALS)
        compounds = list(texts_by_compound)  # those that have the texts
        three = np.take_along_axis(similarities, columns.loc[compounds].to_numpy(), axis=1)
        answer, right = choose_compound(three)
        # Among all images; images that tie precede the compound's own.
        rank = (~(similarities < three[:, :1])).sum(axis=1)
        table = pd.DataFrame({"compound": compounds, "model": model, "prompt": prompt})
        for number, role in enumerate(ROLES):
            table[f"similarity_{role}"] = three[:, number]
        tables.append(table.assign(answer=answer, right=right, rank=rank))
    return pd.concat(tables)


def summarize_prompts(names: Sequence[str], prompts: Prompts) -> dict[str, Any]:
    """Return an example of each prompt and the compounds that lack texts for it, and warn about
    those.
    """
    summary = {}
    for prompt, texts_by_compound in prompts.items():
        lacking = [name for name in names if name not in texts_by_compound]
        first_texts = next(iter(texts_by_compound.values()))
        summary[prompt] = {
            "compounds": len(texts_by_compound),
            "lacking": named(lacking),
            "for_example": first_texts[0],
        }
        if lacking:
            message = "warning: %s: %d compounds lack texts, the first is %s"
            log.warning(message, prompt, len(lacking), lacking[0])
    return {"compounds": len(names), "prompts": summary}


def image_columns(images: pd.DataFrame, compounds: Sequence[str]) -> pd.DataFrame:
    """Return the columns of each compound's three images among all distinct ones; ``images`` has
    the column ``column``.
    """
    columns = images.pivot(index="compound", columns="role", values="column")
    return columns.loc[compounds, list(ROLES)].astype(int)


def classify(
    compounds: pd.DataFrame,
    images: pd.DataFrame,
    folder: Path,
    models: Sequence[NamedModel],
    runtime: Runtime,
    *,
    captions: Mapping[str, Sequence[str]],
    descriptions: Mapping[str, Sequence[str]],
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Ask each model, by each prompt, which of three images shows a compound.

    The prompts are the template, its nouns reversed, 1 to 7 example captions, and descriptions.
    Each distinct image and text is encoded once, and embeddings are cached.

    Args:
        compounds: ``COMPOUNDS``; incomplete ones are not asked about, but their images are
            candidates.
        images: ``COMPOUND_IMAGES``, with paths relative to ``folder``.
        runtime: the device, threads and cache of the models.
        captions: example captions of compounds, as ``read_texts`` returns them; descriptions
            likewise.

    Returns:
        ``CHOICES``; and the models, the prompts, and the compounds that lack texts for a prompt.
    """
    find_device(runtime.device, "compun.device")
    complete = compounds[compounds["complete"]]
    fault = f"none of {len(compounds)} compounds is complete"
    require(len(complete), "compounds", fault, "add their images")
    names = complete["compound"].tolist()
    prompts = compound_prompts(complete, captions, descriptions)
    texts = distinct_texts(prompts)
    images = images.dropna(subset="path")
    files = [(folder / path, None) for path in images["path"]]
    log.info("%d models encode %d images and %d texts each", len(models), len(files), len(texts))
    tables = []
    model_summaries = []
    for model in models:
        log.info("%s", model.title)
        with open_model(model, CLASSIFY_BATCH, runtime) as embedder:
            # A duplicate would tie with itself.
            vectors, columns = np.unique(embedder.images(files), axis=0, return_inverse=True)
            own_columns = image_columns(images.assign(column=columns.reshape(-1)), names)
            vectors = vectors.astype(float)
            tables.append(ask_model(embedder, model.title, prompts, texts, vectors, own_columns))
            truncated = len(truncated_texts(embedder.judge.tokenizer, texts))
            summary = {
                "model": model.title,
                "images": len(vectors),
                "judge": embedder.judge.name,
                "judge_hash": embedder.judge.hash,
                "texts_truncated": truncated,
            }
        report_truncated(truncated, len(texts), "texts")
        model_summaries.append(summary)
    choices = pd.concat(tables, ignore_index=True)
    accuracies = choices.groupby(["model", "prompt"], sort=False)["right"].mean()
    for (title, prompt), accuracy in accuracies.items():
        log.info("%s, %s: %.1f %%", title, prompt, 100 * accuracy)
    return choices, summarize_prompts(names, prompts) | {"models": model_summaries}
