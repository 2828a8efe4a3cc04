# targets: what stages of dvc.yaml make, by names that do not depend on the config's generators and
# judges.


rule:
    name:
        "judges"
    input:
        plan.judge.folders,


for COMPOSITION in plan.compositions:

    rule:
        name:
            f"images_of_{COMPOSITION}"
        input:
            plan.generate.manifests_of(COMPOSITION),

    rule:
        name:
            f"scores_of_{COMPOSITION}"
        input:
            plan.score.of_composition(COMPOSITION),
