"""Check the lexicons and the spaCy pipeline."""

import os
from pathlib import Path
from typing import Any

from workflow_scripts.core.checks import Findings
from workflow_scripts.core.code import ROOT
from workflow_scripts.text.language import installed_name
from workflow_scripts.text.lexicon import lexicons_of, load_lexicon, merge


def check(config: Any, findings: Findings) -> None:
    folder = Path(os.path.relpath(ROOT / "lexicons"))
    with findings.errors_of("compositions"):
        for composition in config.compositions:
            names = lexicons_of(composition, folder / "adjectives")
            merge([load_lexicon(folder / "adjectives" / f"{name}.yaml") for name in names])
    if config.pairs.nouns:
        with findings.errors_of("pairs.nouns"):
            load_lexicon(folder / "nouns" / f"{config.pairs.nouns}.yaml")
    if findings.here:
        with findings.errors_of("pairs.model"):
            installed_name(config.pairs.model, config.pairs.model)
    nouns = f"nouns of {config.pairs.nouns}" if config.pairs.nouns else "any noun"
    findings.plan.append(("pairs", f"{', '.join(config.compositions)}; {nouns}; parsed by {config.pairs.model}"))
