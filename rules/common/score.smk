# score: options of the scores, their shards, who has which score.
from workflow_scripts.score.config import Fid


def served_splits(wildcards):
    """The splits for which the generator's kind makes images."""
    return list(kind_of(wildcards.generator).SPLITS)


def dominant_pairs(wildcards):
    """How many pairs of this composition balancing cuts."""
    dominant = CONFIG.score.balance.dominant
    return dominant.get(wildcards.composition, 1) if isinstance(dominant, dict) else dominant


def score_options(wildcards):
    """The options that scoring by any judge takes from the config."""
    score = CONFIG.score
    return (
        f"--prompt-rule {CONFIG.split.prompts} --train-on {CONFIG.judge.train_on} --candidates {score.candidates}"
        f" --ties {score.ties} --distractors {' '.join(score.distractors)} --chunks {score.chunks}"
        f" --chunking {score.chunking} --dominant {dominant_pairs(wildcards)} --ratio {score.balance.ratio}"
        f" --seed {CONFIG.seed}"
    )


def image_shards(wildcards):
    """The shards of a generator's embeddings; none where scoring embeds its images itself."""
    shards = CONFIG.score.shards
    folder = f"{RESULTS}/{DATASET}/{wildcards.composition}/embeddings/{wildcards.generator}"
    return [f"{folder}/{shard}-of-{shards}.parquet" for shard in range(1, shards + 1)] if shards > 1 else []


def fid_options(wildcards):
    """The options of the Fréchet distance, as published where the config has none."""
    fid, score = CONFIG.score.fid or Fid(), CONFIG.score
    return [
        *("--number", fid.images, "--weights", fid.weights, "--dominant", dominant_pairs(wildcards)),
        *("--ratio", score.balance.ratio, "--seed", CONFIG.seed),
    ]


def fid_generators():
    """The generators whose Fréchet distance the config asks for: all or none."""
    return list(GENERATORS) if CONFIG.score.fid else []


def all_fids():
    """The Fréchet distances that the config asks for."""
    place = [f"{RESULTS}/{DATASET}/{composition}/fid" for composition in CONFIG.compositions]
    return [f"{folder}/{name}.json" for folder in place for name in fid_generators()]


def oracle_generators():
    """The generators whose scenes are known: of sketches, those that say what they drew or show the real images."""
    if not {"scenes", "facts"} <= set(source_table_names()):
        return []
    # A kind that reads nothing but the images makes none of its own.
    return [
        name
        for name in GENERATORS
        if getattr(kind_of(name), "SCENES", False) or getattr(kind_of(name), "TABLES", ()) == ("images",)
    ]


def drawn_scenes(wildcards):
    """What the generator says that it drew."""
    place = f"{RESULTS}/{DATASET}/{wildcards.composition}/generated/{wildcards.generator}"
    return [f"{place}/scenes.parquet"] if getattr(kind_of(wildcards.generator), "SCENES", False) else []


def score_page_reads():
    """Return what the section of the judge reads, and what the oracle scored."""
    oracle = [f"scores_oracle/{name}" for name in oracle_generators()]
    return of_compositions("judge", "adjective_choice.json", *oracle)
