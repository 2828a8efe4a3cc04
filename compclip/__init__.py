"""Compositional evaluation of text-to-image models, from captions to scores with intervals.

These names load on first use (PEP 562), each from the module that defines it; see
``docs/library.md``. The workflow imports the modules themselves, so that imports show which code
determines its results.
"""

from importlib import import_module
from typing import Any

_MODULES = {
    "Scoring": "score.config",
    "Selection": "pairs.config",
    "UserError": "core.errors",
    "adjective_accuracy": "score.choices",
    "audit": "split.audit",
    "choose_compound": "compun.classify",
    "compare_scores": "stats.estimates",
    "divide_images": "split.divide_images",
    "divide_samples": "divergence.divide",
    "estimate_score": "stats.estimates",
    "extract_pairs": "pairs.extract_pairs",
    "evaluation_images": "split.evaluation",
    "load_judge": "clip.model",
    "load_lexicon": "text.lexicon",
    "make_prompts": "split.make_prompts",
    "make_splits": "split.make_splits",
    "make_variants": "split.make_variants",
    "measure_divergence": "divergence.measure",
    "r_precision": "stats.r_precision",
    "rank_pairs": "pairs.rank_pairs",
    "sample_heldout": "split.sample_heldout",
    "score_with_judge": "score.score_images",
    "specs_loss": "specs.loss",
    "specs_score": "specs.specs_score",
    "swap_adjectives": "split.swap_adjectives",
    "write_manifest": "generate.write_manifest",
}
__all__ = list(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
