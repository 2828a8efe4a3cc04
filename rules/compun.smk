# compun: compound nouns.
# Needs a list of compounds with three images of each, the user's or drawn ones. Gives each model's
# choice among the three, by every prompt, accuracies and tests, and the same tasks for people.
# Included if the config has compun.

if plan.compun.is_drawn:

    rule draw_compounds:
        """Draw compounds, their images and texts about them, and training pictures for small
        CLIPs.
        """
        output:
            listed="<dataset>/compun/drawn/list.csv",
            images=directory("<dataset>/compun/drawn/images"),
            captions="<dataset>/compun/drawn/captions.json",
            descriptions="<dataset>/compun/drawn/descriptions.json",
            pictures=directory("<dataset>/compun/drawn/training/images"),
            training=plan.compun.training_tables,
        log:
            "<logs>/compun/compun/draw_compounds.log",
        conda:
            "../envs/base.yaml"
        params:
            code=code("compun.draw_compounds"),
            drawn=section(plan.compun.config.drawn),
            seed=plan.config.seed,
            results=plan.results_param,
        script:
            "../workflow_scripts/compun/draw_compounds.py"

    rule train_judge_for_compun:
        """Train a small CLIP on drawn pictures, with the tested compounds or without, as stage
        judge does.
        """
        input:
            captions="<dataset>/compun/drawn/training/captions.parquet",
            images="<dataset>/compun/drawn/training/images.parquet",
            folder="<dataset>/compun/drawn/training/images",
            splits=["<dataset>/compun/drawn/training/{training}.parquet"],
            pretraining=[],
        output:
            judge=directory("<dataset>/compun/judges/{training}"),
        log:
            "<logs>/compun/compun/train_judge_for_compun_{training}.log",
        benchmark:
            "<logs>/compun/compun/train_judge_for_compun_{training}.benchmark.tsv"
        conda:
            "../envs/torch.yaml"
        threads: plan.config.threads
        resources:
            **plan.model_resources(plan.compun.config.device, 4000, minutes=120),
        params:
            **plan.training_params(plan.compun.config.judge),
            code=code("judge.train_judge"),
            settings=section(plan.compun.config.judge),
            seed=plan.config.seed,
        script:
            "../workflow_scripts/judge/train_judge.py"


rule load_compounds:
    """Read the compounds and the three images of each; count the incomplete ones."""
    input:
        file=plan.compun.listed,
        source=plan.compun.images,
    output:
        compounds="<dataset>/compun/compounds.parquet",
        images="<dataset>/compun/images.parquet",
        files=directory("<dataset>/compun/images"),
        summary="<dataset>/compun/compounds.json",
    log:
        "<logs>/compun/compun/load_compounds.log",
    conda:
        "../envs/base.yaml"
    params:
        code=code("compun.load_compounds"),
        contents=plan.contents(*plan.compun.users_compounds),
    script:
        "../workflow_scripts/compun/load_compounds.py"


rule classify:
    """Ask every model, by every prompt, which of its three images shows a compound."""
    input:
        **plan.compun.compounds,
        captions=plan.compun.captions,
        descriptions=plan.compun.descriptions,
        files=plan.compun.model_files,
    output:
        choices=directory("<dataset>/compun/choices"),
    log:
        "<logs>/compun/compun/classify.log",
    benchmark:
        "<logs>/compun/compun/classify.benchmark.tsv"
    conda:
        "../envs/torch.yaml"
    threads: plan.config.threads
    resources:
        **plan.model_resources(plan.compun.config.device, 8000, minutes=120),
    params:
        **plan.model_params(plan.compun.config.device),
        code=code("compun.classify"),
        contents=plan.contents(*plan.compun.users_texts, *plan.compun.users_models),
        models=plan.compun.models,
    script:
        "../workflow_scripts/compun/classify.py"


rule analyze_choices:
    """Compute how often each model is right, by prompt, and test the differences."""
    input:
        compounds="<dataset>/compun/compounds.parquet",
        choices="<dataset>/compun/choices",
        people=branch(plan.compun.answers, then="<dataset>/compun/human/people.json"),
    output:
        analysis="<dataset>/compun/analysis.csv",
    log:
        "<logs>/compun/compun/analyze_choices.log",
    conda:
        "../envs/base.yaml"
    params:
        code=code("compun.analyze_choices"),
        seed=plan.config.seed,
    script:
        "../workflow_scripts/compun/analyze_choices.py"


if plan.compun.config.human:

    rule sample_compun_tasks:
        """Make a task for people for each compound, and write the tasks as Label Studio
        projects.
        """
        input:
            **plan.compun.compounds,
            template=packaged("compclip/human/templates/label_studio.xml.j2"),
        output:
            tasks="<dataset>/compun/human/tasks.parquet",
            pictures=directory("<dataset>/compun/human/pictures"),
            label_studio=directory("<dataset>/compun/human/label_studio"),
            summary="<dataset>/compun/human/tasks.json",
        log:
            "<logs>/compun/compun/sample_compun_tasks.log",
        conda:
            "../envs/base.yaml"
        params:
            code=code("compun.sample_compun_tasks"),
            consent=literal(plan.compun.config.human.consent),
            seed=plan.config.seed,
        script:
            "../workflow_scripts/compun/sample_compun_tasks.py"


if plan.compun.answers:

    rule analyze_people:
        """Compute how often people are right, in total and by compound, and how much they agree."""
        input:
            tasks="<dataset>/compun/human/tasks.parquet",
            answers=plan.compun.answers,
        output:
            people="<dataset>/compun/human/people.json",
            by_compound="<dataset>/compun/human/items.csv",
            by_worker="<dataset>/compun/human/workers.csv",
        log:
            "<logs>/compun/compun/analyze_people.log",
        conda:
            "../envs/base.yaml"
        params:
            code=code("compun.analyze_people"),
            keep=plan.compun.config.human.keep,
            seed=plan.config.seed,
        script:
            "../workflow_scripts/compun/analyze_people.py"


rule draw_compun:
    """Draw how often each model is right about compound nouns, next to the paper's figures, and
    write the page.
    """
    input:
        plan.compun.page_inputs,
        analysis="<dataset>/compun/analysis.csv",
        templates=page_templates("compun"),
    output:
        **{
            name: report(
                path,
                caption=caption("compun"),
                category="Compound nouns",
                labels={"figure": name},
            )
            for name, path in plan.compun.figures.items()
        },
        text="<results>/compun.md",
        page=report(
            "<results>/compun.html",
            caption=caption("compun"),
            category="Compound nouns",
            labels={"table": "the page to read"},
        ),
    log:
        "<logs>/compun/draw_compun.log",
    conda:
        "../envs/base.yaml"
    params:
        **plan.location_params,
        code=code("compun.draw_compun"),
        settings=plan.report.shown_settings("compun"),
    script:
        "../workflow_scripts/compun/draw_compun.py"
