"""A small run in a repository of its own, recorded with DVC."""

import shutil

import pytest
import yaml

from tests.project import Project


class Repository(Project):
    """A project in git whose default run is the small one."""

    def git(self, *command: str) -> str:
        return self.call("git", "-c", "user.name=t", "-c", "user.email=t@example.org", *command).stdout

    def commit(self, message: str) -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)


@pytest.fixture(scope="session")
def recorded(first_run: Project, tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """Record the small run as the default one with DVC and commit it; to be cloned and forked."""
    made = Repository(first_run.fork(tmp_path_factory.mktemp("recorded")).root)
    config = yaml.safe_load((made.root / "small.yaml").read_text())
    (made.root / "config.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
    shutil.rmtree(made.root / "presets")
    made.call("git", "init", "--quiet")
    made.call("python", "-m", "workflow_scripts.workflow.make_dvc")
    made.call("python", "-m", "workflow_scripts.workflow.record")
    made.commit("run")
    return made
