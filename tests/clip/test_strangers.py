"""Judges and models of strangers: code that comes with one is refused, and never runs."""

import json
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from compclip.clip.config import ModelConfig, check_model_cfg
from compclip.clip.model import TOKENIZER, build, construct, load_judge, save_judge
from compclip.clip.sources import find_model
from compclip.clip.tokens import get_tokenizer
from compclip.clip.vision import open_clip
from compclip.core.errors import UserError
from compclip.core.reading.model_folders import CODE_KEYS, refuse_code
from compclip.core.settings.cli import parse
from compclip.score.score_files import ScoreFiles, main
from tests.clip.test_tokens import tokenizer_of

from .conftest import VIT, clip_folder

transformers = pytest.importorskip("transformers")

EVIL = """from pathlib import Path
from transformers import BertConfig, BertTokenizer
Path({marker!r}).touch()
class Mine(BertTokenizer): pass
class MyConfig(BertConfig): pass
"""
TOKENIZER_MAP = {"AutoTokenizer": ["mytok.Mine", None]}
Judge = Path


def edit(file: Path, change: Callable[[Any], object]) -> None:
    """Change the content of a JSON file in place."""
    content = json.loads(file.read_text()) if file.exists() else {}
    change(content)
    file.write_text(json.dumps(content))


@pytest.fixture(scope="module")
def harmless(tmp_path_factory: pytest.TempPathFactory) -> Judge:
    """A judge with a tokenizer of transformers, as it is shared."""
    place = tmp_path_factory.mktemp("shared")
    cfg = {**VIT, "text_cfg": {**VIT["text_cfg"], "hf_tokenizer_name": "x/y"}}
    source = clip_folder(place / "source", cfg)
    tokenizer_of("bert", VIT["text_cfg"]["context_length"], source)
    save_judge(
        build(ModelConfig(model=f"local-dir:{source}"), [], 0), "shared", None, place / "judge"
    )
    return place / "judge"


@pytest.fixture
def marker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that a stranger's code writes; nobody answers at a terminal, and nothing is asked
    there.
    """
    monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("asked whether code may run"))
    monkeypatch.setenv("HF_MODULES_CACHE", str(tmp_path / "modules"))
    return tmp_path / "marker"


@pytest.fixture
def judge(harmless: Judge, tmp_path: Path, marker: Path) -> Judge:
    """A copy of the judge, and next to it a module that writes the marker when it is imported."""
    folder = Path(shutil.copytree(harmless, tmp_path / "judge"))
    (tmp_path / "mytok.py").write_text(EVIL.format(marker=str(marker)))
    return folder


def add_code(judge: Judge) -> None:
    shutil.copy(judge.parent / "mytok.py", judge / TOKENIZER)


def add_map(judge: Judge, name: str = "tokenizer_config.json", value: Any = TOKENIZER_MAP) -> None:
    edit(judge / TOKENIZER / name, lambda content: content.update(auto_map=value))


def add_argument(judge: Judge, section: str = "text_cfg", **arguments: Any) -> None:
    edit(judge / "model.json", lambda content: content["model_cfg"][section].update(arguments))


def reported_attack(judge: Judge) -> None:
    """Every part of the attack: an argument that trusts code, JSON that names it, and the code."""
    add_code(judge)
    add_map(judge)
    add_argument(judge, tokenizer_kwargs={"trust_remote_code": True})


def linked_folder(judge: Judge) -> None:
    reported_attack(judge)
    shutil.move(judge / TOKENIZER, judge.parent / "elsewhere")
    (judge / TOKENIZER).symlink_to(judge.parent / "elsewhere")


def linked_config(judge: Judge) -> None:
    add_map(judge)
    shutil.move(judge / TOKENIZER / "tokenizer_config.json", judge.parent / "outside")
    (judge / TOKENIZER / "tokenizer_config.json").symlink_to(judge.parent / "outside")


def pickled_tokenizer(judge: Judge) -> None:
    (judge / TOKENIZER / "tokenizer.pkl").write_bytes(pickle.dumps([1]))


def text_tower(judge: Judge) -> None:
    """A text tower of transformers in a folder, whose config is code."""
    tower = judge.parent / "tower"
    tower.mkdir()
    (tower / "config.json").write_text(json.dumps({"auto_map": {"AutoConfig": "mytok.MyConfig"}}))
    shutil.copy(judge.parent / "mytok.py", tower)
    add_argument(judge, hf_model_name=str(tower))


def text_tower_without_map(judge: Judge) -> None:
    text_tower(judge)
    (judge.parent / "tower" / "config.json").write_text('{"model_type": "bert"}')


def tokenizer_elsewhere(judge: Judge) -> None:
    """No tokenizer in the judge's folder, but the name of a folder that is on this machine."""
    reported_attack(judge)
    shutil.move(judge / TOKENIZER, judge.parent / "tokenizer")
    add_argument(judge, hf_tokenizer_name=str(judge.parent / "tokenizer"), tokenizer_kwargs=None)


ATTACKS: dict[str, Callable[[Judge], object]] = {
    "as reported": reported_attack,
    "map alone": add_map,
    "map as a list": lambda judge: add_map(judge, value=["mytok.Mine", None]),
    "map of a config": lambda judge: add_map(
        judge, "config.json", {"AutoConfig": "mytok.MyConfig"}
    ),
    "map of a processor": lambda judge: add_map(
        judge, "processor_config.json", {"AutoProcessor": "mytok.Mine"}
    ),
    "map of another repository": lambda judge: add_map(
        judge, value={"AutoTokenizer": ["a/b--mytok.Mine", None]}
    ),
    "map inside": lambda judge: edit(
        judge / TOKENIZER / "config.json",
        lambda content: content.update(text_config={"x": [{"auto_map": "mytok.M"}]}),
    ),
    "map in an escape": lambda judge: (judge / TOKENIZER / "config.json").write_text(
        '{"\\u0061uto_map": "b.C"}'
    ),
    "map in UTF-16": lambda judge: (judge / TOKENIZER / "config.json").write_text(
        '{"auto_map": "b.C"}', "utf-16"
    ),
    "map twice": lambda judge: (judge / TOKENIZER / "config.json").write_text(
        '{"auto_map": "b.C", "auto_map": 1}'
    ),
    "pipelines": lambda judge: edit(
        judge / TOKENIZER / "config.json", lambda c: c.update(custom_pipelines={"x": {}})
    ),
    "code alone": add_code,
    "capitals": lambda judge: shutil.copy(
        judge.parent / "mytok.py", judge / TOKENIZER / "mytok.PY"
    ),
    "compiled code": lambda judge: (
        judge / TOKENIZER / "mytok.cpython-311-x86_64-linux-gnu.so"
    ).touch(),
    "bytecode": lambda judge: (judge / TOKENIZER / "mytok.pyc").touch(),
    "template": lambda judge: (judge / TOKENIZER / "chat_template.jinja").write_text("{{ 1 }}"),
    "no suffix": lambda judge: (judge / TOKENIZER / "mytok").touch(),
    "folder": lambda judge: (judge / TOKENIZER / "mytok.json").mkdir(),
    "pipe": lambda judge: os.mkfifo(judge / TOKENIZER / "mytok.json"),
    "device": lambda judge: (judge / TOKENIZER / "mytok.json").symlink_to("/dev/zero"),
    "link to code": lambda judge: (judge / TOKENIZER / "mytok.py").symlink_to(
        judge.parent / "mytok.py"
    ),
    "linked folder": linked_folder,
    "linked config": linked_config,
    "pickle": pickled_tokenizer,
    "text tower": text_tower,
    "text tower without map": text_tower_without_map,
    "tokenizer elsewhere": tokenizer_elsewhere,
    "argument alone": lambda judge: add_argument(
        judge, tokenizer_kwargs={"trust_remote_code": True}
    ),
    "argument of the tokenizer": lambda judge: add_argument(
        judge, tokenizer_kwargs={"tokenizer_type": "bert"}
    ),
    "argument of a file": lambda judge: add_argument(
        judge, tokenizer_kwargs={"gguf_file": "x.gguf"}
    ),
    "argument inside": lambda judge: add_argument(
        judge, tokenizer_kwargs={"clean": {"trust_remote_code": True}}
    ),
    "argument of the text tower": lambda judge: add_argument(judge, trust_remote_code=True),
    "argument of the image tower": lambda judge: add_argument(
        judge, "vision_cfg", trust_remote_code=True
    ),
    "other arguments": lambda judge: add_argument(judge, model_kwargs={"trust_remote_code": True}),
    "norm": lambda judge: add_argument(judge, norm_kwargs={"device": "cpu"}),
    "activation": lambda judge: add_argument(judge, "vision_cfg", act_kwargs={"inplace": True}),
    "model": lambda judge: edit(
        judge / "model.json", lambda c: c["model_cfg"].update(trust_remote_code=True)
    ),
    "model's mapping": lambda judge: edit(
        judge / "model.json", lambda c: c["model_cfg"].update(hf_cfg={"a": 1})
    ),
    "tower": lambda judge: add_argument(judge, tower="os"),
    "tower of a module": lambda judge: add_argument(judge, "vision_cfg", tower="mytok.Mine"),
    "timm": lambda judge: add_argument(judge, "vision_cfg", timm_model_name="mytok:Mine"),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_strangers_judge_runs_no_code(
    judge: Judge, marker: Path, attack: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(judge.parent)
    monkeypatch.syspath_prepend(str(judge / TOKENIZER))
    ATTACKS[attack](judge)
    with pytest.raises(UserError) as error:
        load_judge(judge, 1, "cpu")
    assert "\n" not in str(error.value) and not marker.exists()


def test_compclip_score_runs_no_code(judge: Judge, marker: Path, tmp_path: Path) -> None:
    reported_attack(judge)
    entries = pd.DataFrame(
        [("a.png", "1", 0, "a bird")], columns=["path", "image_id", "caption_id", "text"]
    )
    entries.to_csv(tmp_path / "entries.csv", index=False)
    flags = [
        f"--entries={tmp_path / 'entries.csv'}",
        f"--judge={judge}",
        "--threads=1",
        "--device=cpu",
    ]
    with pytest.raises(UserError, match="mytok.py|auto_map|trust_remote_code"):
        main(parse(ScoreFiles, flags, "compclip score"))
    assert not marker.exists()


def test_the_judge_works_before_the_attack_and_its_code_would_run(
    judge: Judge, marker: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the checks, transformers imports the module: the attacks above are real."""
    load_judge(judge, 1, "cpu").encode_texts(["a bird"], 1)
    reported_attack(judge)
    monkeypatch.setattr(
        "transformers.dynamic_module_utils.HF_MODULES_CACHE", str(judge.parent / "modules")
    )
    transformers.AutoTokenizer.from_pretrained(judge / TOKENIZER, trust_remote_code=True)
    assert marker.exists()


@pytest.mark.parametrize(
    "change", [{"clean": "whitespace"}, {"strip_sep_token": True}, {"language": None}, {}, None]
)
def test_allowed_arguments_of_a_tokenizer(judge: Judge, change: dict[str, Any] | None) -> None:
    add_argument(judge, tokenizer_kwargs=change)
    assert load_judge(judge, 1, "cpu").encode_texts(["a bird"], 1).shape == (1, VIT["embed_dim"])


def test_a_token_may_have_the_name_of_a_key(tmp_path: Path) -> None:
    vocabulary = tmp_path / "vocab.json"
    vocabulary.write_text(json.dumps({key: number for number, key in enumerate(sorted(CODE_KEYS))}))
    (tmp_path / "config.json").write_text('{"auto_map": null}')
    (tmp_path / "broken.json").write_text('{"auto_map": ')
    refuse_code(tmp_path.iterdir())
    # The same key with a text names code.
    (tmp_path / "config.json").write_text('{"auto_map": "code.Model"}')
    with pytest.raises(UserError, match="auto_map names code"):
        refuse_code(tmp_path.iterdir())


def test_every_model_of_open_clip_is_allowed() -> None:
    names = open_clip().list_models()
    assert len(names) > 100
    for name in names:
        check_model_cfg(find_model(name)[0])


@pytest.mark.parametrize(
    "text", [{"hf_model_name": "somebody/coded"}, {"hf_tokenizer_name": "somebody/coded"}]
)
def test_code_of_the_hub_is_refused(
    text: dict[str, str], marker: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    model, commit = tmp_path / "hub" / "models--somebody--coded", "0123456789" * 4
    snapshot = model / "snapshots" / commit
    snapshot.mkdir(parents=True)
    (model / "refs").mkdir()
    (model / "refs" / "main").write_text(commit)
    (snapshot / "mytok.py").write_text(EVIL.format(marker=str(marker)))
    (snapshot / "config.json").write_text(
        json.dumps({"auto_map": {"AutoConfig": "mytok.MyConfig"}})
    )
    (snapshot / "tokenizer_config.json").write_text(json.dumps({"auto_map": TOKENIZER_MAP}))
    cfg = {**VIT, "text_cfg": {**VIT["text_cfg"], **text}}
    with pytest.raises(UserError, match=r"coded.*\.json: auto_map names code"):
        construct(cfg) if "hf_model_name" in text else get_tokenizer(cfg, None)
    assert not marker.exists()


@pytest.mark.parametrize("name", ["mytok.py", "mytok.so", "tokenizer.pickle"])
def test_a_local_model_with_code_is_refused(name: str, tmp_path: Path) -> None:
    cfg = {**VIT, "text_cfg": {**VIT["text_cfg"], "hf_tokenizer_name": "x/y"}}
    folder = clip_folder(tmp_path / "mine", cfg)
    tokenizer_of("bert", VIT["text_cfg"]["context_length"], folder)
    (folder / "README.md").touch()  # as on the Hub
    build(ModelConfig(model=f"local-dir:{folder}"), [], 0).tokenizer()
    (folder / name).touch()
    with pytest.raises(UserError, match=f"{name}: may hold code"):
        build(ModelConfig(model=f"local-dir:{folder}"), [], 0).tokenizer()


def test_a_saved_judge_has_no_template(tmp_path: Path) -> None:
    """A chat template is a program that no judge runs."""
    cfg = {**VIT, "text_cfg": {**VIT["text_cfg"], "hf_tokenizer_name": "x/y"}}
    folder = clip_folder(tmp_path / "mine", cfg)
    tokenizer_of("bert", VIT["text_cfg"]["context_length"], folder)
    edit(folder / "tokenizer_config.json", lambda content: content.update(chat_template="{{ 1 }}"))
    save_judge(
        build(ModelConfig(model=f"local-dir:{folder}"), [], 0), "mine", None, tmp_path / "judge"
    )
    load_judge(tmp_path / "judge", 1, "cpu")
    assert not any(
        b"{{ 1 }}" in file.read_bytes() for file in (tmp_path / "judge" / TOKENIZER).iterdir()
    )


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Judge:
    """A judge with a text tower of its own, as it is shared."""
    folder = tmp_path_factory.mktemp("words") / "judge"
    save_judge(build(ModelConfig(model="sketch"), ["a red bird"] * 2, 0), "words", 0.75, folder)
    return folder


def set_key(path: str, value: Any) -> Callable[[Any], None]:
    """Return a function that sets a key of a nested mapping; ``None`` as value of a required key is
    null.
    """

    def change(content: Any) -> None:
        *above, last = path.split(".")
        for key in above:
            content = content[key]
        content[last] = value

    return change


FAULTS = {
    "preprocess_cfg.interpolation": ["evil", None],
    "preprocess_cfg.resize_mode": ["evil"],
    "preprocess_cfg.size": [32, "48", -1, 0, [48], 1.5, True],
    "preprocess_cfg.mean": [[0, 0], None, "0", [0, 0, float("nan")]],
    "preprocess_cfg.std": [[0, 0, 0]],
    "preprocess_cfg.mode": ["L"],
    "preprocess_cfg.more": [1],
    "crop": [float("nan"), 500, -1, 0, "1", True],
    "name": ["a\nb", "\u001b[31m", 5, "", None, "a" * 1000],
    "model_cfg": [[], None, {}],
    "model_cfg.text_cfg": [None, []],
    "preprocess_cfg": [[], {}],
    "model_cfg.text_cfg.context_length": [1.5, 0, -1, "77"],
    "model_cfg.text_cfg.vocab_size": [1, "x"],
}


@pytest.mark.parametrize(
    ("key", "value"), [(key, value) for key, values in FAULTS.items() for value in values]
)
def test_the_settings_of_a_judge_are_checked(
    words: Judge, tmp_path: Path, key: str, value: Any
) -> None:
    judge = shutil.copytree(words, tmp_path / "judge")
    edit(judge / "model.json", set_key(key, value))
    with pytest.raises(UserError) as raised:
        load_judge(judge, 1, "cpu")
    message = str(raised.value)
    assert str(judge) in message and "\n" not in message
    assert key.rpartition(".")[2] in message or key == "model_cfg"


@pytest.mark.parametrize("key", ["name", "model_cfg", "preprocess_cfg", "crop"])
def test_a_missing_setting_of_a_judge_is_named(words: Judge, tmp_path: Path, key: str) -> None:
    judge = shutil.copytree(words, tmp_path / "judge")
    edit(judge / "model.json", lambda content: content.pop(key))
    with pytest.raises(UserError, match=f"model.json: {key}: "):
        load_judge(judge, 1, "cpu")
    (judge / "model.json").write_text("[]")
    with pytest.raises(UserError, match="model.json: expected a mapping"):
        load_judge(judge, 1, "cpu")


@pytest.mark.parametrize("content", [["a"], {}, [1, 2, 3], None, "words", []])
def test_the_vocabulary_of_a_judge_fits_its_tower(
    words: Judge, tmp_path: Path, content: Any
) -> None:
    judge = shutil.copytree(words, tmp_path / "judge")
    size = json.loads((judge / "model.json").read_text())["model_cfg"]["text_cfg"]["vocab_size"]
    for other in (content, ["a"] * size):
        (judge / "vocabulary.json").write_text(json.dumps(other))
        with pytest.raises(UserError, match="vocabulary.json: expected as many distinct words"):
            load_judge(judge, 1, "cpu")
