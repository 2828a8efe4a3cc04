"""Open the models to ask, all with the interface of judges: judges, models of open_clip, BLIP and ALIGN.

A model of open_clip is cached once as the folder of the judge that stage ``judge`` makes of it with ``epochs: 0``: it
has the same hash and shares its embeddings.
"""

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

from compclip.clip.embed import Embedder, open_embedder
from compclip.clip.model import build, save_judge
from compclip.clip.sources import find_source, model_name
from compclip.clip.vision import open_clip
from compclip.compun.config import NamedModel
from compclip.core.cache import key
from compclip.core.code import code_hash
from compclip.core.digests import is_recorded, record
from compclip.core.errors import UserError, one_line
from compclip.core.fingerprint import fingerprint
from compclip.core.log import log
from compclip.io import atomic_folder


@contextmanager
def open_model(model: NamedModel, batch: int, threads: int, device: str, cache: Path) -> Iterator[Embedder]:
    """Open the model's embedder, with its cache; UserError if it is not available, damaged, or of another kind."""
    with ExitStack() as stack:
        try:
            opened: AbstractContextManager[Embedder]
            if model.transformers:
                from compclip.compun.blip_align import open_transformers  # transformers is slow to import

                opened = open_transformers(model, batch, threads, device, cache)
            else:
                folder = Path(model.judge) if model.judge else keep_open_clip(model, cache)
                opened = open_embedder(folder, batch, threads, device, cache)
            embedder = stack.enter_context(opened)
        except (UserError, OSError) as error:
            raise UserError(f"compun.models: {model.title}: {one_line(error)}") from error
        yield embedder


def keep_open_clip(model: NamedModel, cache: Path) -> Path:
    """Return the folder in ``cache`` of a judge that equals this model of open_clip; make it if necessary."""
    assert model.open_clip is not None
    config = model.judge_config()
    source = find_source(config)
    code = code_hash("compclip.clip.model:build", "compclip.clip.model:save_judge")
    parts = [
        model_name(model.open_clip), source.model_cfg, source.preprocess_cfg, fingerprint(*source.files),
        open_clip().__version__, code,
    ]  # fmt: skip
    folder = cache / "models" / key(json.dumps(parts)).hex()
    if not is_recorded(folder, "made again"):
        log.info("%s: copied to %s, which takes as much space as the weights", model.title, folder)
        # The seed does not matter, since all weights are loaded.
        built = build(config, [], 0)
        with atomic_folder(folder) as temporary:
            save_judge(built, model_name(config.model), config.crop, temporary)
        record(folder, "classify")
    return folder
