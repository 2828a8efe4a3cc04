"""Do the small CLIPs show what the benchmark measures? The small run trains two and asks them of drawn compounds."""

from pathlib import Path

import pandas as pd
import pytest

from workflow_scripts.compun.section import read_analysis


@pytest.fixture(scope="module")
def differences(of_run: Path) -> pd.DataFrame:
    return read_analysis(of_run / "analysis.csv").set_index(["model", "prompt", "measure"])[["low", "high"]]


def test_example_captions_help_where_the_compound_is_new(differences: pd.DataFrame) -> None:
    assert differences.loc[("untaught", "examples_5", "minus template"), "low"] > 0


def test_a_compound_that_was_taught_is_known_by_its_name(differences: pd.DataFrame) -> None:
    assert differences.loc[("taught", "template", "minus untaught"), "low"] > 0.2
    # But not with its nouns reversed, where the names are as new as to the other.
    assert differences.loc[("taught", "reversed", "minus template"), "high"] < -0.2
