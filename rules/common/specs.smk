# specs: its base, its long captions, what is shown.


def specs_folder(wildcards):
    """Where the tables of one seed go."""
    return f"{RESULTS}/{DATASET}/specs/{wildcards.seed}"


def specs_gpu():
    """How many GPUs measuring asks a scheduler for; a machine without one does all the same."""
    return 0 if CONFIG.specs.base.device == "cpu" else 1


def stretched_base(wildcards):
    """The judge that is stretched, or the files of the user's that it is made from."""
    base = CONFIG.specs.base
    return [f"{specs_folder(wildcards)}/base"] if base.epochs else of_project(*base.files())


def stretch_options(wildcards):
    """What is stretched: the judge that was trained, or a pretrained model."""
    base = CONFIG.specs.base
    if base.epochs:
        return ["--judge", on_disk(f"{specs_folder(wildcards)}/base")]
    return ["--judge", base.model, *(["--pretrained", base.pretrained] if base.pretrained else [])]


def long_examples(wildcards):
    """The long captions to train on."""
    data = CONFIG.specs.data
    return local(data.examples) if data else f"{specs_folder(wildcards)}/examples.parquet"


def long_steps(wildcards):
    """The growing captions to test on."""
    data = CONFIG.specs.data
    return local(data.increments) if data else f"{specs_folder(wildcards)}/steps.parquet"


def long_images(wildcards):
    """The folder that the paths of the images to train on are relative to."""
    data = CONFIG.specs.data
    return local(data.images or folder_beside(data.examples)) if data else f"{RESULTS}/{DATASET}/images"


def step_images(wildcards):
    """The same of the images to test on."""
    data = CONFIG.specs.data
    return local(data.increment_images or folder_beside(data.increments)) if data else long_images(wildcards)


def folder_beside(path):
    """A folder itself, or that of a file."""
    return path if os.path.isdir(path) else os.path.dirname(path) or "."


def specs_results(wildcards):
    """What was measured, of every seed."""
    return [f"{RESULTS}/{DATASET}/specs/{seed}/intrinsic.json" for seed in CONFIG.specs.seeds]


def specs_outputs():
    """What a training with long captions is for."""
    return [f"{RESULTS}/specs.csv", f"{RESULTS}/specs.html"] if CONFIG.specs else []


def specs_figures():
    """The figures of long captions, by the names that their rule gives them."""
    return {
        name: report(
            f"{RESULTS}/figures/{DATASET}_specs_{name}.svg",
            caption="../workflow_scripts/report/captions/specs.rst",
            category="Long captions",
            labels={"figure": name},
        )
        for name in ("measures", "gains", "growing")
    }


def specs_page_reads():
    """What a page that tells of long captions reads."""
    if CONFIG.specs is None:
        return []
    place = f"{RESULTS}/{DATASET}/specs/{CONFIG.specs.seeds[0]}"
    figures = [f"{RESULTS}/figures/{DATASET}_specs_{name}.svg" for name in ("measures", "gains", "growing")]
    return [f"{RESULTS}/specs.csv", *figures, *(f"{place}/{name}" for name in ("specs", "stretched", "intrinsic.json"))]


def check_specs():
    """Refuse to describe images of which nothing is known."""
    if CONFIG.specs and CONFIG.specs.data is None and "scenes" not in source_table_names():
        raise WorkflowError(
            f"specs.data: null describes sketches, and dataset.source is {CONFIG.dataset.source}: name long captions"
        )


check_specs()
