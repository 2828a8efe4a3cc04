"""A declaration gives the command line of a step and the command of its rule, and both agree."""

import shlex
from pathlib import Path
from typing import Annotated

import pytest
from pydantic import Field

from compclip.core import step
from compclip.core.errors import UserError
from compclip.core.section import Section
from compclip.core.step import Cache, Input, Key, Output, Seed, Step


class Window(Section):
    low: int = Field(25, ge=0, description="lowest percentile")
    words: list[str] | None = None


class Whole(Window):
    other: float = 0.5


class Config(Section):
    seed: int = 3
    cache: str = ".kept"
    most: int = 7
    part: Whole = Whole()


class Draw(Step):
    """Draw something."""

    table: Input = Field(description="table.parquet")
    more: list[Input] = []
    absent: Input | None = None
    window: Annotated[Window, Key("part")] = Window()
    seed: Seed
    cache: Cache
    most: Annotated[int, Key("most", decides=False)] = 0
    composition: str
    flag: bool = False
    result: Output


@pytest.fixture(autouse=True)
def declared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step, "declaration", lambda name: Draw)


def command(**changed) -> list[str]:
    inputs = {"table": "a b.parquet", "more": ["x,y", "z"], "absent": [], "beside": "q"}
    given = {"composition": "color", "flag": True}
    words = shlex.split(step.command("stage.draw", Config(), {**inputs, **changed}, {"result": "r.json"}, given))
    assert words[0] == "compclip.stage.draw"
    return words[1:]


def test_what_a_rule_passes_is_what_the_step_gets() -> None:
    words = command()
    # Of a section, the settings that the step declares.
    assert words[words.index("--window") + 1] == '{"low":25,"words":null}'
    parsed = step.parse(Draw, words, "draw")
    assert parsed == Draw(
        table=Path("a b.parquet"), more=[Path("x,y"), Path("z")], window=Window(), seed=3, cache=Path(".kept"),
        most=7, composition="color", flag=True, result=Path("r.json"),
    )  # fmt: skip


def test_a_rule_passes_the_paths_that_its_step_does_not_name() -> None:
    parsed = step.parse(Draw, command(also_reads=["a b.parquet", "x,y", "z", "q", "r"]), "draw")
    assert parsed.also_reads == [Path("q"), Path("r")] and parsed.also_writes == []
    assert set(map(str, parsed.paths("input"))) == {"a b.parquet", "x,y", "z", "q", "r"}
    assert parsed.paths("output") == [Path("r.json")]


def test_settings_by_hand() -> None:
    line = ["--table", "t", "--composition", "color", "--result", "r"]
    assert step.parse(Draw, [*line, "--window.low", "3"], "draw").window.low == 3
    with pytest.raises(UserError, match=r"^--window\.low: .*greater than or equal to 0, got '-1'$"):
        step.parse(Draw, [*line, "--window.low", "-1"], "draw")


def test_help_tells_meaning_and_default(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        step.parse(Draw, ["--help"], "compclip.stage.draw")
    shown = " ".join(capsys.readouterr().out.split())
    assert end.value.code == 0 and "Draw something." in shown
    assert "lowest percentile (default: 25)" in shown and "table.parquet (required)" in shown


def test_a_rule_that_does_not_fit_is_refused() -> None:
    with pytest.raises(UserError, match="its rule gives no table"):
        command(table=None)
    with pytest.raises(UserError, match="expected one path, got 2"):
        command(table=["a", "b"])


def test_settings_are_the_command_without_the_paths_of_the_rule() -> None:
    """Snakemake compares them between runs; it does not compare params that depend on a rule's paths."""
    given = {"composition": "color", "flag": True}
    settings = shlex.split(step.settings("stage.draw", Config(), given))
    words = command()
    assert [word for word in words if word in settings] == settings
    of_rule = {"--table", "--more", "--result", "--most"}
    assert {word for word in words if word.startswith("--")} - set(settings) == of_rule
    assert step.settings("stage.draw", Config(seed=4), given) != step.settings("stage.draw", Config(), given)
