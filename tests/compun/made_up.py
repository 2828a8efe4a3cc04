"""Made-up artifacts of the stage, with numbers of no meaning: two models, seven prompts, sixty compounds."""

from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image

from workflow_scripts.compun import analyze_choices
from workflow_scripts.compun.steps import AnalyzeChoices
from workflow_scripts.core.io import write_json, write_table
from workflow_scripts.core.tables import CHOICES, COMPOUND_IMAGES, COMPOUNDS, NOUNS_SEEN, ROLES

DATASET = "tiny"
MODELS = {"drawn": 0.06, "<b>other</b>": 0.02}
PROMPTS = ("template", "reversed", "descriptions", "examples_1", "examples_3", "examples_5")
HOSTILE = "<script>alert(1)</script> & pot"
COLORS = {"compound": (200, 60, 60), "n1": (60, 120, 200), "n2": (230, 190, 60)}


def make_compounds(n: int = 60, *, kinds: bool = True) -> pd.DataFrame:
    """The last one lacks an image."""
    names = [HOSTILE if i == 3 else f"first{i} second{i}" for i in range(n)]
    table = pd.DataFrame({"compound": names, "first": [f"first{i}" for i in range(n)]})
    table["second"] = [f"second{i}" for i in range(n)]
    table["kind"] = [NOUNS_SEEN[i % 3] if kinds and i % 10 else None for i in range(n)]
    table["n1"], table["n2"] = table["first"], table["second"]
    table["complete"] = [i < n - 1 for i in range(n)]
    text = dict.fromkeys(["compound", "first", "second", "kind", "n1", "n2"], "str")
    return table.astype(text)


def make_choices(compounds: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    """Table ``CHOICES``, one tie in it."""
    random = np.random.default_rng(seed)
    names = compounds.loc[compounds["complete"], "compound"].tolist()
    parts = []
    for model, skill in MODELS.items():
        for prompt in PROMPTS:
            values = np.round(random.normal(0.25, 0.05, (len(names), 3)), 6)
            values[:, 0] = np.round(values[:, 0] + skill * {"reversed": 0.2, "examples_5": 1.5}.get(prompt, 1), 6)
            if (model, prompt) == ("drawn", "template"):
                values[0] = [0.3, 0.3, 0.1]
            part = pd.DataFrame(values, columns=[f"similarity_{role}" for role in ROLES])
            part["right"] = values[:, 0] > values[:, 1:].max(axis=1)
            part["answer"] = [ROLES[i] for i in values.argmax(axis=1)]
            part["rank"] = 1 + random.integers(0, 3 * len(names), len(names)) * (random.random(len(names)) < 0.8)
            parts.append(part.assign(compound=names, model=model, prompt=prompt))
    return pd.concat(parts, ignore_index=True)[list(CHOICES.columns)]


def make_place(root: Path, *, kinds: bool = True) -> Path:
    """``root/tiny/compun`` with what the stage's results are made of."""
    place = root / DATASET / "compun"
    compounds = make_compounds(kinds=kinds)
    write_table(compounds, place / "compounds.parquet", COMPOUNDS)
    write_table(make_choices(compounds), place / "choices" / "choices.parquet", CHOICES)
    write_json({"models": [{"model": name, "images": 177} for name in MODELS]}, place / "choices" / "choices.json")
    (place / "images").mkdir(parents=True)
    rows = []
    for i, row in enumerate(compounds.itertuples()):
        for role in ROLES:
            path = None if not row.complete and role == "n2" else f"{i:03d}_{role}.png"
            if path:
                Image.new("RGB", (40, 32 + i), COLORS[role]).save(place / "images" / path)
            rows.append((row.compound, role, path))
    images = pd.DataFrame(rows, columns=["compound", "role", "path"]).astype("str")
    write_table(images, place / "images.parquet", COMPOUND_IMAGES)
    return place


def analyze_place(place: Path, analysis: Path) -> Path:
    """Analyze what ``make_place`` made; return the table."""
    paths = {"compounds": place / "compounds.parquet", "choices": place / "choices", "analysis": analysis}
    analyze_choices.main(AnalyzeChoices(**paths, bootstrap=100))
    return analysis
