"""The plan of a run, by which rules are declared, without Snakemake."""

import re
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
import yaml

from compclip.core.identity.code import ROOT
from compclip.text import lexicon
from tests.clip.test_imports import loaded
from tests.project import SMALL
from workflow_scripts.workflow.config import load_config
from workflow_scripts.workflow.plan import RunPlan
from workflow_scripts.workflow.rule_values import growing, literal, one_of, undecisive

RULES = sorted((ROOT / "rules").glob("*.smk"))
CAPTIONS_ALONE = {"dataset": {"source": "table", "table": {"file": "t.csv"}}}
DRAWN = {"dataset": {"source": "sketch"}, "pairs": {"nouns": "birds"}}
LONG_CAPTIONS = {"examples": "a/train.json", "increments": "test.csv"}
PRETRAINED = {"model": "RN50", "pretrained": "openai", "epochs": 0}


class Wildcards(dict[str, str]):
    """The wildcards of a job."""

    __getattr__ = dict.__getitem__


def plan_of(**values: Any) -> RunPlan:
    """Return the plan of drawn birds, or of other ``values``."""
    return RunPlan(load_config({"results": "r", **DRAWN, **values}))


@pytest.fixture(scope="module")
def full() -> RunPlan:
    """The plan of a run with all stages."""
    values = yaml.safe_load(SMALL.format(results="r", cache="c"))
    values["compun"]["human"] = {}
    return RunPlan(load_config(values))


def test_the_plan_needs_no_snakemake() -> None:
    modules = loaded("import workflow_scripts.workflow.plan")
    assert not [name for name in modules if name.split("_")[0].split(".")[0] == "snakemake"]
    assert not {"torch", "open_clip", "spacy"} & modules


@pytest.mark.parametrize("file", RULES, ids=lambda file: file.stem)
def test_rules_name_what_the_plan_has(file: Path, full: RunPlan) -> None:
    for names in re.findall(r"\bplan\.((?:[a-z_]+\.)*[a-z_]+)", file.read_text()):
        value: Any = full
        for name in names.split("."):
            assert hasattr(value, name), f"{file.name}: plan.{names}"
            value = getattr(value, name)


@pytest.mark.parametrize("file", RULES, ids=lambda file: file.stem)
def test_rules_define_no_functions(file: Path) -> None:
    assert not re.search(r"^ *def |\blambda\b", file.read_text(), re.MULTILINE)


def test_shared_judges_are_trained_once() -> None:
    plan = plan_of(judge={"seeds": [3, 4]})
    assert plan.judge.folders == ["r/sketch/judges/3", "r/sketch/judges/4"]
    assert plan.judge.of_composition == plan.judge.folders
    # They learn from the splits of all compositions.
    assert plan.of_judged("splits.parquet") == [
        "r/sketch/color/splits.parquet",
        "r/sketch/shape/splits.parquet",
    ]


@pytest.mark.parametrize(
    ("cores", "processes", "memory"),
    [(None, 1, 8000), (1, 1, 8000), (2, 1, 8000), (4, 2, 12000), (8, 4, 16000), (100, 16, 16000)],
)
def test_scoring_gets_an_equal_part_of_the_cores(
    cores: int | None, processes: int, memory: int
) -> None:
    run = {"compositions": ["color", "shape"], "judge": {"seeds": [0, 1, 2]}}
    score = plan_of(threads=1, **run).score
    assert (score.processes(cores), score.memory(cores)) == (processes, memory)
    # Torch with several threads cannot be forked.
    score = plan_of(threads=3, **run).score
    assert (score.processes(cores), score.memory(cores)) == (1, 8000)


def test_a_composition_may_have_judges_of_its_own() -> None:
    plan = plan_of(judge={"seeds": [3], "shared": False})
    assert plan.judge.folders == ["r/sketch/color/judges/3", "r/sketch/shape/judges/3"]
    assert plan.judge.of_composition == ["r/sketch/{composition}/judges/3"]
    assert plan.of_judged("splits.parquet") == ["r/sketch/{composition}/splits.parquet"]


def test_a_judges_weights_may_depend_on_the_composition(tmp_path: Path) -> None:
    for name in ("color", "shape"):
        (tmp_path / f"{name}.pt").write_text(name)
    weights = {"model": "RN50", "pretrained": f"{tmp_path}/{{composition}}.pt", "shared": False}
    plan = plan_of(judge=weights, cache=str(tmp_path / "cache"))
    jobs = [Wildcards(composition=name, judge="5") for name in ("color", "shape")]
    assert f"{tmp_path}/shape.pt" in plan.judge.files(jobs[1])
    assert plan.judge.settings(jobs[1])["pretrained"] == f"{tmp_path}/shape.pt"
    assert plan.judge.contents(jobs[0]) != plan.judge.contents(jobs[1])
    assert plan.judge.seed(jobs[0]) == 5


def test_the_shards_of_a_step_are_listed() -> None:
    plan = plan_of(dataset={"source": "sketch", "shards": 2})
    assert plan.shards("{composition}/offers", "parquet", "json") == [
        f"r/sketch/{{composition}}/offers/{name}"
        for name in ("1-of-2.parquet", "1-of-2.json", "2-of-2.parquet", "2-of-2.json")
    ]
    # The steps of a composition are several jobs of a cluster.
    assert plan.split.group is None


def test_a_single_shard_is_no_job() -> None:
    plan = plan_of()
    assert plan.shards("pairs", "parquet") == []
    assert plan.split.group == "split"


def test_compositions_share_pairs_unless_they_have_a_lexicon_of_their_own(
    full: RunPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    color = Wildcards(composition="color")
    assert full.pairs_table(color) == "r/sketch/pairs.parquet"
    assert full.noun_forms(color) == "r/sketch/pairs.json"
    shared = [f"lexicons/adjectives/{name}.yaml" for name in lexicon.SHARED]
    assert full.lexicons_of_pairs(Wildcards(own="")) == shared
    monkeypatch.setattr("workflow_scripts.places.lexicons_of", lambda file: ["shape", file.stem])
    assert full.lexicons_of_pairs(Wildcards(own="size/")) == [
        "lexicons/adjectives/shape.yaml",
        "lexicons/adjectives/size.yaml",
    ]


@pytest.mark.parametrize(
    ("split", "needs_pairs", "needs_lexicons"),
    [
        ({}, True, True),  # the draw is chosen
        (
            {"heldout": {"fraction": 0.1, "window": [25, 75], "prefer_swappable": False}},
            False,
            False,
        ),
        ({"heldout": {"pairs": ["red_bill"]}}, True, True),
        ({"published": {"split": "{composition}.pkl"}}, False, True),
        ({"method": "divergence"}, True, False),
    ],
)
def test_held_out_pairs_are_found_from_no_more_than_needed(
    split: dict[str, Any], needs_pairs: bool, needs_lexicons: bool
) -> None:
    plan = plan_of(split=split).split
    assert (plan.heldout_needs_pairs, plan.heldout_needs_lexicons) == (needs_pairs, needs_lexicons)


def test_published_files_are_those_of_the_composition(tmp_path: Path) -> None:
    published = {"split": f"{tmp_path}/{{composition}}.pkl"}
    plan = plan_of(split={"published": published}, cache=str(tmp_path / "cache")).split
    color, shape = Wildcards(composition="color"), Wildcards(composition="shape")
    assert plan.published_split(color) == f"{tmp_path}/color.pkl"
    assert plan.published_data(color) is None
    before = plan.published_contents(color)
    (tmp_path / "shape.pkl").write_text("a")
    assert plan.published_contents(shape) != before


def plan_of_generators() -> tuple[RunPlan, dict[str, Wildcards]]:
    """Return a plan with several kinds, and the wildcards of a job of each generator."""
    model = {"name": "model", "kind": "diffusers", "model": "./m", "device": "cuda"}
    plan = plan_of(
        generate={"generators": ["photographs", "faithful", "usual_photographs", model]}, threads=6
    )
    jobs = {name: Wildcards(composition="color", generator=name) for name in plan.generators}
    return plan, jobs


def test_kinds_of_generators_differ_in_what_they_need() -> None:
    plan, jobs = plan_of_generators()
    assert plan.generate.with_scenes == ["faithful"]
    assert plan.generate.with_model == ["model"]
    assert plan.generate.plain == ["photographs", "usual_photographs"]
    assert plan.generate.controls == ["photographs", "faithful", "usual_photographs"]
    code = {plan.generate.kind_code(job) for job in jobs.values()}
    assert len(code) == len(jobs)


def test_generators_read_the_tables_of_their_kind() -> None:
    plan, jobs = plan_of_generators()
    assert plan.generate.tables(jobs["photographs"]) == ["r/sketch/images.parquet"]
    of_usual = plan.generate.tables(jobs["usual_photographs"])
    assert {"r/sketch/pairs.parquet", "r/sketch/color/prompts.parquet"} <= {*of_usual}


def test_only_models_take_threads() -> None:
    plan, jobs = plan_of_generators()
    assert plan.generate.threads(jobs["model"]) == 6
    assert plan.generate.threads(jobs["faithful"]) == 2


def test_only_models_take_gpus() -> None:
    plan, jobs = plan_of_generators()
    assert plan.generate.gpus(jobs["model"]) == 1
    assert plan.generate.gpus(jobs["faithful"]) == 0


def test_a_generators_images_are_read_once_for_equal_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = {"name": "mine", "kind": "folder", "path": str(tmp_path)}
    plan = plan_of(generate={"generators": [entry]}, cache=str(tmp_path / "cache"))
    readings = []
    kind = plan.kinds["mine"]
    counted = kind.model_copy(update={"fingerprint": lambda *_: readings.append(1) or "hash"})
    monkeypatch.setitem(plan.kinds, "mine", counted)
    for composition in ("color", "shape"):
        job = Wildcards(composition=composition, generator="mine")
        assert plan.generate.contents(job) == "hash"
    assert len(readings) == 1


def test_the_oracle_scores_generators_with_known_scenes(full: RunPlan) -> None:
    assert full.score.oracle_generators == ["photographs", "faithful", "memorizer", "usual"]
    assert full.score.of_composition("color")[-1] == "r/sketch/color/scores/oracle/usual"
    table = {"source": "table", "table": {"file": "t.csv", "images": "i"}}
    assert plan_of(dataset=table, pairs={}).score.oracle_generators == []


def test_captions_alone_have_no_scores() -> None:
    plan = plan_of(**CAPTIONS_ALONE, pairs={})
    assert "r/report.html" in plan.outputs and "r/table/color/export" in plan.outputs
    assert not [path for path in (*plan.outputs, *plan.page_inputs) if "scores" in path]
    assert plan.report.shown_figures == [] and plan.report.entry_params["generators"] == []


def test_optional_stages_add_their_pages(full: RunPlan) -> None:
    pages = {"r/specs.html", "r/compun.html", "r/sketch/color/human/tasks.json"}
    assert pages <= {*full.outputs} and not pages & {*plan_of().outputs}
    assert "r/sketch/compun/analysis.csv" in full.page_inputs
    assert full.report.sections == ["specs", "compun"]
    assert len(full.outputs) == len({*full.outputs})


def test_long_captions_are_those_of_the_sketches_or_the_users(full: RunPlan) -> None:
    assert full.specs and full.specs.long_captions == (
        "r/sketch/specs/{seed}/examples.parquet",
        "r/sketch/images",
        "r/sketch/specs/{seed}/steps.parquet",
        "r/sketch/images",
    )
    specs = plan_of(specs={"data": LONG_CAPTIONS, "base": PRETRAINED}).specs
    # Images are beside the captions unless the config names a folder.
    assert specs and specs.long_captions == ("a/train.json", "a", "test.csv", ".")


def test_compounds_are_drawn_or_the_users(full: RunPlan) -> None:
    assert full.compun and full.compun.listed == "r/sketch/compun/drawn/list.csv"
    assert full.compun.captions == "r/sketch/compun/drawn/captions.json"
    assert [model["name"] for model in full.compun.models] == ["untaught", "taught"]
    compounds = {"file": "c.csv", "images": "i"}
    models = [{"name": "mine", "judge": "j"}]
    plan = plan_of(compun={"compounds": compounds, "models": models, "captions": "c.json"}).compun
    assert plan and (plan.listed, plan.images) == ("c.csv", "i")
    assert (plan.captions, plan.descriptions) == ("c.json", [])
    assert plan.models == [{"name": "mine", "judge": "j"}]


def test_content_is_read_once_in_each_run(tmp_path: Path) -> None:
    file, values = tmp_path / "a.csv", {"cache": str(tmp_path / "cache")}
    file.write_text("a")
    plan = plan_of(**values)
    param = plan.contents(str(file))
    before = param(Wildcards())
    file.write_text("bc")
    assert param(Wildcards()) == before
    assert plan_of(**values).contents(str(file))(Wildcards()) != before


def test_trainings_ask_for_their_gpus() -> None:
    judge = {"gpus": 2, "batch": 64, "device": "cuda"}
    plan = plan_of(judge=judge, threads=1)
    resources = plan.training_resources(plan.config.judge)
    assert (resources["gpu"], resources["nodes"], resources["torch"]) == (2, 1, 0)
    assert resources["mem_mb"](Wildcards(), 2) == 2 * 16000
    one = plan_of(judge={"device": "cpu"}).training_resources(plan_of().config.judge)
    assert "nodes" not in one and one["torch"] == 1
    assert plan.model_resources("cpu", 100)["gpu"] == 0


def test_params_are_functions_of_what_snakemake_looks_at() -> None:
    """It passes arguments by name, and does not compare params that depend on inputs."""
    assert literal("{a}")(Wildcards()) == "{a}"
    assert list(signature(literal(1)).parameters) == ["wildcards"]
    assert list(signature(undecisive(1)).parameters) == ["wildcards", "input"]
    assert list(signature(growing(1)).parameters) == ["wildcards", "attempt"]


def test_a_pattern_of_no_names_matches_nothing() -> None:
    assert one_of(["a", "b"]) == "a|b"
    assert not re.fullmatch(one_of([]), "") and not re.fullmatch(one_of([]), "a")
