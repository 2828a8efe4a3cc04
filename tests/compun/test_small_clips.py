"""Do the small CLIPs show what the benchmark measures? Two are trained for seconds, and asked of drawn compounds."""

import pandas as pd
import pytest

from workflow_scripts.compun import classify, draw_compounds, load_compounds
from workflow_scripts.compun.analyze_choices import Estimator, compare
from workflow_scripts.compun.config import TRAININGS, Asked, Compounds, Drawn, NamedModel
from workflow_scripts.compun.steps import Classify, DrawCompounds, LoadCompounds
from workflow_scripts.core.tables import CHOICES
from workflow_scripts.judge import train_judge
from workflow_scripts.judge.config import SmallJudgeConfig
from workflow_scripts.judge.steps import TrainJudge

pytestmark = pytest.mark.slow  # two trainings
DRAWN = Drawn(tested=72, others=30, things=1600, pairs=400, each=6)


@pytest.fixture(scope="module")
def choices(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    """Columns of CHOICES, and of each compound its kind and whether it is one word."""
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
    origin = Compounds(file=str(drawn / "list.csv"), images=str(drawn / "images"))
    load_compounds.main(LoadCompounds(origin=origin, cache=cache, **tables, files=place / "images",
                                      summary=place / "compounds.json"))  # fmt: skip
    texts = {kind: drawn / f"{kind}.json" for kind in ("captions", "descriptions")}
    models = [NamedModel(name=name, judge=str(place / name)) for name in TRAININGS]
    asked = Asked(examples=5, templates="none", device="cpu")
    classify.main(Classify(**tables, folder=place / "images", **texts, models=models, asked=asked, threads=1,
                           cache=cache, choices=place / "choices"))  # fmt: skip
    kinds = pd.read_csv(drawn / "list.csv").set_index("compound")["kind"]
    table = pd.read_parquet(place / "choices" / "choices.parquet")
    return table.assign(kind=table["compound"].map(kinds), one_word=~table["compound"].str.contains(" "))


def gain(choices: pd.DataFrame, between: str, fixed: str, a: str, b: str) -> pd.Series:
    """The difference a - b with its interval, as the stage compares."""
    own = choices[list(CHOICES.columns)]
    other = "model" if between == "prompt" else "prompt"
    own = own[(own[other] == fixed) & own[between].isin([a, b])]
    order = own[between].map({b: 0, a: 1})
    return compare(own.iloc[order.argsort(kind="stable")], between, Estimator(500, 0)).iloc[0]


def test_example_captions_help_where_the_compound_is_new(choices: pd.DataFrame) -> None:
    for prompt in ("examples_1", "examples_5", "descriptions"):
        found = gain(choices, "prompt", "untaught", prompt, "template")
        assert found["low"] > 0 and found["p_exact"] < 0.01, prompt


def test_a_compound_that_was_taught_is_known_by_its_name(choices: pd.DataFrame) -> None:
    assert gain(choices, "model", "template", "taught", "untaught")["low"] > 0.2
    # But not with its nouns reversed, where the names are as new as to the other.
    assert gain(choices, "prompt", "taught", "template", "reversed")["low"] > 0.2


def test_a_new_compound_that_shows_neither_noun_is_taken_for_one_of_them(choices: pd.DataFrame) -> None:
    own = choices[(choices["model"] == "untaught") & (choices["prompt"] == "template") & ~choices["one_word"]]
    shares = own.groupby("kind")["right"].mean()
    assert shares["none"] <= 1 / 6
    assert shares["none"] <= shares["both"]
