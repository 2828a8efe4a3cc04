# targets: what stages of dvc.yaml make, by names that do not depend on the config's generators and
# judges.


rule:
    name:
        "judges"
    input:
        JUDGE_FOLDERS,


for COMPOSITION in CONFIG.compositions:

    rule:
        name:
            f"images_of_{COMPOSITION}"
        input:
            expand(
                f"{DATA}/{COMPOSITION}/generated/{{generator}}/manifest.parquet",
                generator=GENERATORS,
            ),

    rule:
        name:
            f"scores_of_{COMPOSITION}"
        input:
            [
                file
                for file in HEALTHS + SCORES + ORACLE_SCORES
                if file.startswith(f"{DATA}/{COMPOSITION}/")
            ],
