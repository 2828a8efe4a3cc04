"""Compositional evaluation of text-to-image models, from captions to scores with intervals.

These names load on first use (PEP 562), each from the module that defines it; see
``docs/library.md``. The workflow imports the modules themselves, so that imports show which code
determines its results.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

_MODULES = {
    "Scoring": "score.config",
    "Selection": "pairs.config",
    "UserError": "core.errors",
    "adjective_accuracy": "score.choices",
    "audit": "split.audit",
    "choose": "score.choose_texts",
    "choose_compound": "compun.classify",
    "compare_scores": "stats.estimates",
    "divide_images": "split.divide_images",
    "divide_samples": "divergence.divide",
    "estimate_score": "stats.estimates",
    "extract_pairs": "pairs.extract_pairs",
    "evaluation_images": "split.evaluation",
    "fraction_composed": "report.judges",
    "list_options": "score.choose_texts",
    "load_judge": "clip.model",
    "load_lexicon": "text.lexicon",
    "make_prompts": "split.make_prompts",
    "make_splits": "split.make_splits",
    "make_variants": "split.make_variants",
    "measure_divergence": "divergence.measure",
    "open_judge": "judge.open_judge",
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

if TYPE_CHECKING:
    # What type checkers and editors read; at run time, ``__getattr__`` imports a name when it is
    # used, so that ``import compclip`` takes milliseconds.
    from compclip.clip.model import load_judge as load_judge
    from compclip.compun.classify import choose_compound as choose_compound
    from compclip.core.errors import UserError as UserError
    from compclip.divergence.divide import divide_samples as divide_samples
    from compclip.divergence.measure import measure_divergence as measure_divergence
    from compclip.generate.write_manifest import write_manifest as write_manifest
    from compclip.judge.open_judge import open_judge as open_judge
    from compclip.pairs.config import Selection as Selection
    from compclip.pairs.extract_pairs import extract_pairs as extract_pairs
    from compclip.pairs.rank_pairs import rank_pairs as rank_pairs
    from compclip.report.judges import fraction_composed as fraction_composed
    from compclip.score.choices import adjective_accuracy as adjective_accuracy
    from compclip.score.choose_texts import choose as choose
    from compclip.score.choose_texts import list_options as list_options
    from compclip.score.config import Scoring as Scoring
    from compclip.score.score_images import score_with_judge as score_with_judge
    from compclip.specs.loss import specs_loss as specs_loss
    from compclip.specs.specs_score import specs_score as specs_score
    from compclip.split.audit import audit as audit
    from compclip.split.divide_images import divide_images as divide_images
    from compclip.split.evaluation import evaluation_images as evaluation_images
    from compclip.split.make_prompts import make_prompts as make_prompts
    from compclip.split.make_splits import make_splits as make_splits
    from compclip.split.make_variants import make_variants as make_variants
    from compclip.split.sample_heldout import sample_heldout as sample_heldout
    from compclip.split.swap_adjectives import swap_adjectives as swap_adjectives
    from compclip.stats.estimates import (
        compare_scores as compare_scores,
    )
    from compclip.stats.estimates import (
        estimate_score as estimate_score,
    )
    from compclip.stats.r_precision import r_precision as r_precision
    from compclip.text.lexicon import load_lexicon as load_lexicon
else:

    def __getattr__(name: str) -> Any:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
