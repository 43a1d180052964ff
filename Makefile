# Every target works as the first command on a fresh clone: it makes .venv and installs what it needs.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check -q

.PHONY: help demo test test-all lint format bench bench-quick docs clean

help:           ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

$(VENV)/.core: pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install -e .
	@touch $@

$(VENV)/.dev: pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install -e ".[dev]"
	@touch $@ $(VENV)/.core

demo: $(VENV)/.core  ## embed a built-in table, compare, write a picture
	$(BIN)/tabweave demo --force

test: $(VENV)/.dev   ## the fast tests
	$(BIN)/python -m pytest -n auto -m "not slow"

test-all: $(VENV)/.dev  ## every test, slow ones too
	$(BIN)/python -m pytest -n auto

lint: $(VENV)/.dev   ## style, types, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.dev ## rewrite in house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.dev  ## every published table, every peer, every bar (hours; can be resumed)
	$(PIP) install -e ".[bench]"
	$(BIN)/python benchmarks/run.py

bench-quick: $(VENV)/.dev  ## a part of it, in minutes
	$(PIP) install -e ".[bench]"
	$(BIN)/python benchmarks/run.py --quick

docs: $(VENV)/.dev   ## run the examples and build the site into site/
	$(PIP) install -e ".[docs]"
	$(BIN)/mkdocs build --strict -q

clean:
	rm -rf $(VENV) build dist site docs/gallery docs/reports docs/contributing.md .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
