# judge: params and resources of steps that train or run a model.
from compclip.judge.config import Training as JudgeTraining

# The folders of all judges.
JUDGE_FOLDERS = expand(
    f"{JUDGED}/judges/{{judge}}", judge=CONFIG.judges, composition=CONFIG.compositions
)
JUDGE_FOLDERS = list(dict.fromkeys(JUDGE_FOLDERS))


def judge_of(wildcards):
    """The settings of a judge: in the path of its weights, {composition} is replaced."""
    return CONFIG.judge.of(wildcards.get("composition", ""))


def of_judged(*names):
    """These files of all compositions of a judge."""
    compositions = CONFIG.compositions if CONFIG.judge.share else ["{composition}"]
    return [f"{DATA}/{composition}/{name}" for composition in compositions for name in names]


def training_params(judge):
    """The params of every training except code, settings and seed; each of several GPUs has a
    process.
    """
    params = {"processes": judge.gpus, "threads": CONFIG.threads, "halves": CONFIG.seeds.halves}
    return params | {"results": PLACE["results"], "cache": undecisive(CONFIG.cache)}


def training_resources(judge):
    """The resources of a training, on one host; a machine without a GPU trains too."""
    gpus = 0 if judge.device == "cpu" else judge.gpus
    resources = {"gpu": gpus, "nodes": 1} if judge.gpus > 1 else {"gpu": gpus}
    return resources | {
        "mem_mb": growing(8000 * judge.gpus),
        "runtime": growing(720),
        "torch": TORCH_SLOTS,
    }


def gpu_of(device):
    """The number of GPUs of a step that runs a model on this device: one, or none if there is no
    GPU.
    """
    return 0 if device == "cpu" else 1


def model_params(device):
    """The params of a step that runs a model on this device."""
    return {"threads": CONFIG.threads, "device": device, "cache": undecisive(CONFIG.cache)}


def model_resources(device, memory, minutes=60):
    """The resources of a step that runs a model on this device, with ``memory`` in MB."""
    return {
        "mem_mb": growing(memory),
        "runtime": growing(minutes),
        "gpu": gpu_of(device),
        "torch": TORCH_SLOTS,
    }
