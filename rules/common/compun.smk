# compun: its compounds, texts and models, what is shown.
from workflow_scripts.compun.drawn.world import TRAININGS

COMPUN_FIGURES = ("accuracy", "examples", "gains", "kinds")


def compun_folder():
    """Where all of it goes."""
    return f"{RESULTS}/{DATASET}/compun"


def drawn_compounds():
    """Whether the compounds are drawn, and small CLIPs learn from pictures."""
    return CONFIG.compun.compounds is None


def compound_files(wildcards):
    """The list of compounds; of drawn ones the images too."""
    if drawn_compounds():
        return [f"{compun_folder()}/drawn/{name}" for name in ("list.csv", "images")]
    return of_project(CONFIG.compun.compounds.file) if CONFIG.compun.compounds.file else []


def compound_options(wildcards):
    """The list of compounds and the places of their images."""
    if drawn_compounds():
        listed, images = map(on_disk, compound_files(wildcards))
        return ["--file", listed, "--images", images]
    wanted = CONFIG.compun.compounds
    images = [wanted.images] if isinstance(wanted.images, str) else wanted.images
    return [
        *(["--file", wanted.file] if wanted.file else []),
        *("--images", *images),
        # The names in the benchmark's own archive are the authority; of any other, the list selects.
        *(["--take-unlisted"] if "compun" in images else []),
        *(["--sha256", wanted.sha256] if wanted.sha256 else []),
    ]


def compound_contents(wildcards):
    """A text that changes when the user's list or images do."""
    from workflow_scripts.compun.load_compounds import fingerprint

    wanted = CONFIG.compun.compounds
    return fingerprint(wanted.file, wanted.images) if wanted else ""


def compun_texts():
    """The kinds of texts of compounds that there are."""
    wanted = {"captions": CONFIG.compun.captions, "descriptions": CONFIG.compun.descriptions}
    return [kind for kind, texts in wanted.items() if texts or drawn_compounds()]


def texts_wanted(kind):
    """Where the texts of one kind come from; None: from the drawing."""
    return CONFIG.compun.captions if kind == "captions" else CONFIG.compun.descriptions


def text_files(wildcards):
    """The file that holds such texts."""
    wanted = texts_wanted(wildcards.kind)
    if wanted is None:
        return [f"{compun_folder()}/drawn/{wildcards.kind}.json"]
    return of_project(wanted.file) if wanted.file else []


def text_options(wildcards):
    """Where a kind of texts comes from: a file, a language model. Of its key, the variable's name alone."""
    wanted = texts_wanted(wildcards.kind)
    if wanted is None:
        return ["--file", *map(on_disk, text_files(wildcards)), "--count", 1]
    file = [part for file in text_files(wildcards) for part in ("--file", file)]
    if wanted.address is None:
        return [*file, "--count", wanted.count]
    asked = {
        "address": wanted.address, "model": wanted.model, "key": wanted.key, "tries": wanted.tries,
        "at-once": wanted.at_once, "per-minute": wanted.per_minute, "timeout": wanted.timeout,
    }  # fmt: skip
    sent = {"temperature": wanted.temperature, "top-p": wanted.top_p}
    options = [*file, "--count", wanted.count]
    options += [part for name, value in asked.items() if value is not None for part in (f"--{name}", value)]
    return options + [
        part for name, value in sent.items() for part in (f"--{name}", *([] if value is None else [value]))
    ]


def small_clips(wildcards):
    """The folders of the CLIPs that learn from drawn pictures, by what they are called."""
    names = TRAININGS if drawn_compounds() else ()
    return {name: f"{compun_folder()}/judges/{name}" for name in names}


def asked_models(wildcards):
    """All models, as the JSON that their step reads."""
    own = [{"name": name, "judge": on_disk(folder)} for name, folder in small_clips(wildcards).items()]
    return json.dumps(own + [model.model_dump(exclude_none=True) for model in CONFIG.compun.models])


def model_files(wildcards):
    """What models are made of here: the CLIPs that learn from drawn pictures, files and folders of the user's."""
    return [
        *small_clips(wildcards).values(),
        *of_project(*(str(path) for model in CONFIG.compun.models for path in model.places())),
    ]


def text_tables(wildcards):
    """The files of all texts."""
    return [f"{compun_folder()}/{kind}.json" for kind in compun_texts()]


def text_table_options(wildcards):
    """The options that name them."""
    return [part for kind in compun_texts() for part in (f"--{kind}", on_disk(f"{compun_folder()}/{kind}.json"))]


def compun_gpus():
    """How many GPUs a scheduler is asked for; a machine without one does all the same."""
    return 0 if CONFIG.compun.device == "cpu" else 1


def people_answered():
    """What people say of the compounds, where the config names their answers."""
    asked = CONFIG.compun.human
    return [f"{compun_folder()}/human/people.json"] if asked and asked.answers else []


def people_options(wildcards):
    """The options of a sample of tasks for people."""
    asked = CONFIG.compun.human
    return [
        *("--kinds", *asked.kinds, "--batch", asked.batch, "--gold", asked.gold, "--repeats", asked.repeats),
        *("--workers", asked.workers, "--pay", asked.pay, "--seconds", asked.seconds),
    ]


def compun_figures():
    """The figures of compound nouns, by the names that their rule gives them."""
    return {
        name: report(
            f"{RESULTS}/figures/{DATASET}_compun_{name}.svg",
            caption="../workflow_scripts/report/captions/compun.rst",
            category="Compound nouns",
            labels={"figure": name},
        )
        for name in COMPUN_FIGURES
    }


def compun_page_reads():
    """What a page that tells of compound nouns reads."""
    if CONFIG.compun is None:
        return []
    figures = [f"{RESULTS}/figures/{DATASET}_compun_{name}.svg" for name in COMPUN_FIGURES]
    read = ["analysis", "choices", "compounds.parquet", "images.parquet", "images"]
    read += ["drawn/drawn.json"] if drawn_compounds() else []
    return [*figures, *(f"{compun_folder()}/{name}" for name in read)]


def compun_outputs():
    """What asking models of compound nouns is for, and pages to ask people where the config has them."""
    if CONFIG.compun is None:
        return []
    asked = [f"{compun_folder()}/human/pages"] if CONFIG.compun.human else []
    return [f"{RESULTS}/compun.md", f"{RESULTS}/compun.html", *asked]
