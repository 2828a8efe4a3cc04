"""What is generated from the workflow and committed: it must be what would be generated now."""

from benchmarks import picture
from workflow_scripts.workflow import reference


def test_the_reference_is_the_code() -> None:
    assert reference.page_text() == reference.PAGE.read_text(), "run `make reference`"


def test_picture_is_the_workflows() -> None:
    page = picture.WORKFLOW_PAGE.read_text()
    assert picture.with_picture(page, picture.picture()) == page, "run `make picture`"
