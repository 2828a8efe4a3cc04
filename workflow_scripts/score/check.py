"""Check the network of the Fréchet distance, and the number of candidates as far as it is known."""

from typing import Any

from workflow_scripts.core.checks import Findings


def check(config: Any, findings: Findings) -> None:
    if config.score.fid:
        findings.exists("score.fid.weights", config.score.fid.weights)
    candidates, sketch = config.score.candidates or 0, config.dataset.sketch
    captions = min(sketch.images, config.dataset.limit or sketch.images) * sketch.captions
    # The captions of other data sets are counted by ``make_prompts``, which knows those of each split.
    if config.dataset.source == "sketch" and candidates > captions:
        findings.error("score.candidates", f"{candidates:,}, but there are only {captions:,} captions; lower it")
