"""Made-up artifacts of the stage, with numbers of no meaning: two models, seven prompts, sixty compounds."""

from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image

from workflow_scripts.compun import analyze_choices
from workflow_scripts.compun.steps import AnalyzeChoices
from workflow_scripts.core.io import write_json, write_table
from workflow_scripts.core.tables import CHOICES, COMPOUND_IMAGES, COMPOUNDS, NOUNS_SEEN, RETRIEVAL, ROLES

DATASET = "tiny"
MODELS = {"drawn": 0.06, "<b>other</b>": 0.02}
PROMPTS = ("examples_1", "examples_3", "examples_5", "template", "reversed", "descriptions", "template_ensemble")
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


def make_choices(compounds: pd.DataFrame, seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Tables ``CHOICES``, one tie in it, and ``RETRIEVAL``."""
    random = np.random.default_rng(seed)
    names = compounds.loc[compounds["complete"], "compound"].tolist()
    parts, ranks = [], []
    for model, skill in MODELS.items():
        for prompt in PROMPTS:
            gain = skill * {"reversed": 0.2, "examples_5": 1.5}.get(prompt, 1)
            values = np.round(random.normal(0.25, 0.05, (len(names), 3)), 6)
            values[:, 0] = np.round(values[:, 0] + gain, 6)
            if (model, prompt) == ("drawn", "template"):
                values[0] = [0.3, 0.3, 0.1]
            part = pd.DataFrame(values, columns=[f"similarity_{role}" for role in ROLES])
            part["right"] = values[:, 0] > values[:, 1:].max(axis=1)
            part["answer"] = [ROLES[i] for i in values.argmax(axis=1)]
            parts.append(part.assign(compound=names, model=model, prompt=prompt))
            above = random.integers(0, 3 * len(names), len(names)) * (random.random(len(names)) < 0.8)
            rank = {"compound": names, "model": model, "prompt": prompt, "images": 3 * len(names), "above": above}
            ranks.append(pd.DataFrame(rank | {"tied": 0}))
    return pd.concat(parts, ignore_index=True)[list(CHOICES.columns)], pd.concat(ranks, ignore_index=True)


def make_place(root: Path, *, kinds: bool = True, pictures: bool = True) -> Path:
    """``root/tiny/compun`` with what the stage's results are made of."""
    place = root / DATASET / "compun"
    compounds = make_compounds(kinds=kinds)
    choices, ranks = make_choices(compounds)
    write_table(compounds, place / "compounds.parquet", COMPOUNDS)
    write_table(choices, place / "choices" / "choices.parquet", CHOICES)
    write_table(ranks, place / "choices" / "retrieval.parquet", RETRIEVAL)
    absent = {"model": "ALBEF", "reason": "no <i>maintained</i> library"}
    write_json({"not_loaded": [absent]}, place / "choices" / "models.json")
    rows = []
    for i, row in enumerate(compounds.itertuples()):
        for role in ROLES:
            absent = not row.complete and role == "n2"
            path = None if absent else f"{i:03d}_{role}.png"
            if path and pictures:
                (place / "images").mkdir(parents=True, exist_ok=True)
                Image.new("RGB", (40, 32 + i), COLORS[role]).save(place / "images" / path)
            rows.append((row.compound, role, path))
    images = pd.DataFrame(rows, columns=["compound", "role", "path"]).astype("str")
    write_table(images, place / "images.parquet", COMPOUND_IMAGES)
    return place


def analyze_place(place: Path, analysis: Path) -> Path:
    """Analyze what ``make_place`` made; return the folder of the tables."""
    paths = {"compounds": place / "compounds.parquet", "choices": place / "choices", "analysis": analysis}
    analyze_choices.main(AnalyzeChoices(**paths, bootstrap=100))
    return analysis
