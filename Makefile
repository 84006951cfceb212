# Everything here works on a fresh clone with nothing but python3 (3.11 or newer) and make.
SHELL := bash
.SHELLFLAGS := -o pipefail -c
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DATA ?= $(HOME)/.karmada

.DEFAULT_GOAL := help
.PHONY: help up test lint format bench clean

help: ## Show what there is to make
	@awk -F':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(STAMP): pyproject.toml constraints.txt
	@echo "==> Making $(VENV) (once; about half a minute)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "python3 3.11 or newer is needed, this is " + sys.version)'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --disable-pip-version-check --progress-bar off -c constraints.txt -e '.[dev]' \
		| sed -un 's/^Collecting \([^ ]*\).*/    \1/p'
	@touch $(STAMP)
	@echo "==> Installed"

up: $(STAMP) ## Start the control plane; its kubeconfig is ~/.karmada/admin.kubeconfig
	@$(BIN)/karmada --data-dir $(DATA)

test: $(STAMP) ## Run all tests (real kubectl, helm and etcd included)
	@echo "==> In one process each: rooms by themselves and together, on all cores"
	@$(BIN)/python -m pytest -n auto --dist loadfile --ignore=tests/e2e
	@echo "==> End to end: real programs, one after the other"
	@$(BIN)/python -m pytest tests/e2e

lint: $(STAMP) ## Check style, types and the layering of the packages
	@echo "==> ruff" && $(BIN)/ruff check src tests bench && $(BIN)/ruff format --check src tests bench
	@echo "==> mypy" && $(BIN)/mypy
	@echo "==> import-linter" && $(BIN)/lint-imports --no-cache

format: $(STAMP) ## Put the code into shape
	@$(BIN)/ruff check --fix src tests bench; $(BIN)/ruff format src tests bench

bench: $(STAMP) ## Measure the server on this machine
	@$(BIN)/python -m bench

clean: ## Remove what make made
	@rm -rf $(VENV) build .pytest_cache .mypy_cache .ruff_cache .hypothesis
