"""What `make run` does about other processes, and what it ends with."""

from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from workflow_scripts.core import digests
from workflow_scripts.core.errors import UserError
from workflow_scripts.report import readable
from workflow_scripts.workflow.run import print_results, wait_for, works_in


@pytest.mark.parametrize("pressed", [0, 1, 3])
def test_ctrl_c_as_often_as_one_likes_waits_for_snakemake(pressed: int) -> None:
    waits = iter([KeyboardInterrupt] * pressed + [7])

    def wait() -> int:
        ended = next(waits)
        if ended is KeyboardInterrupt:
            raise ended
        return ended

    assert wait_for(SimpleNamespace(wait=wait)) == (7, pressed > 0)


def test_whose_folder_cannot_be_known_may_be_at_work_where_others_may_write(tmp_path: Path) -> None:
    def denied() -> str:
        raise psutil.AccessDenied

    tmp_path.chmod(0o775)
    assert works_in(SimpleNamespace(cwd=denied), tmp_path) is None
    # On a login node others run Snakemake all day, in folders of their own.
    tmp_path.chmod(0o755)
    assert works_in(SimpleNamespace(cwd=denied), tmp_path) is False
    assert works_in(SimpleNamespace(cwd=lambda: str(tmp_path)), tmp_path)
    assert not works_in(SimpleNamespace(cwd=lambda: "/elsewhere"), tmp_path)


def test_results_end_with_their_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for run, names in {"judged": ["report.html", "table.md"], "captions": ["report.html"]}.items():
        (tmp_path / run).mkdir()
        for name in names:
            (tmp_path / run / name).touch()
    print_results([str(tmp_path), str(tmp_path / "judged"), str(tmp_path / "captions")])
    lines = [line for line in capsys.readouterr().out.splitlines() if not line.startswith("log:")]
    assert lines == [
        f"page:  {tmp_path}/judged/report.html",
        f"table: {tmp_path}/judged/table.md",
        f"page:  {tmp_path}/captions/report.html",
    ]


def test_the_screen_shows_the_headlines_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "table.md"
    table.write_text("# a\n\n" + readable.HEADLINES.format("| 1 |") + "\n## all\n\n| 2 |\n")
    digests.record(table, "report.make_table")
    print_results([str(tmp_path)])
    assert capsys.readouterr().out.splitlines()[:3] == ["| 1 |", "", f"table: {table}"]


def test_the_screen_shows_the_beginning_of_other_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "compun.md"
    table.write_text("".join(f"| {row} |\n" for row in range(20)))
    digests.record(table, "compun.draw_compun")
    print_results([str(tmp_path)])
    assert capsys.readouterr().out.splitlines()[10:14] == ["| 10 |", "| 11 |", "…", f"table: {table}"]


def test_a_changed_table_is_not_printed(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    table = tmp_path / "table.md"
    table.write_text("| 1.2 |")
    digests.record(table, "report.make_table")
    print_results([str(tmp_path)])
    assert capsys.readouterr().out.startswith(f"| 1.2 |\ntable: {table}\n")
    table.write_text("| 9.2 |")
    with pytest.raises(UserError, match=r"table.md: changed since report.make_table wrote it"):
        print_results([str(tmp_path)])
    assert not capsys.readouterr().out
