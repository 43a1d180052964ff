# Every target works as the first command on a fresh clone: it makes .venv and installs what it needs.
VENV := .venv
ifeq ($(OS),Windows_NT)
SHELL  := bash
PYTHON ?= python
BIN    := $(VENV)/Scripts
else
PYTHON ?= python3
BIN    := $(VENV)/bin
endif
PIP := $(BIN)/python -m pip --disable-pip-version-check -q

.PHONY: help demo test test-all lowest lint style types layers format hooks bench bench-quick docs \
        screenshots clean \
        mutants fuzz audit wheel-twice
.NOTPARALLEL:
.DELETE_ON_ERROR:

help:           ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "%-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(VENV)/pyvenv.cfg:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: pyproject.toml | $(VENV)/pyvenv.cfg
	$(PIP) install -e '.[cli]'
	@touch $@

# One stamp for each dependency group of pyproject.toml; groups need pip 25.1.
$(VENV)/.%: pyproject.toml | $(VENV)/pyvenv.cfg
	$(PIP) install "pip>=25.1"
	$(PIP) install -e . --group $*
	@touch $@ $(VENV)/.core

demo: $(VENV)/.core  ## embed a built-in table, compare, write a picture
	$(BIN)/tabweave demo --force

test: $(VENV)/.dev   ## the fast tests
	$(BIN)/python -m pytest -n auto -m "not slow"

# Where the data comes in, every line and branch is run; what cannot be says why beside it.
CORE := src/tabweave/base.py,src/tabweave/embed/base.py,src/tabweave/columns/*,src/tabweave/counts/*,src/tabweave/space/*,src/tabweave/io/*
test-all: $(VENV)/.dev  ## every test, slow ones too, and how much of the code they run
	$(BIN)/python -m pytest -n auto --cov=tabweave --cov-report=term:skip-covered --cov-fail-under=90
	$(BIN)/python -m coverage report -m --skip-covered --fail-under=100 --include='$(CORE)'

# The lowest versions that pyproject.toml declares, in an environment of their own. The studio's
# server, dask, Spark, river and notebooks are left out: their tests are skipped.
LOWEST := $(VENV)-lowest
lowest:         ## all rooms with the lowest versions that are declared
	$(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python -c "import tomllib; p = tomllib.load(open('pyproject.toml', 'rb'))['project']; \
	e = p['optional-dependencies']; d = p['dependencies'] + e['files'] + \
	e['frames'] + e['plots'] + e['db'] + e['map'] + e['boost'] + e['export']; \
	print(*(n.replace('>=', '==') + '.*' for n in d), sep='\n')" > $(LOWEST)/versions.txt
	$(LOWEST)/bin/pip --disable-pip-version-check -q install -r $(LOWEST)/versions.txt typer rich
	$(LOWEST)/bin/pip --disable-pip-version-check -q install "pytest==8.*" pytest-xdist hypothesis networkx
	$(LOWEST)/bin/pip --disable-pip-version-check -q install --no-deps -e .
	$(LOWEST)/bin/python -m pytest -n auto -m "not slow" -W ignore::DeprecationWarning tests

lint: style types layers  ## style, types, layers

style: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

layers: $(VENV)/.dev
	$(BIN)/lint-imports

format: $(VENV)/.dev ## rewrite in house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

hooks: $(VENV)/.dev  ## check each commit before it is made
	$(BIN)/pre-commit install

mutants: $(VENV)/.dev  ## plant errors and see which no test notices (hours; SAMPLE=20 a file: less)
	$(BIN)/python tools/mutants.py --sample $(or $(SAMPLE),0)

fuzz: $(VENV)/.dev   ## throw odd tables, files, text and requests at it, MINUTES= for each door
	$(PIP) install schemathesis
	$(BIN)/python tools/fuzz.py --minutes $(or $(MINUTES),5)

audit: $(VENV)/.dev  ## known holes in what is installed here
	$(PIP) install pip-audit
	$(BIN)/pip-audit --skip-editable

wheel-twice: $(VENV)/.dev  ## build the wheel in two folders: the same bytes?
	$(PIP) install build
	$(BIN)/python tools/same_wheel.py

bench: $(VENV)/.dev $(VENV)/.bench  ## every published table, every peer, every bar (hours; can be resumed)
	$(BIN)/python benchmarks/run.py

bench-quick: $(VENV)/.dev $(VENV)/.bench  ## a part of it, in minutes
	$(BIN)/python benchmarks/run.py --quick

docs: $(VENV)/.dev $(VENV)/.docs  ## run the examples and build the site into site/
	$(BIN)/sphinx-build -q -W --keep-going -j auto -d build/doctrees docs site

screenshots: $(VENV)/.dev  ## pictures of a report and the studio into docs/img (needs Chromium)
	$(BIN)/python docs/_screenshots.py --studio

clean:          ## remove what was made, .venv too
	rm -rf $(VENV) $(LOWEST) build dist site docs/api docs/gallery docs/reports docs/contributing.md docs/changelog.md .coverage .coverage.*
	rm -rf .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache .grimp_cache
