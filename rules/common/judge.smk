# judge: its files, its GPUs, what starts its training.


def judge_files():
    """The files, outside installed packages, that decide what the judge starts from."""
    return of_project(*CONFIG.judge.files())


def training_resources(judge):
    """What a scheduler is asked for to train ``judge``; a machine without a GPU trains all the same.

    Of several hosts in the words of the plugin for Slurm, of which `mpi` leaves it to the step to start on each; GPUs
    are then of each host, as `gres`, for `gpu` counts those of all. The GPUs of one host must not be several hosts'.
    """
    gpus = 0 if judge.device == "cpu" else judge.gpus
    if judge.hosts == 1:
        return {"gpu": gpus, "nodes": 1} if judge.gpus > 1 else {"gpu": gpus}
    hosts = {"nodes": judge.hosts, "tasks": judge.hosts, "tasks_per_gpu": 0, "mpi": "srun"}
    return {**hosts, "gres": f"gpu:{gpus}"} if gpus else hosts


def training_threads(judge):
    """Of a host: each GPU has a process, and each process the config's."""
    return CONFIG.threads * judge.gpus


def judge_gpu():
    """How many GPUs a step asks for that runs the trained judge, or another model on its device: one is enough."""
    return 0 if CONFIG.judge.device == "cpu" else 1


def launch(judge):
    """What starts a training: several GPUs want a process each."""
    if judge.processes == 1:
        return "python -m"
    return f"python -m workflow_scripts.judge.launch --hosts {judge.hosts} --gpus {judge.gpus} --"
