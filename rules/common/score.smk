# score: the scores of each generator, and params that rules share.
from compclip.score.config import Fid, Scoring

# Params of the rules that score generators, and of the rules that encode with a judge.
SCORING = dict(
    **PLACE,
    **SEEN,
    scoring=section(CONFIG.score, Scoring),
    seed=CONFIG.seed,
    prompts=CONFIG.split.prompts,
)
ENCODING = dict(batch=CONFIG.score.batch, **model_params(CONFIG.judge.device))
# Generators whose Fréchet distance is measured.
FID_GENERATORS = list(GENERATORS) if CONFIG.score.fid else []
FIDS = of_compositions(*(f"fid/{name}.json" for name in FID_GENERATORS))
# The test splits for which each generator makes images.
SERVED_SPLITS = {name: list(kind_of(name).SPLITS) for name in GENERATORS}
# Generators whose scenes are known: they record them, or show real sketches, since they read only
# images.
ORACLE_GENERATORS = [
    name for name in GENERATORS if name in WITH_SCENES or kind_of(name).TABLES == ("images",)
]
ORACLE_GENERATORS = ORACLE_GENERATORS if {"scenes", "facts"} <= set(SOURCE_TABLES) else []
SCORES = of_compositions(
    *(f"scores/{judge}/{name}" for judge in CONFIG.judges for name in GENERATORS)
)
ORACLE_SCORES = of_compositions(*(f"scores/oracle/{name}" for name in ORACLE_GENERATORS))
HEALTHS = of_compositions(*(f"health/{judge}.json" for judge in CONFIG.judges))
# The first generator that draws what is asked, on which health is also measured; None if there is
# none.
DRAWN_AS_ASKED = next(
    (name for name, generator in GENERATORS.items() if generator.kind == "faithful"), None
)
# The inputs of the page's section on the judge.
JUDGES_SHOWN = HEALTHS + JUDGE_FOLDERS


def of_each(path, **names):
    """A path of a composition, for each of the names, such as ``generator=GENERATORS``."""
    return expand(f"<dataset>/{{composition}}/{path}", **names, allow_missing=True)
