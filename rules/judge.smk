# judge: a CLIP fine-tuned on these captions.
# Needs captions, images and splits. Gives a folder with the judge's weights, its model config and its training's log.


rule train_judge:
    """Train the judge on the images that it may see, or take a pretrained one as it is."""
    input:
        captions="<dataset>/captions.parquet",
        images="<dataset>/images.parquet",
        folder="<dataset>/images",
        splits="<dataset>/{composition}/splits.parquet",
        files=judge_files,
        # Training waits for the audit, and until it is printed what the splits can measure.
        after=[ancient("<dataset>/{composition}/accepted.json"), ancient("<dataset>/{composition}/widths.json")],
    output:
        judge=directory("<dataset>/{composition}/judge"),
    log:
        "<logs>/judge/{composition}/train_judge.log",
    benchmark:
        "<logs>/judge/{composition}/train_judge.benchmark.tsv"
    conda:
        "../envs/torch.yaml"
    threads: training_threads(CONFIG.judge)
    resources:
        **training_resources(CONFIG.judge),
        mem_mb=growing(8000 * CONFIG.judge.gpus),
        runtime=growing(720),
        torch=torch_slots(),
    params:
        **step("judge.train_judge", also={"contents": judge_contents}),
        launch=launch(CONFIG.judge),
    shell:
        "{params.launch} {params.step} --log {log:q}"
