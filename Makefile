# make run, make test, make docs; make help lists all. Each installs what it needs into .venv.

SHELL := bash
PYTHON ?= python3
CONFIG ?= config.yaml
CORES ?= $(shell env -u OMP_NUM_THREADS nproc 2>/dev/null || sysctl -n hw.ncpu)
BIN := .venv/bin
export PATH := $(CURDIR)/$(BIN):$(PATH)

# Refuse misspelled variables, which make would ignore: config=mine.yaml would run config.yaml.
VARIABLES := BASE CONFIG CORES FLIPS INPUTS MOMENTS PYTHON REAL SEED SETTINGS
GIVEN := $(foreach name,$(.VARIABLES),$(if $(filter command,$(firstword $(origin $(name)))),$(name)))
ifneq ($(filter-out $(VARIABLES),$(GIVEN)),)
$(error unknown variable $(firstword $(filter-out $(VARIABLES),$(GIVEN))); known: $(VARIABLES))
endif

.PHONY: run help check paper specs compun doses docs test test-all test-slow test-cluster test-gpu explore mutate lint bench judges schedule styles mixtures intervals scale faults forge reference \
  picture readme release report unlock verify lock

# Not in parallel: two pips in one .venv would disturb each other.
.NOTPARALLEL:

PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# $(call install,GROUP): all packages that a group of pyproject.toml needs, by the hashes of lock.txt. Builds are not
# isolated, because pip would download their tools without hashes. lock.txt has no hashes for other platforms.
ifeq ($(shell uname -sm),Linux x86_64)
LOCKED = awk -v group=$(1) '/^\# / { keep = index(" " $$0 ",", " " group ",") } keep' lock.txt > .venv/$(1).txt
install = $(LOCKED) && $(PIP) --require-hashes --no-deps --no-build-isolation --requirement .venv/$(1).txt
else
install = $(PIP) $(if $(filter build,$(1)),pip==26.3,--group $(1))
endif

# The default run needs the least; other configs get the packages for all of them.
NEEDED := .venv/$(if $(filter config.yaml,$(CONFIG)),run,more)

.venv/run: pyproject.toml lock.txt
	@$(PYTHON) -c 'import sys; sys.exit("compclip needs Python 3.11 or newer") if sys.version_info < (3, 11) else None'
	@echo "Making .venv: about 2 GB, a few minutes."
	$(PYTHON) -m venv .venv
	$(call install,build)
	$(call install,run)
	$(PIP) --group torch
	@touch $@

# Further groups of pyproject.toml, which not every run needs.
.venv/more .venv/cluster .venv/test .venv/maintainer: .venv/%: .venv/run
	$(call install,$*)
	@touch $@

# Run a config (CONFIG=config.yaml) and print its scores.
run: $(NEEDED)
	@python -m compclip run --config '$(CONFIG)' --cores $(CORES)

# List all targets, with the first sentence above each.
help:
	@awk '/^# / { text = text substr($$0, 2); next } /^[a-z-]+:/ && text { sub(/[.:] .*|\.$$/, "", text); printf "make %-13s%s\n", substr($$1, 1, index($$1, ":") - 1), text } { text = "" }' Makefile

# Check a config's files, models and device; no run.
check: $(NEEDED)
	@python -m compclip run check --config '$(CONFIG)'

# The published benchmark, with the authors' files. They are downloaded by hand: docs/published.md.
paper: .venv/more
	@failed=0; for name in birds flowers; do \
	  python -m compclip run check presets/published_$$name.yaml || failed=1; done; exit $$failed
	@PYTHONPATH=workflow_scripts/workflow/plugins:. COMPCLIP_RUN=1 \
	  snakemake --snakefile presets/published.smk --cores $(CORES) --logger compclip
	@sed -n '/<!-- headlines -->/,/<!-- .headlines -->/{/^<!--/d;/^```/d;p}' results/presets/published/table.md
	@echo 'table: results/presets/published/table.md'

# Long captions (SPECS): training on drawn birds, for three seeds.
specs: .venv/more
	@python -m compclip run presets/specs.yaml --cores $(CORES) \
	  -- results/presets/specs/specs.html

# Compound nouns (Compun): drawn ones, and two small CLIPs; one learns them.
compun: .venv/more
	@python -m compclip run presets/compun.yaml --cores $(CORES) \
	  -- results/presets/compun/compun.html

# Train, score a model that sees few images of held-out pairs. For a GPU: docs/learned.md. Option: SETTINGS.
doses: .venv/more
	@python -m benchmarks.doses --cores $(CORES) $(SETTINGS)

# The documentation as a site, in site/. Broken links are errors.
docs: .venv/maintainer
	mkdocs build --strict
	@echo 'The documentation is in site/index.html.'

# Linters, types and the quick tests, in minutes. One process runs the workflow's tests, the other the rest.
test: lint .venv/test .venv/more .venv/cluster
	python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -m "not slow"

# All tests: also long runs, DVC remotes, browsers, faults, full disks, Slurm.
test-all: test test-slow test-cluster

# Only the slow suites.
test-slow: .venv/test .venv/more .venv/cluster
	python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -m slow

# The workflow on a Slurm of one node. As root, with Debian's slurm-wlm and munge.
test-cluster: .venv/test .venv/more .venv/cluster
	python -m pytest tests/cluster

# Tests on a GPU, in under five minutes: training, resumption, scores, mixed precision, two processes on two GPUs.
test-gpu: .venv/test .venv/more
	COMPCLIP_GPU=1 python -m pytest tests/gpu

# Property tests with new examples, 500 each: what the nightly workflow runs.
explore: .venv/test .venv/more .venv/cluster
	COMPCLIP_EXAMPLES=explore python -m pytest -n 2 -m hypothesis

# Mutation tests of the changed modules: those since BASE, by default the last commit; lists the tests that kill mutants.
mutate: .venv/test .venv/more .venv/maintainer
	python -m benchmarks.mutate $(if $(BASE),--base $(BASE))

# Linters and types.
lint: .venv/maintainer
	ruff check .
	ruff format --check .
	snakefmt --check Snakefile rules presets/published.smk
	snakemake --lint
	mypy

# Speed relative to baselines: results/bench.json, docs/bench.md.
bench: .venv/test
	python -m benchmarks.speed

# Generators of known truth, drawn in other styles. 13 minutes on two cores.
styles: .venv/run
	python -m benchmarks.styles

# The quick part of make styles: all laws, in the plain style.
mixtures: .venv/run
	python -m benchmarks.styles --quick

# The time of a finished run on 2 to 64 cores, by its logs. Option: CONFIG.
schedule: .venv/run
	python -m benchmarks.schedule --config '$(CONFIG)'

# Coverage of the intervals of scores, in simulation: docs/intervals.md.
intervals: .venv/run
	python -m benchmarks.intervals

# Time and memory by size: docs/scale.md. Hours, and 10 GB of disk; REAL=…/cub_captions.zip adds real captions.
scale: .venv/run
	python -m benchmarks.scale --part images
	python -m benchmarks.scale --part captions $(if $(REAL),--real '$(REAL)')

# Kills at random moments, and flipped bits: docs/faults.md. Options: MOMENTS, SEED, FLIPS.
faults: .venv/test
	python -m benchmarks.faults --moments $(or $(MOMENTS),20) --seed $(or $(SEED),0) --flips $(or $(FLIPS),3)

# Judges of all kinds, on images of known truth: docs/judges.md. Adds a judge to the default run.
judges: .venv/test
	python -m compclip run --config benchmarks/judges.yaml --cores $(CORES)
	python -m benchmarks.judges --config benchmarks/judges.yaml

# Forged submissions and spoiled releases: docs/submitting.md. Option: SEED.
forge: .venv/test
	python -m benchmarks.forge --seed $(or $(SEED),0)

# docs/config.md, from the models of the config.
reference: .venv/run
	python -m workflow_scripts.workflow.reference

# The graph of the workflow in docs/workflow.md.
picture: .venv/run
	python -m benchmarks.picture

# Pictures and scores of the documents, from finished runs.
readme: .venv/test
	python -m benchmarks.idea
	python -m benchmarks.scores
	for name in composed scores pairs; do cp results/figures/sketch_color_$$name.svg docs/pictures/$$name.svg; done
	jupyter execute --inplace examples/own_figure.ipynb

# A release of the run, in its folder release: everything that is needed to score and submit a model (docs/submitting.md).
release: $(NEEDED)
	@python -m compclip run release --config '$(CONFIG)' --cores $(CORES)

# Snakemake's own report of the run.
report: $(NEEDED)
	snakemake --configfile '$(CONFIG)' --report snakemake-report.html

# Remove the lock that a killed run left behind.
unlock: $(NEEDED)
	@python -m compclip run unlock

# Check a finished run's artifacts by their recorded digests. INPUTS=1 reads your own files again, too.
verify: $(NEEDED)
	@python -m compclip run verify --config '$(CONFIG)' $(if $(INPUTS),--inputs)

# Versions and hashes of all packages, in lock.txt.
lock: .venv/maintainer
	python -m benchmarks.lock
