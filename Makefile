# Two commands for a new user: `make demo` and `make test`. Each builds .venv first when it is missing or stale.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Two single-threaded workers beat one two-threaded one by far on two cores.
WORKERS ?= $(shell nproc 2>/dev/null || echo 2)
ONE_THREAD := OMP_NUM_THREADS=1 MKL_NUM_THREADS=1
SCREEN := $(VENV)/.browser
SITE := $(VENV)/.site
# pip 25.1 is the first that installs dependency groups.
PIP := $(BIN)/python -m pip install --no-compile --quiet --disable-pip-version-check -c constraints.txt
EXTRAS := text,sound,gallery,plots,hf,cluster

.PHONY: demo gallery test test-browser test-faults test-matrix test-oldest check lint slow soak fuzz audit docs package bench bench-selection clean

$(STAMP): pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing into $(VENV) (once; a few minutes on a fresh machine)"
	@$(PIP) 'pip>=25.1'
	@$(PIP) --group dev -e '.[$(EXTRAS)]'
	@touch $@

demo: $(STAMP)
	$(BIN)/synthsieve run digits -o demo

gallery: $(STAMP)
	@test -f demo/table.json || $(MAKE) demo
	$(BIN)/synthsieve serve demo

test: $(STAMP)
	$(ONE_THREAD) $(BIN)/python -m pytest -q -n $(WORKERS)

$(SCREEN): $(STAMP)
	@$(PIP) --group browser
	@touch $@

test-browser: $(SCREEN)
	@.ci/chromium
	$(ONE_THREAD) $(BIN)/python -m pytest -q -n $(WORKERS) -m browser tests/browser

test-faults: $(STAMP)
	$(ONE_THREAD) $(BIN)/python -m pytest -q -m faults tests/robustness/faults

# Three runs of the tests that cover every Python and condition that this machine has; ONLY="ascii 3.13+sse" for others,
# TESTS=tests/results/export for some tests. Environments and logs are kept in MATRIX.
MATRIX ?= .matrix
TESTS ?=
test-matrix:
	@$(PYTHON) -m tests.matrix --folder $(MATRIX) --workers $(WORKERS) --only "$(ONLY)" $(TESTS)

lint: $(STAMP)
	$(BIN)/ruff check src tests benchmarks examples docs
	$(BIN)/ruff format --check src tests benchmarks examples docs
	$(BIN)/mypy

check: lint test

slow: $(STAMP)
	$(ONE_THREAD) $(BIN)/python -m pytest -q -n $(WORKERS) -m slow --ignore tests/soak
	@$(MAKE) soak

# An hour of training, sampling and selection in one process; `make slow` includes it, SOAK=600 takes ten minutes.
SOAK ?= 3600
soak: $(STAMP)
	$(ONE_THREAD) SYNTHSIEVE_SOAK_SECONDS=$(SOAK) $(BIN)/python -m pytest -q -s -m slow tests/soak

# Seconds for each reader; FUZZ=60 for more, ONLY="mat csv" for some of them.
FUZZ ?= 20
ONLY ?=
fuzz: $(STAMP)
	@$(PIP) --group fuzz
	$(ONE_THREAD) $(BIN)/python -m tests.robustness.fuzz.atheris_targets $(FUZZ) $(ONLY)

# Known vulnerabilities of the installed versions; --strict also fails for a package that cannot be looked up.
audit: $(STAMP)
	@$(PIP) --group audit
	$(BIN)/pip-audit --strict --skip-editable --progress-spinner off

$(SITE): $(STAMP)
	@$(PIP) --group docs
	@touch $@

# The documentation site, in site/; strict: a dead link or a wrong reference fails.
docs: $(SITE)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build

# dist/: a wheel and an sdist, checked, and the wheel tried without extras on each Python from 3.11 to 3.13 that is here.
# URL=https://... is the address of the repository, for the links of the README on a package index.
PACKAGE ?= .package
URL ?=
package: $(STAMP)
	@$(PIP) --group package
	rm -rf build dist
	SYNTHSIEVE_URL=$(URL) $(BIN)/python -m build
	$(BIN)/python -m twine check --strict dist/*
	@$(PYTHON) -m tests.packaging dist --folder $(PACKAGE)

# Some tests with the lowest versions that pyproject.toml allows; OLDEST keeps the environment.
OLDEST ?= .oldest
OLDEST_TESTS ?= tests/selection tests/sampling tests/models tests/estimators tests/data/test_table_cells.py tests/data/test_download.py tests/test_settings.py tests/test_reference.py
test-oldest:
	@$(PYTHON) -m tests.packaging --oldest --folder $(OLDEST) $(OLDEST_TESTS)

bench: $(STAMP) bench-selection
	$(BIN)/python benchmarks/langevin.py
	$(BIN)/python benchmarks/training.py

bench-selection: $(STAMP)
	$(BIN)/python benchmarks/selection.py

clean:
	rm -rf $(VENV) $(MATRIX) $(PACKAGE) $(OLDEST) demo build dist site
