# score: does the judge retrieve the caption?
# Needs the judge, the prompts and the generators' images. Gives a table of scores for each split
# that a generator serves, with a summary, and the health of each judge; for sketches the same
# scores by the oracle.


if GENERATORS:

    rule score_images:
        """Score the images of all generators by each judge, and measure the judge's health."""
        input:
            **inputs(
                "captions",
                "images",
                "files",
                "pairs",
                "ranking",
                "heldout",
                "splits",
                "swapped",
                "prompts",
            ),
            **inputs("variants"),
            manifests=of_each("generated/{generator}/manifest.parquet", generator=GENERATORS),
            made=of_each("generated/{generator}/images", generator=GENERATORS),
            judges=expand("<judged>/judges/{judge}", judge=CONFIG.judges, allow_missing=True),
        output:
            scores=directory(
                of_each("scores/{judge}/{generator}", judge=CONFIG.judges, generator=GENERATORS)
            ),
            health=of_each("health/{judge}.json", judge=CONFIG.judges),
        log:
            "<logs>/score/{composition}/score_images.log",
        benchmark:
            "<logs>/score/{composition}/score_images.benchmark.tsv"
        priority: 1  # the longest jobs of their stage begin first
        conda:
            "../envs/torch.yaml"
        threads: CONFIG.threads
        resources:
            **model_resources(
                CONFIG.judge.device, 8000, minutes=20 * len(CONFIG.judges) * (len(GENERATORS) + 1)
            ),
        params:
            **SCORING,
            **ENCODING,
            code=code("score.score_images"),
            serves=SERVED_SPLITS,
            judges=CONFIG.judges,
            as_asked=DRAWN_AS_ASKED,
            loss=undecisive(CONFIG.score.health),
        script:
            "../workflow_scripts/score/score_images.py"


if ORACLE_GENERATORS:

    rule score_oracle:
        """Score the drawn scenes of all generators by the oracle, which knows what was drawn."""
        input:
            **inputs("captions", "images", "splits", "swapped", "prompts", "variants"),
            scenes="<dataset>/scenes.parquet",
            facts="<dataset>/facts.parquet",
            manifests=of_each("generated/{generator}/manifest.parquet", generator=ORACLE_GENERATORS),
            drawn=of_each("generated/{generator}/scenes.parquet", generator=WITH_SCENES),
        output:
            scores=directory(of_each("scores/oracle/{generator}", generator=ORACLE_GENERATORS)),
        log:
            "<logs>/score/{composition}/score_oracle.log",
        benchmark:
            "<logs>/score/{composition}/score_oracle.benchmark.tsv"
        conda:
            "../envs/base.yaml"
        params:
            **SCORING,
            code=code("score.score_oracle"),
            serves={name: SERVED_SPLITS[name] for name in ORACLE_GENERATORS},
        script:
            "../workflow_scripts/score/score_oracle.py"


rule score_fid:
    """Compare a generator's images as a whole with the real images of each split."""
    input:
        **inputs("images", "files", "splits", "prompts"),
        manifest="<dataset>/{composition}/generated/{generator}/manifest.parquet",
        made="<dataset>/{composition}/generated/{generator}/images",
    output:
        fid="<dataset>/{composition}/fid/{generator}.json",
    log:
        "<logs>/score/{composition}/score_fid.{generator}.log",
    benchmark:
        "<logs>/score/{composition}/score_fid.{generator}.benchmark.tsv"
    group:
        "fid"
    conda:
        "../envs/fid.yaml"
    threads: CONFIG.threads
    resources:
        **model_resources(CONFIG.judge.device, 6000),
    params:
        **model_params(CONFIG.judge.device),
        code=code("score.score_fid"),
        serves=lambda wildcards: SERVED_SPLITS[wildcards.generator],
        weights=literal((CONFIG.score.fid or Fid()).weights),
        balance=section(CONFIG.score.balance),
        seed=CONFIG.seed,
        results=PLACE["results"],
    script:
        "../workflow_scripts/score/score_fid.py"
