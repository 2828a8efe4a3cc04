"""Pages, site files and Label Studio projects are self-contained, escape texts, and reveal nothing."""

import base64
import csv
import html
import io
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.human.conftest import GENERATORS, HOSTILE, Study
from workflow_scripts.human import write_label_studio
from workflow_scripts.human.config import Notice
from workflow_scripts.human.steps import WriteLabelStudio
from workflow_scripts.human.tasks import ALL_KINDS, KINDS, shown_columns
from workflow_scripts.human.write_label_studio import labeling_config
from workflow_scripts.human.write_pages import inline_json
from workflow_scripts.human.write_site import batch_csv, layout_html, site_text

NOTICE = Notice(consent="You get $5 & <thanks>", withdrawal="Write to us", contact="me@example.org")


def test_pages_are_self_contained_and_reveal_nothing(study: Study) -> None:
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
        layout = layout_html(kind, Notice())
        # The layout's variables are the columns other than the task's name.
        assert set(re.findall(r"\$\{(\w+)\}", layout)) == {*shown_columns(kind)} == set(rows[0]) - {"task_id"}
        for row, task in zip(rows, tasks.to_dict("records"), strict=True):
            assert row["picture_1"] == f"https://example.org/study/{task['picture_1']}"
            assert (study.folder / "pictures" / task["picture_1"]).is_file()
            for name in shown_columns(kind):
                if name.startswith("text"):
                    assert html.unescape(row[name]) == task[name]
                assert "<" not in row[name]


def test_site_text_is_plain_and_one_line() -> None:
    assert site_text('a "red"\n wing & <b>') == "a &quot;red&quot; wing &amp; &lt;b&gt;"
    assert site_text("bird 🐦") == "bird &#128038;"
    assert site_text("=1+1") == "&#61;1+1"  # a spreadsheet would execute it


@pytest.mark.parametrize("kind", list(ALL_KINDS))
def test_labeling_config_is_consistent(kind: str) -> None:
    """As Label Studio requires: unique names, a toName that exists, and variables of the tasks' data."""
    view = ElementTree.fromstring(labeling_config(kind, NOTICE))
    objects = {tag.get("name"): tag.get("value") for tag in [*view.iter("Image"), *view.iter("Text")]}
    assert objects == {name: f"${name}" for name in ["notice", *shown_columns(kind)]}
    (control,) = view.iter("Choices")
    assert control.attrib == {
        "name": "choice", "toName": "picture_1", "choice": "single", "required": "true", "showInline": "true"
    }  # fmt: skip
    choices = [(choice.get("alias"), choice.get("value")) for choice in control]
    assert choices == list(zip(ALL_KINDS[kind].answers, ALL_KINDS[kind].labels, strict=True))


def test_label_studio_projects(study: Study, tmp_path: Path) -> None:
    """All tasks with gold and repeats, in the order of pages, and nothing that reveals what they are."""
    tasks, pictures = study.folder / "tasks.parquet", study.folder / "pictures"
    step = WriteLabelStudio(tasks=tasks, pictures=pictures, label_studio=tmp_path / "projects", notice=NOTICE)
    write_label_studio.main(step)
    for kind in KINDS:
        rows = study.tasks[study.tasks["kind"] == kind].sort_values(["batch", "place"]).to_dict("records")
        data = [task["data"] for task in json.loads((step.label_studio / f"{kind}.json").read_text())]
        assert [shown["task_id"] for shown in data] == [row["task_id"] for row in rows]
        for shown, row in zip(data, rows, strict=True):
            assert set(shown) == {"task_id", "notice", *shown_columns(kind)}
            assert shown["notice"] == "You get $5 & <thanks>\nWrite to us\nContact: me@example.org"
            assert all(shown[name] == row[name] for name in shown if name.startswith("text"))
            raw = base64.b64decode(shown["picture_1"].partition("base64,")[2])
            assert raw == (pictures / row["picture_1"]).read_bytes()


def test_notice_is_shown(study: Study, tmp_path: Path) -> None:
    folder = study.write_pages(tmp_path / "pages", **NOTICE.model_dump())
    for page in folder.iterdir():
        text = html.unescape(page.read_text())
        assert all(told in text for told in NOTICE.texts()) and "<thanks>" not in page.read_text()
        assert ('id="agree"' in text) == (page.name != "index.html")
    layout = layout_html("match", NOTICE)
    assert "You get &#36;5 &amp; &lt;thanks&gt;" in layout and "Write to us" in layout
    assert 'id="agree"' not in (study.folder / "pages" / "match_01.html").read_text()
