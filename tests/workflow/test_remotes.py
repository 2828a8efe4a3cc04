"""What is shared through DVC: over SSH and S3 (a local remote: test_end_to_end), with faults, and experiments."""

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from tests.workflow.conftest import Repository
from tests.workflow.servers import BUCKET, Storage, credentials, object_storage, ssh_server

pytestmark = pytest.mark.slow

# What a colleague asks for first: the table, the splits, the judge.
FILES = ("table.csv", "sketch/color/splits.parquet", "sketch/color/judges/0/weights.safetensors")


@pytest.fixture(scope="module")
def storage() -> Iterator[Storage]:
    with credentials(), object_storage() as server:
        yield server


@pytest.fixture(scope="module")
def shared(recorded: Repository, storage: Storage, tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """The recorded run with the S3 server as its remote, pushed."""
    made = Repository(recorded.fork(tmp_path_factory.mktemp("shared")).root)
    add_storage(made, storage, "all")
    made.call("dvc", "push")
    return made


def add_storage(run: Repository, storage: Storage, folder: str) -> None:
    run.call("dvc", "remote", "add", "--default", "--force", "store", f"s3://{BUCKET}/{folder}")
    run.call("dvc", "remote", "modify", "store", "endpointurl", storage.address)
    run.commit("remote")


def clone(run: Repository, folder: Path) -> Repository:
    run.call("git", "clone", "--quiet", str(run.root), str(folder))
    return Repository(folder)


def check_colleague(theirs: Repository, run: Repository) -> None:
    """After a pull nothing is to be done, and everything is as it was."""
    theirs.snakemake("config.yaml", "--touch", "--forceall", cores=1)
    assert theirs.planned("config.yaml") == {}
    assert "up to date" in theirs.call("dvc", "status").stdout
    here, there = (one.artifacts("results") for one in (run, theirs))
    assert here == there and set(FILES) <= here.keys()


def test_s3(shared: Repository, storage: Storage, tmp_path: Path) -> None:
    theirs = clone(shared, tmp_path / "clone")
    theirs.call("dvc", "pull")
    check_colleague(theirs, shared)
    # Credentials are written nowhere.
    text = (shared.root / ".dvc" / "config").read_text()
    assert "access_key" not in text and storage.address in text


def test_ssh(recorded: Repository, tmp_path: Path) -> None:
    run = Repository(recorded.fork(tmp_path / "run").root)
    with ssh_server(tmp_path / "sshd") as server:
        address = f"ssh://{server.user}@127.0.0.1:{server.port}{tmp_path}/store"
        run.call("dvc", "remote", "add", "--default", "store", address)
        run.commit("remote")
        theirs = clone(run, tmp_path / "clone")
        for one in (run, theirs):
            # Whose key opens it is each one's own matter.
            one.call("dvc", "remote", "modify", "--local", "store", "keyfile", str(server.key))
        run.call("dvc", "push")
        assert any((tmp_path / "store" / "files" / "md5").rglob("*/*"))
        theirs.call("dvc", "pull")
    check_colleague(theirs, run)


def test_a_push_that_fails_half_way_goes_on(
    recorded: Repository, storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Clients try each file several times, which takes minutes.
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    run = Repository(recorded.fork(tmp_path / "run").root)
    add_storage(run, storage, "broken")
    part = ("pairs", "split")
    storage.failing, storage.uploads = 10, 0
    failed = run.call("dvc", "push", *part, check=False)
    storage.failing = None
    assert failed.returncode and re.search(r"ERROR: failed to push data to the cloud - \d+ files failed", failed.stderr)
    there = storage.keys("broken/")
    assert 0 < len(there) <= 10
    again = run.call("dvc", "push", *part)
    pushed = int(re.search(r"(\d+) files? pushed", again.stdout)[1])
    assert pushed == len(storage.keys("broken/")) - len(there)
    assert "Everything is up to date" in run.call("dvc", "push", *part).stdout
    assert "in sync" in run.call("dvc", "status", "--cloud", *part).stdout


def test_a_lost_object_is_named_and_made_again(shared: Repository, storage: Storage, tmp_path: Path) -> None:
    listed = (shared.root / "dvc.lock").read_text()
    name = re.search(r"path: results/table.csv\n +hash: md5\n +md5: (\w+)", listed)[1]
    key = f"all/files/md5/{name[:2]}/{name[2:]}"
    kept = storage.read(key)
    storage.client.delete_object(Bucket=BUCKET, Key=key)
    try:
        theirs = clone(shared, tmp_path / "clone")
        failed = theirs.call("dvc", "pull", check=False)
    finally:
        storage.client.put_object(Bucket=BUCKET, Key=key, Body=kept)
    assert failed.returncode == 1 and "results/table.csv" in failed.stderr.split("Checkout failed")[1]
    assert (theirs.root / FILES[-1]).name in {path.name for path in theirs.root.glob("results/sketch/color/judges/0/*")}
    theirs.snakemake("config.yaml", "--touch", "--forceall", cores=1)
    planned = theirs.planned("config.yaml")
    assert "make_table" in planned and not {"train_judge", "score_images", "draw_splits"} & planned.keys()
    theirs.snakemake("config.yaml", "--", "results/table.csv")
    assert theirs.artifacts("results") == shared.artifacts("results")
    # What is younger than what was made of it is the same all the same.
    theirs.snakemake("config.yaml", "--touch", "--forceall", cores=1)
    # Recorded, it is in the cache again, to be pushed, and nothing of what git has is another.
    theirs.call("python", "-m", "workflow_scripts.workflow.record")
    assert "up to date" in theirs.call("dvc", "status").stdout and theirs.git("status", "--porcelain") == ""


def test_large_artifacts_are_left_out(recorded: Repository, tmp_path: Path) -> None:
    run = Repository(recorded.fork(tmp_path / "run").root)
    config = run.root / "config.yaml"
    config.write_text(config.read_text() + 'dvc: {leave_out: ["*/generated/*/images", "*/judges/*"]}\n')
    # Nothing runs for it.
    assert run.planned("config.yaml") == {}
    run.call("python", "-m", "workflow_scripts.workflow.make_dvc")
    run.call("python", "-m", "workflow_scripts.workflow.record")
    run.call("dvc", "remote", "add", "--default", "store", str(tmp_path / "store"))
    run.commit("small")
    assert "up to date" in run.call("dvc", "status").stdout
    run.call("dvc", "push")
    here = run.artifacts("results")
    large = {path for path in here if "/judges/" in path or ("/generated/" in path and "/images/" in path)}
    pushed = {path.parent.name + path.name for path in (tmp_path / "store").rglob("*") if path.is_file()}
    sums = {name: hashlib.md5((run.root / "results" / name).read_bytes()).hexdigest() for name in FILES}
    assert {name for name, value in sums.items() if value in pushed} == {name for name in FILES if name not in large}

    theirs = clone(run, tmp_path / "clone")
    failed = theirs.call("dvc", "pull", check=False)
    said = failed.stderr.split("Checkout failed for following targets:")[1]
    assert failed.returncode == 1
    assert {"results/sketch/color/generated/faithful/images", "results/sketch/color/judges/0"} <= set(said.split())
    assert theirs.artifacts("results") == {path: value for path, value in here.items() if path not in large}
    # What was made of them is there, so that nothing has to run; what is asked for is made again, and it alone.
    theirs.snakemake("config.yaml", "--touch", "--forceall", cores=1)
    assert theirs.planned("config.yaml") == {}
    listed = theirs.snakemake(
        "config.yaml", "--dry-run", "--quiet", "rules", "--", "results/sketch/color/judges/0"
    ).stdout
    planned = {line.split()[0] for line in listed.splitlines() if re.fullmatch(r"\w+ +\d+", line)}
    assert planned == {"train_judge", "total"}, listed

    config.write_text(config.read_text().replace("*/judges/*", "*/jugdes/*"))
    wrong = run.call("python", "-m", "workflow_scripts.workflow.make_dvc", check=False)
    assert (
        wrong.stderr.strip()
        == "error: dvc.leave_out: '*/jugdes/*' matches no artifact below results that DVC would push"
    )


def test_an_experiment_shows_what_a_setting_changed(recorded: Repository, tmp_path: Path) -> None:
    run = Repository(recorded.fork(tmp_path / "run").root)
    run.call("dvc", "exp", "run", "--set-param", "config.yaml:score.candidates=5")
    assert run.planned("config.yaml") == {}
    params = json.loads(run.call("dvc", "params", "diff", "--json").stdout)
    assert params["config.yaml"]["score.candidates"] == {"old": 10, "new": 5, "diff": -5}
    changed = json.loads(run.call("dvc", "metrics", "diff", "--json").stdout)
    metrics = changed.get("diff", changed)
    scores = metrics["results/metrics.json"]
    # Fewer candidates are easier, for all of them.
    faithful = scores["sketch.color.faithful.swapped"]
    assert faithful["diff"] > 0 and faithful["new"] > faithful["old"]
    table = pd.read_csv(run.root / "results" / "table.csv").query("judge != 'oracle' and distractors == 'original'")
    row = table.query("composition == 'color' and generator == 'faithful' and split == 'test_swapped'")
    assert faithful["new"] == pytest.approx(100 * row["exact"].item(), abs=0.006)

    run.call("dvc", "plots", "diff", "--out", str(tmp_path / "plots"))
    page = (tmp_path / "plots" / "index.html").read_text()
    assert '"field": "rev"' in page and "<DVC_METRIC" not in page and page.count('"generator": "faithful"') > 10
    drawn = {path.name for path in (tmp_path / "plots" / "static").iterdir()}
    assert {f"{rev}_results_figures_sketch_color_scores.svg" for rev in ("HEAD", "workspace")} <= drawn
