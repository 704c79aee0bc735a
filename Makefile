PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python

.PHONY: help demo bases check test lint calibrate study finding unseen slow devices release-check kills fuzz damage interrupts soak net gallery \
	bench cost peers tables clean

help:
	@echo "make demo       set up, then ask a question with a known answer: what plain HMC says, what we say, in a picture"
	@echo "make bases      every fit of a base on four targets, side by side (about 10 minutes)"
	@echo "make paper-bimodal, paper-boltzmann, paper-radon, paper-iwae"
	@echo "                the paper's experiments, about an hour each; with QUICK=1 minutes"
	@echo "make check      lint, types, contracts and the fast tests (under two minutes)"
	@echo "make test       set up, then lint, type-check and test"
	@echo "make calibrate  are the error bars right? 200 seeds a problem and method, and sums over 1000 targets (hours)"
	@echo "make study      the black box on 25 targets with exact answers, 10 seeds each (long)"
	@echo "make finding    modes lost and work of the black box on generated targets, by family (long; resumes)"
	@echo "make unseen     tc.sample on generated targets: right, wrong, lost, by family (long; resumes)"
	@echo "make slow       tests that take minutes: the black box, models of the front ends, kills"
	@echo "make devices    the core of the suite on four forced devices with JAX_ENABLE_X64=0, and single precision"
	@echo "make release-check"
	@echo "                wheel and sdist in fresh environments, on every Python here, with oldest and newest dependencies"
	@echo "make kills      200 random kill -9 of runs with and without workers, and resume (long; KILLS=20 for fewer)"
	@echo "make fuzz       10,000 wrong calls, each refused in a sentence or honest (resumes; CALLS=n)"
	@echo "make damage     500 damaged checkpoints and saved runs; make interrupts: 50 Ctrl-C at random moments"
	@echo "make soak       an hour of calls in one process: do memory, threads and files level off? (MINUTES=n)"
	@echo "make net REF=x  do all methods draw what they drew at commit x, bit for bit? (ROUNDING=1: to rounding)"
	@echo "make gallery    the pictures of docs/gallery.md"
	@echo "make bench      leapfrog cost, first estimate, memory"
	@echo "make cost       seconds to log Z on five regressions and hierarchies, beside NUTS and bridge sampling"
	@echo "make peers      eleven new problems, other samplers, each in its own environment (long; resumes; PEERS_OPTIONS)"
	@echo "make tables     put what studies and benchmarks have stored into the tables of README and docs"

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.report: pyproject.toml | $(VENV)/bin/python
	$(RUN) -m pip install --quiet --editable ".[report]"
	@touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/bin/python
	$(RUN) -m pip install --quiet --editable ".[dev]"
	@touch $@ $(VENV)/.report

$(VENV)/.experiments: pyproject.toml | $(VENV)/bin/python
	$(RUN) -m pip install --quiet --editable ".[experiments]"
	@touch $@

demo: $(VENV)/.report
	@$(RUN) -m thermocline.cli demo --out build/demo

paper-%: $(VENV)/.experiments
	$(RUN) -m experiments.$*.run $(if $(QUICK),--quick)

bases: $(VENV)/.report
	$(RUN) -m experiments.bases.run --out build/bases

lint: $(VENV)/.dev
	$(RUN) -m ruff check .
	$(RUN) -m pyright
	$(VENV)/bin/lint-imports

check: lint
	$(RUN) -m pytest -n 2 --dist loadfile -m "not slow and not long" $(PYTEST_OPTIONS)

check test: export OPENBLAS_NUM_THREADS := 1
check test: export JAX_COMPILATION_CACHE_DIR := $(CURDIR)/build/programs
check test: export JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS := 0.3
test: lint
	$(RUN) -m pytest -n 2 --dist loadfile $(PYTEST_OPTIONS)

calibrate: $(VENV)/.dev
	$(RUN) -m studies.calibrate
	$(RUN) -m studies.calibrate_many

study: $(VENV)/.experiments
	$(RUN) -m studies.study

finding: $(VENV)/.dev
	$(RUN) -m studies.finding $(FINDING_OPTIONS)

unseen: $(VENV)/.dev
	$(RUN) -m studies.unseen --seeds-from $$(git rev-parse HEAD) $(UNSEEN_OPTIONS)

slow: $(VENV)/.dev
	$(RUN) -m pytest -m slow

devices: export JAX_ENABLE_X64 := 0
devices: export XLA_FLAGS := --xla_force_host_platform_device_count=4
devices: $(VENV)/.dev
	$(RUN) -m pytest -m "not slow" $(PYTEST_OPTIONS) $(addprefix tests/,bases engine estimators fits methods movers paths test_evaluator.py test_sample.py test_sample_many.py)
	$(RUN) -m pytest -m "" tests/test_devices.py

release-check: $(VENV)/.dev
	$(RUN) -m studies.release_check

kills: $(VENV)/.dev
	$(RUN) -m pytest -m slow tests/slow
	$(RUN) -m studies.kills --kills $(or $(KILLS),200)

fuzz: $(VENV)/.dev
	$(RUN) -m studies.fuzz --calls $(or $(CALLS),10000)

damage interrupts: $(VENV)/.dev
	$(RUN) -m studies.$@

soak: $(VENV)/.dev
	$(RUN) -m benchmarks.soak --minutes $(or $(MINUTES),60)

net: $(VENV)/.dev
	$(RUN) -m studies.net $(REF) $(if $(ROUNDING),--rounding)

gallery: $(VENV)/.dev
	$(RUN) -m studies.gallery

bench: $(VENV)/.dev
	$(RUN) -m benchmarks.leapfrog
	$(RUN) benchmarks/first_estimate.py
	$(RUN) benchmarks/memory.py
	$(RUN) -m benchmarks.workers

cost: $(VENV)/.dev
	$(RUN) -m benchmarks.cost

peers: $(VENV)/.dev
	$(RUN) -m benchmarks.peers.run $(PEERS_OPTIONS)
	$(RUN) -m benchmarks.peers.report
	$(RUN) -m studies.tables

tables: $(VENV)/.dev
	$(RUN) -m studies.tables

clean:
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache
