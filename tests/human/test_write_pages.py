"""A page holds all it needs, asks nobody for anything, and tells nothing."""

from __future__ import annotations

import csv
import html
import io
import re
from types import SimpleNamespace

import pytest

from tests.human.conftest import GENERATORS, HOSTILE, Study
from workflow_scripts.core.errors import UserError
from workflow_scripts.human import write_site
from workflow_scripts.human.tasks import KINDS
from workflow_scripts.human.write_pages import inline_json
from workflow_scripts.human.write_site import COLUMNS, batch_csv, layout_html, site_text


def test_pages_hold_all_and_tell_nothing(study: Study) -> None:
    pages = sorted((study.folder / "pages").glob("*.html"))
    assert len(pages) == 1 + study.tasks[["kind", "batch"]].drop_duplicates().shape[0]
    for page in pages:
        text = page.read_text()
        assert "http://" not in text and "https://" not in text
        assert "default-src 'none'" in html.unescape(text)
        for secret in (*GENERATORS, "gold", "test_seen", "test_swapped", ".png", '"right"'):
            assert secret not in text, (page.name, secret)


def test_no_text_ends_the_script() -> None:
    assert "<" not in inline_json([HOSTILE, "</script><!--"])


def test_site_files(study: Study) -> None:
    for kind in KINDS:
        tasks = study.tasks[study.tasks["kind"] == kind]
        text = batch_csv(tasks, "https://example.org/study/")
        rows = list(csv.DictReader(io.StringIO(text, newline="")))
        assert [row["task_id"] for row in rows] == tasks["task_id"].tolist()
        layout = layout_html(kind)
        # Every variable of the layout is a column, and every column but the task's name is shown.
        assert set(re.findall(r"\$\{(\w+)\}", layout)) == set(COLUMNS[kind]) == set(rows[0]) - {"task_id"}
        for row, task in zip(rows, tasks.to_dict("records"), strict=True):
            assert row["picture_1"] == f"https://example.org/study/{task['picture_1']}"
            assert (study.folder / "pictures" / task["picture_1"]).is_file()
            for name in COLUMNS[kind]:
                if name.startswith("text"):
                    assert html.unescape(row[name]) == task[name]
                assert "<" not in row[name]


def test_site_text_is_plain_and_one_line() -> None:
    assert site_text('a "red"\n wing & <b>') == "a &quot;red&quot; wing &amp; &lt;b&gt;"
    assert site_text("bird 🐦") == "bird &#128038;"


def test_site_needs_https(study: Study, tmp_path: object) -> None:
    options = SimpleNamespace(tasks=study.folder / "tasks.parquet", base="http://x", output=tmp_path)
    with pytest.raises(UserError, match="must start with https"):
        write_site.main(options)
