"""The words of ``compclip run``: parts, configs, options and what follows ``--``."""

from pathlib import Path

import pytest

from compclip.core.errors import UserError
from workflow_scripts.workflow import commands, run
from workflow_scripts.workflow.check import check_own
from workflow_scripts.workflow.commands import PARTS


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("part", PARTS)
def test_the_help_of_a_part_needs_no_config(part: str, capsys: pytest.CaptureFixture) -> None:
    with pytest.raises(SystemExit) as ended:
        commands.main("run", [part, "--help"])
    assert ended.value.code == 0
    assert f"compclip run {part}" in capsys.readouterr().out


def test_the_lock_of_a_folder_is_removed_whatever_config_is_named(
    empty_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "STATE", empty_folder / ".snakemake")
    lock = empty_folder / ".snakemake" / "locks" / "0.input.lock"
    lock.parent.mkdir(parents=True)
    lock.touch()
    commands.main("run", ["unlock", "mine.yaml"])
    assert not lock.exists()


@pytest.mark.parametrize(
    ("word", "hint"),
    [("chek", "did you mean check?"), ("y.txt", "ends in .yaml"), ("all", "come after --")],
)
def test_a_word_that_is_no_part_and_no_config_is_named(word: str, hint: str) -> None:
    with pytest.raises(SystemExit) as ended:
        commands.main("run", [word, "mine.yaml"])
    message = str(ended.value.code)
    assert message.startswith(f"error: compclip run: {word!r} is neither") and hint in message


@pytest.mark.parametrize("part", PARTS)
def test_a_name_that_is_not_a_configs_is_told_from_a_similar_one(
    empty_folder: Path, part: str
) -> None:
    (empty_folder / "mine.yaml").touch()
    with pytest.raises(SystemExit) as ended:
        commands.main("run", [part, "mine.yam"])
    fault = "'mine.yam' is not a config, whose name ends in .yaml; did you mean mine.yaml?"
    assert ended.value.code == f"error: compclip run {part}: {fault}"


def test_a_config_after_two_dashes_is_refused() -> None:
    with pytest.raises(SystemExit) as ended:
        commands.main("run", ["mine.yaml", "--", "--configfile", "other.yaml"])
    fault = "--configfile after --; name the config before --: `compclip run mine.yaml`"
    assert ended.value.code == f"error: compclip run: {fault}"


@pytest.mark.parametrize(
    "words", [["mine.yaml", "-n"], ["--cores=1", "-n"], ["release", "-n"], ["-n", "--", "all"]]
)
def test_an_option_of_snakemake_comes_after_two_dashes(words: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        commands.main("run", words)
    fault = (
        "unknown option '-n'; options of Snakemake come after --: `compclip run mine.yaml -- -n`"
    )
    assert ended.value.code == f"error: compclip run: {fault}"


@pytest.mark.parametrize("logs", ["logs", "mine/logs", "presets/mine/logs"])
def test_a_folder_in_which_a_run_failed_at_once_is_that_of_a_run(
    empty_folder: Path, logs: str
) -> None:
    results = empty_folder / "results"
    results.mkdir()
    (results / "notes.txt").touch()
    with pytest.raises(UserError, match="contains notes.txt, but nothing that a run has made"):
        check_own(results)
    (results / logs).mkdir(parents=True)
    check_own(results)
