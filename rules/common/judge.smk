# judge: what its trainings share, its GPUs, and the command that starts a training.
from compclip.judge.config import Training as JudgeTraining


def training_params(judge):
    """The params of every training apart from its code, settings and seed; several GPUs have a process each."""
    return {
        "halves": CONFIG.seeds.halves,
        "threads": CONFIG.threads,
        "cache": undecisive(CONFIG.cache),
        "results": RESULTS,
        "processes": judge.gpus,
    }


def training_resources(judge):
    """The GPUs of a training, on one host; a machine without a GPU trains too."""
    gpus = 0 if judge.device == "cpu" else judge.gpus
    return {"gpu": gpus, "nodes": 1} if judge.gpus > 1 else {"gpu": gpus}


def gpu_of(device):
    """The number of GPUs of a step that runs a model on this device: one is enough, and without one the CPU runs it."""
    return 0 if device == "cpu" else 1
