"""The stage in the workflow: there where the config asks for it."""

from __future__ import annotations

from pathlib import Path

from workflow_scripts.workflow.graph import jobs


def rules_of(tmp_path: Path, config: str) -> set[str]:
    (tmp_path / "config.yaml").write_text(config)
    return {job.rule for job in jobs(tmp_path / "config.yaml") if job.stage == "human"}


def test_nobody_is_asked_by_default(tmp_path: Path) -> None:
    assert rules_of(tmp_path, "seed: 0\n") == set()


def test_pages_and_what_else_is_asked_for(tmp_path: Path) -> None:
    assert rules_of(tmp_path, "human: {}\n") == {"sample_tasks", "write_pages"}
    answers = tmp_path / "answers.jsonl"
    answers.touch()
    more = f"human: {{answers: [{answers}], site: {{base: 'https://example.org/x'}}}}\n"
    assert rules_of(tmp_path, more) == {"sample_tasks", "write_pages", "write_site", "analyze"}
