"""Fetch all that a config's run would download, on a machine that has internet for one that has not.

Archives and Inception's weights go to the config's cache; models of the Hugging Face hub and of open_clip go where
these libraries keep them (HF_HOME, ~/.cache/clip), and so must be seen from where the run is. What is there already is
kept. Says of each thing where it lies or why it cannot be had, and fails where one is missing. With HF_HUB_OFFLINE=1
the same command, where there is no internet, says whether all is there.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel

from workflow_scripts.compun.load_compounds import open_images
from workflow_scripts.core import cli, plugins
from workflow_scripts.core.cli import log
from workflow_scripts.core.code import ROOT
from workflow_scripts.core.errors import UserError
from workflow_scripts.dataset.config import SOURCES
from workflow_scripts.dataset.download import fetch
from workflow_scripts.dataset.origins import obtain
from workflow_scripts.generate.config import KINDS
from workflow_scripts.judge.config import JudgeConfig
from workflow_scripts.text.language import installed_name
from workflow_scripts.workflow.config import Config, load_config, run_values
from workflow_scripts.workflow.run import read_over_default


@dataclass(frozen=True)
class Need:
    """A thing that a run needs: the config's key, and what gets it and says where it lies, or raises UserError."""

    key: str
    get: Callable[[], Path | str]


def needs(config: Config) -> Iterator[Need]:
    """What a run of ``config`` would download, and the spaCy pipeline, which it would not."""
    cache = Path(config.cache)
    source = plugins.load(SOURCES, config.dataset.source)
    settings = getattr(config.dataset, config.dataset.source)
    for name, places in source.places(settings).items() if hasattr(source, "places") else ():
        yield Need(f"dataset.{config.dataset.source}.{name}", lambda places=places: obtain(places, cache).path)
    say_stored(f"dataset.{config.dataset.source}", settings)
    yield Need("pairs.model", lambda: installed_name(config.pairs.model, "pairs.model"))
    # Captions alone have no scores.
    if getattr(settings, "images", ...) is not None:
        yield from of_scores(config, cache)
    if config.specs:
        yield from of_judge("specs.base", config.specs.base)
    if config.compun:
        yield from of_compun(config, cache)


def say_stored(key: str, settings: BaseModel) -> None:
    """Say of the section ``key`` what Snakemake will fetch for each step that reads it."""
    for address in re.findall(r'"(s3://[^"]*)"', settings.model_dump_json()):
        log.warning(
            "%s: %s is read from object storage while the run is at work: it must be reached then", key, address
        )


def of_scores(config: Config, cache: Path) -> Iterator[Need]:
    """The judge, the generators, the network of the Fréchet distance."""
    yield from of_judge("judge", config.judge)
    for generator in config.generate.generators:
        kind = plugins.load(KINDS, generator.kind)
        chosen = kind.Settings.model_validate(generator.options)
        say_stored(f"generate.generators: {generator.name}", chosen)
        if hasattr(kind, "prefetch"):
            yield Need(f"generate.generators: {generator.name}", lambda kind=kind, chosen=chosen: kind.prefetch(chosen))
    if config.score.fid:
        yield Need("score.fid.weights", lambda: fetch(config.score.fid.weights, cache))


def of_judge(key: str, config: JudgeConfig) -> Iterator[Need]:
    """Pretrained weights, and what open_clip takes from the hub of a text tower that is another library's."""

    def weights() -> Path | str:
        from workflow_scripts.clip.pretrained import find_pretrained  # torch is slow to import

        return find_pretrained(config)[0] or "none"

    def text_tower() -> str:
        from workflow_scripts.clip.model import construct, find_model
        from workflow_scripts.clip.tokens import get_tokenizer

        model_cfg = find_model(config.model)
        text_cfg = model_cfg["text_cfg"]
        named = [text_cfg[name] for name in ("hf_model_name", "hf_tokenizer_name") if text_cfg.get(name)]
        try:
            if named:
                get_tokenizer(model_cfg, None)
            if "hf_model_name" in text_cfg:
                construct(model_cfg)
        except UserError:
            raise
        except Exception as error:  # as many kinds as the hub has ways to fail
            raise UserError(f"{named[0]}: not to be had from the hub ({' '.join(str(error).split())[:200]})") from error
        return ", ".join(dict.fromkeys(named)) or "none"

    if config.pretrained:
        yield Need(f"{key}.pretrained", weights)
    yield Need(f"{key}.model: its text tower", text_tower)


def of_compun(config: Config, cache: Path) -> Iterator[Need]:
    """The compounds' images, and the models that are asked."""
    wanted = config.compun.compounds
    if wanted:
        yield Need("compun.compounds.images", lambda: open_images(wanted.images, wanted.sha256, cache)[0])
    for model in config.compun.models:
        if model.open_clip:
            judge = JudgeConfig(model=model.open_clip, pretrained=model.pretrained, epochs=0)
            yield from of_judge(f"compun.models: {model.title}", judge)
        elif model.transformers:

            def folder(model=model) -> Path:
                from workflow_scripts.compun.models import fetch_transformers

                return fetch_transformers(model)[0]

            yield Need(f"compun.models: {model.title}", folder)
    for kind in ("captions", "descriptions"):
        texts = getattr(config.compun, kind)
        if texts and texts.address:
            log.warning("compun.%s: %s is asked while the run is at work: it must be reached then", kind, texts.address)


def main(options: argparse.Namespace) -> None:
    values = read_over_default(options.config)
    config = load_config(values, where=str(options.config))
    runs = [load_config(own, f"runs.{name}") for name, own in run_values(values).items()]
    missing, there = [], set()
    for need in (need for run in runs or [config] for need in needs(run)):
        try:
            place = need.get()
        except UserError as error:
            log.error("%s: %s", need.key, error)
            missing.append(need.key)
            continue
        if place != "none" and (need.key, place) not in there:
            log.info("%s: %s", need.key, place)
            there.add((need.key, place))
    if missing:
        raise UserError(f"{options.config}: {len(missing)} cannot be had: {', '.join(dict.fromkeys(missing))}")
    log.info("%s: all is there: %d", options.config, len(there))


if __name__ == "__main__":
    os.chdir(ROOT)
    parser = cli.parser(__doc__)
    parser.add_argument("--config", type=Path, default=Path("config.yaml"), help="config.yaml or a preset's")
    cli.run(main, parser)
