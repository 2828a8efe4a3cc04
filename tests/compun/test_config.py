"""The config's section: what is refused, in one line, and a key never shown."""

from typing import Any

import pytest

from workflow_scripts.core.errors import UserError
from workflow_scripts.workflow.config import load_config

KEY = "sk-" + "secret" * 4


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ({"compounds": {}}, "compun: compounds without models to ask; add models"),
        ({"judge": {"epochs": 0}}, "compun.judge: epochs: 0 with pretrained: null is a judge with random weights"),
        ({"models": [{"judge": "a", "name": "taught"}]}, "compun.models: two models are called 'taught'"),
        ({"models": [{"open_clip": "RN50"}]}, "open_clip without pretrained would have random weights"),
        ({"drawn": {"tested": 1}}, "compun.drawn.tested: Input should be greater than or equal to 6, got 1"),
        ({"captions": {"count": 5}}, "compun.captions: give file, address, or both"),
        (
            {"captions": {"file": "a.json", "count": 8}},
            "compun.captions.count: Input should be less than or equal to 7",
        ),
        ({"captions": {"address": "http://a/v1"}}, "compun.captions: give address and model together"),
        ({"captions": {"address": "a/v1", "model": "m"}}, "captions.address: not an address of a language model"),
        ({"human": {"kinds": ["looks"]}}, "compun.human.kinds.0: Input should be 'compound' or 'confusing'"),
    ],
)
def test_what_cannot_be_is_one_line(section: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError) as raised:
        load_config({"compun": section})
    assert said in str(raised.value) and "\n" not in str(raised.value)


@pytest.mark.parametrize("kind", ["captions", "descriptions"])
@pytest.mark.parametrize(
    "texts",
    [
        {"file": "a.json", "key": KEY},
        {"file": "a.json", "key": [KEY]},
        {"file": "a.json", "api_key": KEY},
        {"address": f"http://me:{KEY}@a/v1", "model": "m"},
        {"address": f"http://h:{KEY}/v1", "model": "m"},
        # Only who holds the key knows it for one.
        {"address": f"https://h/{KEY}/v1", "model": "m", "key": "OWN_KEY"},
        {"address": f"https://h/{KEY}/v1"},
        {"address": f"https://h/{KEY}/v1", "model": "m", "tries": 0},
    ],
)
def test_a_key_is_refused_and_not_shown(kind: str, texts: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OWN_KEY", KEY)
    with pytest.raises(UserError) as raised:
        load_config({"compun": {kind: texts}})
    assert f"compun.{kind}" in str(raised.value) and KEY not in str(raised.value)


def test_a_fault_elsewhere_does_not_show_an_address() -> None:
    texts = {"address": f"https://h/{KEY}/v1", "model": "m"}
    for section in ({"compounds": {}}, {"judge": {"epochs": 0}}):
        with pytest.raises(UserError) as raised:
            load_config({"compun": {"captions": texts, **section}})
        assert KEY not in str(raised.value)
