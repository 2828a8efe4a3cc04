"""Do the small CLIPs show what the benchmark measures? Two are trained for seconds, and asked of drawn compounds."""

import pandas as pd
import pytest

from workflow_scripts.compun import classify, draw_compounds, load_compounds
from workflow_scripts.compun.analyze_choices import Estimator, differences
from workflow_scripts.compun.config import TRAININGS, Drawn, NamedModel
from workflow_scripts.compun.steps import Classify, DrawCompounds, LoadCompounds
from workflow_scripts.judge import train_judge
from workflow_scripts.judge.config import SmallJudgeConfig
from workflow_scripts.judge.steps import TrainJudge

pytestmark = pytest.mark.slow  # two trainings
DRAWN = Drawn(tested=72, things=1600)


@pytest.fixture(scope="module")
def choices(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    """Columns of CHOICES."""
    root = tmp_path_factory.mktemp("small")
    place, cache = root / "d", root / "cache"
    drawn, training = place / "drawn", place / "drawn" / "training"
    draw_compounds.main(DrawCompounds(drawn=DRAWN, results=root, folder=drawn))
    settings = SmallJudgeConfig(epochs=5, batch=64, captions=2, lr=0.005, device="cpu")
    for name in TRAININGS:
        train_judge.main(TrainJudge(captions=training / "captions.parquet", images=training / "images.parquet",
                                    splits=training / f"{name}.parquet", results=root, settings=settings, threads=1,
                                    cache=cache, judge=place / name))  # fmt: skip
    tables = {name: place / f"{name}.parquet" for name in ("compounds", "images")}
    load_compounds.main(LoadCompounds(file=drawn / "list.csv", source=drawn / "images", **tables,
                                      files=place / "images", summary=place / "compounds.json"))  # fmt: skip
    texts = {kind: drawn / f"{kind}.json" for kind in ("captions", "descriptions")}
    models = [NamedModel(name=name, judge=str(place / name)) for name in TRAININGS]
    classify.main(Classify(**tables, folder=place / "images", **texts, models=models, device="cpu", threads=1,
                           cache=cache, choices=place / "choices"))  # fmt: skip
    return pd.read_parquet(place / "choices" / "choices.parquet")


def difference(choices: pd.DataFrame, model: str, prompt: str, measure: str) -> pd.Series:
    """The row of a difference with its interval."""
    table = pd.DataFrame(differences(choices, Estimator(500, 0)))
    return table.set_index(["model", "prompt", "measure"]).loc[(model, prompt, measure)]


def test_example_captions_help_where_the_compound_is_new(choices: pd.DataFrame) -> None:
    row = difference(choices, "untaught", "examples_5", "minus template")
    assert row["low"] > 0 and row["p"] < 0.01


def test_a_compound_that_was_taught_is_known_by_its_name(choices: pd.DataFrame) -> None:
    assert difference(choices, "taught", "template", "minus untaught")["low"] > 0.2
    # But not with its nouns reversed, where the names are as new as to the other.
    assert difference(choices, "taught", "reversed", "minus template")["high"] < -0.2
