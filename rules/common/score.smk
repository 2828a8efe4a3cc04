# score: which generators have which score, and the settings that rules share.
from compclip.score.config import Fid, Scoring

# Params of the rules that score generators, and of those that encode with a judge.
SCORING = dict(**PLACE, **SEEN, scoring=section(CONFIG.score, Scoring), seed=CONFIG.seed, prompts=CONFIG.split.prompts)
ENCODING = dict(batch=CONFIG.score.batch, **model_params(CONFIG.judge.device))


def served_splits(generators):
    """The test splits for which each generator makes images."""
    return {name: list(serves(kind_of(name))) for name in generators}


def of_generators(path, generators):
    """The same path for each generator."""
    return expand(path, generator=generators, allow_missing=True)


def fid_generators():
    """The generators whose Fréchet distance is measured: all or none."""
    return list(GENERATORS) if CONFIG.score.fid else []


def all_fids():
    """The Fréchet distances that the config asks for, over all compositions."""
    folders = [f"{RESULTS}/{DATASET}/{composition}/fid" for composition in CONFIG.compositions]
    return [f"{folder}/{name}.json" for folder in folders for name in fid_generators()]


def oracle_generators():
    """The generators whose scenes are known: those that record what they draw, and those that show real sketches."""
    if not {"scenes", "facts"} <= set(SOURCE_TABLES):
        return []
    # A kind that reads only the images draws none.
    return [
        name for name in GENERATORS if getattr(kind_of(name), "SCENES", False) or reads(kind_of(name)) == ("images",)
    ]


def score_page_reads():
    """Return what the section of the judge reads, and what the oracle scored."""
    oracle = [f"scores/oracle/{name}" for name in oracle_generators()]
    judges = [f"judges/{judge}" for judge in CONFIG.judges]
    return of_compositions(*judges, *health_files(), *oracle)


def health_files():
    """Return the health of each judge, below a composition's folder."""
    return [f"health/{judge}.json" for judge in CONFIG.judges]


def drawn_as_asked(file):
    """Return a file of the first generator that draws what is asked, on which health is measured too."""
    names = [name for name, generator in GENERATORS.items() if generator.kind == "faithful"]
    return next((f"<dataset>/{{composition}}/generated/{name}/{file}" for name in names), [])
