"""Open the members of a judge for a step that asks them."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from compclip.core.settings import plugins
from compclip.judge.chooser import Chooser, Context, load_kind
from workflow_scripts.job import Job


def open_members(job: Job) -> Iterator[tuple[str, Chooser]]:
    """Yield the name and the judge of each member; it is closed when the next one is asked for."""
    params = job.params
    kind = load_kind(params.kind)
    settings = plugins.settings(kind, params.settings, f"judge {job.wildcards.judge}")
    # A judge without trained members is its only member.
    for model in job.input.members or [None]:
        name = Path(model).name if model else job.wildcards.judge
        with ExitStack() as closing:
            context = Context(
                model=model,
                cache=params.cache,
                threads=params.threads,
                seed=params.seed,
                device=params.device,
                batch=params.batch,
                closing=closing,
            )
            yield name, kind.open_chooser(settings, context)
