# judge: its files, its GPUs, the command that starts its training.

from workflow_scripts.judge.launch import launch_command


def pretraining_tables():
    """What the data set's source offers to judges beside its own images."""
    return [f"{RESULTS}/{DATASET}/pretraining.parquet"] if "pretraining" in source_table_names() else []


def hard_negatives():
    """The copies of captions that no image may retrieve, if the judges learn from some."""
    return ["<dataset>/{composition}/negatives.parquet"] if CONFIG.judge.hard_negatives else []


def judge_files(wildcards):
    """The files, outside installed packages, that decide the judge's initial weights."""
    return of_project(*config_of(wildcards).judge.files())


def judge_contents(wildcards):
    """A fingerprint of these files."""
    return contents_of(*config_of(wildcards).judge.files())


def training_resources(judge):
    """The GPUs and hosts of a training; a machine without a GPU trains too.

    Several hosts are asked for as Snakemake's plugin for Slurm does: `mpi` leaves it to the step to start on each, and
    `gres` counts the GPUs of each host (`gpu` counts all, and they need not be spread evenly).
    """
    gpus = 0 if judge.device == "cpu" else judge.gpus
    if judge.hosts == 1:
        return {"gpu": gpus, "nodes": 1} if judge.gpus > 1 else {"gpu": gpus}
    hosts = {"nodes": judge.hosts, "tasks": judge.hosts, "tasks_per_gpu": 0, "mpi": "srun"}
    return {**hosts, "gres": f"gpu:{gpus}"} if gpus else hosts


def training_threads(judge):
    """The threads of a host: each GPU has a process with the config's number."""
    return CONFIG.threads * judge.gpus


def gpu_of(device):
    """The number of GPUs of a step that runs a model on this device: one is enough, and without one the CPU runs it."""
    return 0 if device == "cpu" else 1


def launch(judge):
    """The beginning of the shell command of a training."""
    return launch_command(judge.gpus, judge.hosts)
