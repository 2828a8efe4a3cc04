# release: everything that is needed to score and submit a model.
# Needs the splits, the prompts, the judges and the scores of the control generators. Gives a
# folder, which is made only on demand: `make release`.

# The artifacts of the compositions.
RELEASED = of_compositions(
    "prompts.parquet", "prompts.jsonl", "variants.parquet", "variants.json", "swapped.parquet"
)
RELEASED += of_compositions(
    "splits.parquet", "ranking.parquet", "heldout.json", "divergence.parquet", "audit.json"
)

if not CAPTIONS_ALONE:

    rule make_release:
        """Write a release: a versioned folder with which models can be scored and submitted."""
        input:
            captions="<dataset>/captions.parquet",
            images="<dataset>/images.parquet",
            files="<dataset>/images",
            artifacts=RELEASED,
            judges=JUDGE_FOLDERS,
            healths=HEALTHS,
            scores=SCORES,
            templates=page_templates("release"),
        output:
            release=directory("<results>/release"),
        log:
            "<logs>/release/make_release.log",
        benchmark:
            "<logs>/release/make_release.benchmark.tsv"
        conda:
            "../envs/torch.yaml"
        threads: CONFIG.threads
        resources:
            **model_resources(CONFIG.judge.device, 8000),
        params:
            **READABLE,
            **SEEN,
            **ENCODING,
            code=code("release.make_release"),
            release=section(CONFIG.release),
            scoring=SCORING["scoring"],
            controls=CONTROLS,
            prompts=CONFIG.split.prompts,
            seed=CONFIG.seed,
        script:
            "../workflow_scripts/release/make_release.py"
