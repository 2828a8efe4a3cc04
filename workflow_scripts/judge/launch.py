"""The command that starts a training: torchrun for several GPUs, on each node of a Slurm job for several hosts."""

PORT = "${MASTER_PORT:-$((10000 + SLURM_JOB_ID % 20000))}"
ADDRESS = '${MASTER_ADDR:-$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)}'
JOB = "${SLURM_JOB_ID:?several hosts need a Slurm job; elsewhere run torchrun on each host (docs/cluster.md)}"


def launch_command(gpus: int, hosts: int) -> str:
    """Return the beginning of a shell command, which the module and its options follow.

    The hosts meet at the first node of the Slurm job; if one fails, srun ends all.
    """
    if hosts == 1:
        return "python -m" if gpus == 1 else f"torchrun --standalone --nproc-per-node={gpus} -m --"
    return (
        f": {JOB}; srun --nodes={hosts} --ntasks={hosts} --ntasks-per-node=1 --overlap --cpu-bind=none --mpi=none"
        """ --kill-on-bad-exit=1 bash -c 'exec torchrun --node-rank="$SLURM_NODEID" "$@"' torchrun"""
        f" --nnodes={hosts} --nproc-per-node={gpus} --master-addr={ADDRESS} --master-port={PORT} -m --"
    )
