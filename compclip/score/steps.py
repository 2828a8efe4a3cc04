"""Settings that steps of other stages share."""

from typing import Annotated, Literal

from compclip.core.step import Key
from compclip.judge.config import JudgeConfig
from compclip.score.config import ScoreConfig

Device = Annotated[Literal["auto", "cpu", "cuda"], Key("judge.device"), JudgeConfig.model_fields["device"]]
Batch = Annotated[int, Key("score.batch"), ScoreConfig.model_fields["batch"]]
Bootstrap = Annotated[int, Key("score.bootstrap"), ScoreConfig.model_fields["bootstrap"]]
