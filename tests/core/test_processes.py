"""Processes give the results of one, in order, and name what ended them."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from compclip.core.errors import UserError
from compclip.core.processes import map_in_processes


def _doubled(folder: Path) -> Callable[[int], int]:
    """Return a function that doubles, and leaves a file with the name of its process."""

    def double(number: int) -> int:
        (folder / str(os.getpid())).touch()
        return 2 * number

    return double


@pytest.mark.parametrize("items_per_task", [1, 3])
@pytest.mark.parametrize("processes", [1, 3])
def test_results_are_in_order(tmp_path: Path, processes: int, items_per_task: int) -> None:
    double = _doubled(tmp_path)
    numbers = range(20)
    doubled = list(map_in_processes(double, numbers, processes, items_per_task))
    assert doubled == [2 * number for number in numbers]
    is_forked = str(os.getpid()) not in {file.name for file in tmp_path.iterdir()}
    assert is_forked == (processes > 1)
    assert list(map_in_processes(double, [], processes)) == []


@pytest.mark.parametrize("processes", [1, 2])
def test_the_error_of_a_process_is_raised_here(processes: int) -> None:
    def refuse(number: int) -> int:
        if number == 3:
            raise UserError("3.png: empty file")
        return number

    results = map_in_processes(refuse, range(9), processes)
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(UserError, match="^3.png: empty file$"):
        next(results)


def test_a_killed_process_is_named() -> None:
    def die(number: int) -> int:
        os._exit(9)

    with pytest.raises(UserError, match="^2 processes: one was killed, .*; run again to resume"):
        list(map_in_processes(die, range(4), 2))
