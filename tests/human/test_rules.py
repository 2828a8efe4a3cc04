"""The stage's rules run if the config asks for them."""

from pathlib import Path

from workflow_scripts.workflow.graph import jobs


def rules_of(tmp_path: Path, config: str) -> set[str]:
    (tmp_path / "config.yaml").write_text(config)
    return {job.rule for job in jobs(tmp_path / "config.yaml") if job.module.startswith("human.")}


def test_nobody_is_asked_by_default(tmp_path: Path) -> None:
    assert rules_of(tmp_path, "seed: 0\n") == set()


def test_what_the_config_asks_for_is_made(tmp_path: Path) -> None:
    assert rules_of(tmp_path, "human: {}\n") == {"sample_tasks", "write_pages"}
    answers = tmp_path / "answers.jsonl"
    answers.touch()
    more = f"human: {{answers: [{answers}], site: {{base: 'https://example.org/x'}}, label_studio: true}}\n"
    everything = {"sample_tasks", "write_pages", "write_site", "write_label_studio", "analyze"}
    assert rules_of(tmp_path, more) == everything
