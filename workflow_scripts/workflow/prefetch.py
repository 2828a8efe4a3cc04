"""Download what a run needs, or say why it could not be: files to the cache, models to their libraries' caches.

With HF_HUB_OFFLINE=1 it checks, without internet, that everything is there (docs/cluster.md).
"""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from pydantic import BaseModel, Field

from workflow_scripts.core import cli, plugins
from workflow_scripts.core.cli import log
from workflow_scripts.core.code import ROOT
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.step import Step
from workflow_scripts.dataset.check import is_scored
from workflow_scripts.dataset.download import Candidate, fetch, obtain
from workflow_scripts.generate.config import KINDS
from workflow_scripts.judge.config import Training
from workflow_scripts.text.language import installed_name
from workflow_scripts.workflow.config import Config, runs_of


class Prefetch(Step):
    """Download everything that a config's run needs, for a machine without internet."""

    config: Path = Field(Path("config.yaml"), description="config.yaml, a preset's or your own")


# Something that a run needs: the config's key, and what fetches it and returns its place, or raises UserError.
Need = tuple[str, Callable[[], Path | str]]


def needs(config: Config) -> Iterator[Need]:
    """Yield what a run of ``config`` downloads, and the spaCy pipeline, which it expects to be installed."""
    cache = Path(config.cache)
    settings = getattr(config.dataset, config.dataset.source)
    for name, places in settings.places().items() if hasattr(settings, "places") else ():
        yield f"dataset.{config.dataset.source}.{name}", partial(_obtain, places, cache)
    warn_stored(f"dataset.{config.dataset.source}", settings)
    yield "pairs.model", lambda: installed_name(config.pairs.model, "pairs.model")
    if is_scored(config):
        yield from of_scores(config, cache)
    if config.specs:
        yield from of_judge("specs.base", config.specs.base)
    yield from of_compun(config, cache)


def _obtain(places: Sequence[Candidate], cache: Path) -> Path:
    return obtain(places, cache)[0]


def warn_stored(key: str, settings: BaseModel) -> None:
    """Warn of what a section reads from object storage during the run."""
    for address in re.findall(r'"(s3://[^"]*)"', settings.model_dump_json()):
        log.warning("%s: %s is read from object storage during the run, which must be able to reach it", key, address)


def of_scores(config: Config, cache: Path) -> Iterator[Need]:
    """Yield the judge, the generators and the network of the Fréchet distance."""
    for judge in config.judge.each(config.compositions):
        yield from of_judge("judge", judge)
    for generator in config.generate.generators:
        kind = plugins.load(KINDS, generator.kind)
        chosen = kind.Settings.model_validate(generator.options)
        warn_stored(f"generate.generators: {generator.name}", chosen)
        if hasattr(kind, "prefetch"):
            yield f"generate.generators: {generator.name}", partial(kind.prefetch, chosen)
    if config.score.fid:
        yield "score.fid.weights", partial(fetch, config.score.fid.weights, cache)


def of_judge(key: str, config: Training) -> Iterator[Need]:
    """Yield pretrained weights, and what open_clip fetches from the Hub for a text tower of another library."""

    def weights() -> Path | str:
        from workflow_scripts.clip.sources import find_source  # torch is slow to import

        return find_source(config).weights or "none"

    def text_tower() -> str:
        from workflow_scripts.clip.model import construct
        from workflow_scripts.clip.sources import find_source
        from workflow_scripts.clip.tokens import get_tokenizer

        source = find_source(config)
        text_cfg = source.model_cfg["text_cfg"]
        named = [text_cfg[name] for name in ("hf_model_name", "hf_tokenizer_name") if text_cfg.get(name)]
        if named:
            get_tokenizer(source.model_cfg, None, source.tokenizer)
        if "hf_model_name" in text_cfg:
            construct(source.model_cfg)
        return ", ".join(dict.fromkeys(named)) or "none"

    if not config.random:
        yield f"{key}.pretrained" if config.pretrained else f"{key}.model", weights
    yield f"{key}.model: its text tower", text_tower


def of_compun(config: Config, cache: Path) -> Iterator[Need]:
    """Yield the models that compounds are asked of."""
    if config.compun is None:
        return
    for model in config.compun.models:
        if model.open_clip:
            yield from of_judge(f"compun.models: {model.title}", model.judge_config())
        elif model.transformers:

            def folder(model=model) -> Path:
                from workflow_scripts.compun.blip_align import fetch_transformers

                return fetch_transformers(model)[0]

            yield f"compun.models: {model.title}", folder


def main(step: Prefetch) -> None:
    missing, present = [], set()
    for key, get in (need for config in runs_of(step.config).values() for need in needs(config)):
        try:
            place = get()
        except UserError as error:
            log.error("%s: %s", key, error)
            missing.append(key)
            continue
        if place != "none" and (key, place) not in present:
            log.info("%s: %s", key, place)
            present.add((key, place))
    if missing:
        raise UserError(f"{step.config}: {len(missing)} missing: {', '.join(dict.fromkeys(missing))}")
    log.info("%s: complete (%d)", step.config, len(present))


if __name__ == "__main__":
    os.chdir(ROOT)
    cli.run(main)
