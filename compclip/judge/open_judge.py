"""Open any judge in one call."""

from typing import Any

from compclip.core.settings import plugins
from compclip.judge.chooser import Chooser, Context, load_kind


def open_judge(kind: str, context: Context | None = None, **settings: Any) -> Chooser:
    """Open a judge of a kind, which chooses among texts.

    Args:
        kind: a file in ``compclip/judge/kinds``, such as ``table`` or ``served``.
        context: with what it is opened; None: on the CPU, with its cache in ``.cache``. A trained
            CLIP needs ``Context(model=folder)``.
        settings: those of the kind, as in the config.

    Returns:
        The judge, for ``compclip.choose``.

    Raises:
        UserError: there is no such kind, or its settings or files are refused.
    """
    module = load_kind(kind)
    return module.open_chooser(
        plugins.settings(module, settings, f"judge {kind}"), context or Context()
    )
