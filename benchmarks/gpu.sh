#!/usr/bin/env bash
# Measures what needs a GPU, in one call of less than eight minutes: a step and a training of the paper's judge, scoring, and the
# tests of `make test-gpu`. Needs 13 GB of disk, a checkout, and Python 3.11 or newer (PYTHON=…) with
#   torch with CUDA, torchvision, timm, numpy, pandas, pyarrow, numba, scipy, pillow, simplejpeg, pydantic, pydantic-settings, pyyaml,
#   open_clip_torch, ftfy, safetensors, huggingface_hub, tqdm; for the tests also pytest, hypothesis, filelock, snakemake.
# Without a GPU, for a trial: IMAGES=64 EPOCHS=2 TRAINED=64 bash benchmarks/gpu.sh
set -uo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
export PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}" PYTHONUNBUFFERED=1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0
# part SECONDS COMMAND...: a part that is too slow or fails does not stop the others.
part() {
  local limit=$1 begun=$SECONDS
  shift
  timeout "$limit" "$@" || { echo "failed or stopped after $((SECONDS - begun)) s: $*"; failed=1; }
}
part 60 "$python" -m benchmarks.gpu files "$folder" --images "${IMAGES:-100000}"
part 130 "$python" -m benchmarks.gpu train "$folder" --images "${TRAINED:-9000}" --epochs "${EPOCHS:-100}"
part 150 "$python" -m benchmarks.gpu score "$folder" --images "${IMAGES:-100000}"
COMPCLIP_GPU=1 part 130 "$python" -m pytest tests/gpu -p no:cacheprovider
echo "all: $SECONDS s"
exit "$failed"
