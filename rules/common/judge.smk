# judge: its files, its GPUs, the command that starts its training.

from workflow_scripts.judge.launch import launch_command


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


def gpu_of(device):
    """The number of GPUs of a step that runs a model on this device: one is enough, and without one the CPU runs it."""
    return 0 if device == "cpu" else 1
