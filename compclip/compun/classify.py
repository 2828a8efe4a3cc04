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
from compclip.clip.tokens import cut_texts, say_cut
from compclip.compun.config import NamedModel
from compclip.compun.models import open_model
from compclip.compun.prompts import Prompts, compound_prompts
from compclip.core.errors import require
from compclip.core.inputs import Matrix, checked
from compclip.core.log import log
from compclip.core.rounding import DECIMALS
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
    require(
        three.shape[1] == len(ROLES),
        "three",
        f"expected (n, {len(ROLES)}) similarities, got {three.shape}",
    )
    # argmax returns the first of ties, so distractors precede the compound.
    order = np.array([1, 2, 0])
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
    tables = []
    vector_of = dict(zip(texts, embedder.texts(texts).astype(float), strict=True))
    for prompt, of in prompts.items():
        # The mean similarity of several texts is the similarity of their mean vector.
        vectors = np.stack(
            [np.mean([vector_of[line] for line in lines], axis=0) for lines in of.values()]
        )
        similarities = (vectors @ images.T).round(DECIMALS)
        own = columns.loc[list(of)].to_numpy()
        three = np.take_along_axis(similarities, own, axis=1)
        answer, right = choose_compound(three)
        # Among all images; images that tie precede the compound's own.
        rank = (~(similarities < three[:, :1])).sum(axis=1)
        columns_of = {f"similarity_{role}": three[:, place] for place, role in enumerate(ROLES)}
        columns_of |= {"answer": answer, "right": right, "rank": rank}
        tables.append(
            pd.DataFrame({"compound": list(of), "model": model, "prompt": prompt} | columns_of)
        )
    return pd.concat(tables)


def summarize_prompts(names: Sequence[str], prompts: Prompts) -> dict[str, Any]:
    """Return an example of each prompt and the compounds that lack texts for it, and warn about
    those.
    """
    summary = {}
    for prompt, of in prompts.items():
        lacking = [name for name in names if name not in of]
        summary[prompt] = {
            "compounds": len(of),
            "lacking": named(lacking),
            "for_example": next(iter(of.values()))[0],
        }
        if lacking:
            log.warning(
                "warning: %s: %d compounds lack texts, the first is %s",
                prompt,
                len(lacking),
                lacking[0],
            )
    return {"compounds": len(names), "prompts": summary}


def classify(
    compounds: pd.DataFrame,
    images: pd.DataFrame,
    folder: Path,
    models: Sequence[NamedModel],
    *,
    captions: Mapping[str, Sequence[str]],
    descriptions: Mapping[str, Sequence[str]],
    device: str,
    threads: int,
    cache: Path,
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Ask each model, by each prompt, which of three images shows a compound.

    The prompts are the template, its nouns reversed, 1 to 7 example captions, and descriptions.
    Each distinct image and text is encoded once, and embeddings are cached.

    Args:
        compounds: ``COMPOUNDS``; incomplete ones are not asked about, but their images are
            candidates.
        images: ``COMPOUND_IMAGES``, with paths relative to ``folder``.
        captions: example captions of compounds, as ``read_texts`` returns them; descriptions
            likewise.
        threads: changes floating-point rounding.
        cache: folder of embeddings and copies of models.

    Returns:
        ``CHOICES``; and the models, the prompts, and the compounds that lack texts for a prompt.
    """
    find_device(device, "compun.device")
    whole = compounds[compounds["complete"]]
    require(
        len(whole),
        "compounds",
        f"none of {len(compounds)} compounds is complete",
        "add their images",
    )
    prompts = compound_prompts(whole, captions, descriptions)
    images = images.dropna(subset="path")
    texts = list(
        dict.fromkeys(text for of in prompts.values() for lines in of.values() for text in lines)
    )
    log.info("%d models encode %d images and %d texts each", len(models), len(images), len(texts))
    tables, asked = [], []
    for model in models:
        log.info("%s", model.title)
        with open_model(model, CLASSIFY_BATCH, threads, device, cache) as embedder:
            vectors = embedder.images([(folder / path, None) for path in images["path"]])
            # A duplicate would tie with itself.
            vectors, places = np.unique(vectors, axis=0, return_inverse=True)
            columns = images.assign(place=places.reshape(-1)).pivot(
                index="compound", columns="role", values="place"
            )
            columns = columns.loc[whole["compound"], list(ROLES)].astype(int)
            tables.append(
                ask_model(embedder, model.title, prompts, texts, vectors.astype(float), columns)
            )
            truncated = len(cut_texts(embedder.judge.tokenizer, texts))
            about = {
                "judge": embedder.judge.name,
                "judge_hash": embedder.judge.hash,
                "texts_truncated": truncated,
            }
        say_cut(truncated, len(texts), "texts")
        asked.append({"model": model.title, "images": len(vectors), **about})
    choices = pd.concat(tables, ignore_index=True)
    for (title, prompt), accuracy in (
        choices.groupby(["model", "prompt"], sort=False)["right"].mean().items()
    ):
        log.info("%s, %s: %.1f %%", title, prompt, 100 * accuracy)
    return choices, summarize_prompts(whole["compound"].tolist(), prompts) | {"models": asked}
