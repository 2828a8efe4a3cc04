"""Open the models to ask: judges, and models of open_clip.

A model of open_clip is cached as a judge's folder, as stage ``judge`` makes it with ``epochs: 0``:
it has the same hash and shares its embeddings.
"""

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from compclip.clip.embed import Embedder, encoding_code, open_embedder
from compclip.clip.model import build, save_judge
from compclip.clip.sources import find_source, model_name
from compclip.clip.vision import open_clip
from compclip.compun.config import NamedModel
from compclip.core.artifacts.files import atomic_folder
from compclip.core.errors import UserError, one_line
from compclip.core.identity.cache import key
from compclip.core.identity.fingerprint import fingerprint
from compclip.core.log import log


@dataclass(frozen=True)
class Runtime:
    """How models run."""

    device: str  # auto, cpu or cuda
    threads: int  # changes floating-point rounding
    cache: Path  # folder of embeddings and of copies of models


@contextmanager
def open_model(model: NamedModel, batch: int, runtime: Runtime) -> Iterator[Embedder]:
    """Open the model's embedder, with its cache; UserError if the model is not available, damaged,
    or not a CLIP.
    """
    # A stack, so that the handler sees errors of opening, but not those of the caller's block.
    with ExitStack() as stack:
        try:
            cache = runtime.cache
            folder = Path(model.judge) if model.judge else keep_open_clip(model, cache)
            opened = open_embedder(folder, batch, runtime.threads, runtime.device, cache)
            embedder = stack.enter_context(opened)
        except (UserError, OSError) as error:
            raise UserError(f"compun.models: {model.title}: {one_line(error)}") from error
        yield embedder


def keep_open_clip(model: NamedModel, cache: Path) -> Path:
    """Return the folder in ``cache`` of a judge that equals this model of open_clip; make it if
    necessary.
    """
    config = model.judge_config()
    source = find_source(config)
    name = model_name(config.model)
    # Everything that determines the judge's files.
    identity = [
        name,
        source.model_cfg,
        source.preprocess_cfg,
        fingerprint(*source.files),
        open_clip().__version__,
        encoding_code(),
    ]
    folder = cache / "models" / key(json.dumps(identity)).hex()
    if not folder.is_dir():
        log.info("%s: copied to %s, which takes as much space as the weights", model.title, folder)
        # The seed does not matter, since all weights are loaded.
        built = build(config, [], 0)
        with atomic_folder(folder) as temporary:
            save_judge(built, name, config.crop, temporary)
    return folder
