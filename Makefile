# Two commands for a new user: `make demo` and `make test`. Each builds .venv first when it is missing or stale.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Two single-threaded workers beat one two-threaded one by far on two cores.
WORKERS ?= $(shell nproc 2>/dev/null || echo 2)
ONE_THREAD := OMP_NUM_THREADS=1 MKL_NUM_THREADS=1
SCREEN := $(VENV)/.browser

.PHONY: demo test test-browser test-faults check lint slow bench bench-selection clean

$(STAMP): pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing into $(VENV) (once; a few minutes on a fresh machine)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

demo: $(STAMP)
	$(BIN)/synthsieve run digits -o demo

test: $(STAMP)
	$(ONE_THREAD) $(BIN)/python -m pytest -q -n $(WORKERS)

$(SCREEN): $(STAMP)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,browser]'
	@touch $@

test-browser: $(SCREEN)
	@.ci/chromium
	$(ONE_THREAD) $(BIN)/python -m pytest -q -n $(WORKERS) -m browser tests/browser

test-faults: $(STAMP)
	$(ONE_THREAD) $(BIN)/python -m pytest -q -m faults tests/faults

lint: $(STAMP)
	$(BIN)/ruff check src tests benchmarks examples
	$(BIN)/ruff format --check src tests benchmarks examples
	$(BIN)/mypy

check: lint test

slow: $(STAMP)
	$(ONE_THREAD) $(BIN)/python -m pytest -q -n $(WORKERS) -m slow

bench: $(STAMP) bench-selection
	$(BIN)/python benchmarks/langevin.py

bench-selection: $(STAMP)
	$(BIN)/python benchmarks/selection.py

clean:
	rm -rf $(VENV) demo build dist
