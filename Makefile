# make help says what there is. Every target does all of its own set-up.

PYTHON ?= python3
JOBS ?= 2

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test smoke bench bench-quick paper paper-quick beyond beyond-quick theory theory-quick data-quality data-quality-quick eeg eeg-quick manifolds manifolds-quick figures format clean lint types native pytest oldest

BIN := .venv/bin
# Errors only: each step says what it does in a line of its own.
QUIET := -qq --disable-pip-version-check
WHEEL_DIR := build/wheel
# What pytest runs; make smoke runs less, and then measures no coverage.
TESTS := ./tests --pyargs morforest
OLDEST_TESTS := tests/test_estimator_checks.py tests/test_forest.py tests/test_fitted.py
PYTHON_DIRS := src tests examples benchmarks experiments measuring
# All files of the tree, new ones too, but none that git ignores.
FILES = $(wildcard $(shell git ls-files --cached --others --exclude-standard))
CXX_FILES = $(filter %.hpp %.cpp,$(FILES))
TEXT_FILES = $(filter-out %.png %.svg %.npz %.pickle %.safetensors,$(FILES))

# What goes into the wheel: the package is built again when one of these is newer.
SOURCES := pyproject.toml CMakeLists.txt \
  $(shell find core -type f -not -path 'core/tests/*') \
  $(shell find src -type f -not -path '*/__pycache__/*' -not -name '.*')

help: ## Show this list
	@echo "usage: make TARGET"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: .venv/.demo ## Fit RF, SPORF and MORF to four data sets; write a table, and pictures to demo_output/
	@$(BIN)/python examples/demo.py $(DEMO)

test: lint types native pytest oldest ## Run every check
	@echo "All checks passed."

smoke: ## Run every target of this list at its smallest size, in a fresh clone; options: SMOKE="--only bench"
	@$(PYTHON) -m measuring.smoke $(SMOKE)

bench: .venv/.test ## Measure speed and accuracy beside other libraries; options: BENCH="--only fit", see benchmarks/
	@$(BIN)/python -m benchmarks.bench $(BENCH)

bench-quick: .venv/.test ## The same at small sizes
	@$(BIN)/python -m benchmarks.bench --quick $(BENCH)

paper: .venv-paper/.paper ## Run the paper's experiments, or resume them; options: PAPER="--only mnist", see experiments/
	@.venv-paper/bin/python -m experiments.paper --jobs $(JOBS) $(PAPER)

paper-quick: .venv-paper/.paper ## The same at a small scale
	@.venv-paper/bin/python -m experiments.paper --quick --jobs $(JOBS) $(PAPER)

beyond: .venv-paper/.paper ## Run the experiments beyond the paper, after make paper; options: BEYOND="--only beyond_series"
	@.venv-paper/bin/python -m experiments.paper --beyond --jobs $(JOBS) $(BEYOND)

beyond-quick: .venv-paper/.paper ## The same at a small scale
	@.venv-paper/bin/python -m experiments.paper --beyond --quick --jobs $(JOBS) $(BEYOND)

theory: .venv-theory/.theory ## Test the paper's theorems, calibration and intervals; options: THEORY="--only theory_rates"
	@.venv-theory/bin/python -m experiments.paper --theory --jobs $(JOBS) $(THEORY)

theory-quick: .venv-theory/.theory ## The same at a small scale
	@.venv-theory/bin/python -m experiments.paper --theory --quick --jobs $(JOBS) $(THEORY)

data-quality: .venv-paper/.paper ## Compare methods for missing values and unequal lengths; options: DATA_QUALITY="--only missing"
	@.venv-paper/bin/python -m experiments.paper --data-quality --jobs $(JOBS) $(DATA_QUALITY)

data-quality-quick: .venv-paper/.paper ## The same at a small scale
	@.venv-paper/bin/python -m experiments.paper --data-quality --quick --jobs $(JOBS) $(DATA_QUALITY)

eeg: .venv-eeg/.eeg ## Compare with the classifiers of neuroscience on EEG; options: EEG="--match set=finger"
	@.venv-eeg/bin/python -m experiments.paper --eeg --jobs $(JOBS) $(EEG)

eeg-quick: .venv-eeg/.eeg ## The same at a small scale
	@.venv-eeg/bin/python -m experiments.paper --eeg --quick --jobs $(JOBS) $(EEG)

manifolds: .venv/.demo ## Try forests on scalps, spheres, maps, molecules and shuffled images; options: MANIFOLDS="--match data=sphere"
	@$(BIN)/python -m experiments.paper --manifolds --jobs $(JOBS) $(MANIFOLDS)

manifolds-quick: .venv/.demo ## The same at a small scale
	@$(BIN)/python -m experiments.paper --manifolds --quick --jobs $(JOBS) $(MANIFOLDS)

figures: .venv/.demo ## Redraw all figures and tables of these experiments from stored results, without training
	@$(BIN)/python -m experiments.paper --figures $(PAPER)

format: .venv/.test ## Format Python and C++ code
	@$(BIN)/ruff check --fix $(PYTHON_DIRS)
	@$(BIN)/ruff format $(PYTHON_DIRS)
	@$(BIN)/clang-format -i --style=file $(CXX_FILES)

clean: ## Remove everything that make has made
	rm -rf .venv .venv-oldest .venv-paper .venv-theory .venv-eeg .venv-peers .benchmarks benchmarks/results/quick experiments/results/quick build demo_output .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# --- set-up ---------------------------------------------------------------------------------------

.venv/.made:
	@echo "== environment: .venv"
	@$(PYTHON) -m venv .venv
	@touch $@

.venv-oldest/.made:
	@echo "== environment: .venv-oldest"
	@$(PYTHON) -m venv .venv-oldest
	@touch $@

.venv-paper/.made:
	@echo "== environment: .venv-paper"
	@$(PYTHON) -m venv .venv-paper
	@touch $@

.venv-theory/.made:
	@echo "== environment: .venv-theory"
	@$(PYTHON) -m venv .venv-theory
	@touch $@

.venv-eeg/.made:
	@echo "== environment: .venv-eeg"
	@$(PYTHON) -m venv .venv-eeg
	@touch $@

# One wheel serves every environment, so the core is compiled once.
$(WHEEL_DIR)/.built: $(SOURCES) | .venv/.made
	@echo "== building the package (compiles the C++ core: a minute or two)"
	@rm -rf $(WHEEL_DIR) && mkdir -p $(WHEEL_DIR)
	@$(BIN)/python -m pip wheel $(QUIET) --no-deps --wheel-dir $(WHEEL_DIR) .
	@touch $@

# $(call install,python,[extra],other requirements): the new wheel replaces the old one although the
# version is the same; then come the requirements.
define install
@$(1) -m pip install $(QUIET) --force-reinstall --no-deps $(WHEEL_DIR)/*.whl
@$(1) -m pip install $(QUIET) "$$(echo $(WHEEL_DIR)/*.whl)$(2)" $(3)
endef

.venv/.demo: $(WHEEL_DIR)/.built
	@echo "== installing the package and what the demo needs"
	$(call install,$(BIN)/python,[demo])
	@touch $@

.venv/.test: $(WHEEL_DIR)/.built
	@echo "== installing the package and what the tests need"
	$(call install,$(BIN)/python,[test])
	@touch $@ .venv/.demo

.venv-oldest/.test: $(WHEEL_DIR)/.built | .venv-oldest/.made
	@echo "== installing the package beside the oldest supported scikit-learn"
	$(call install,.venv-oldest/bin/python,[test],"scikit-learn==1.7.*")
	@touch $@

# Its libraries hold others back, so they have an environment of their own.
.venv-paper/.paper: $(WHEEL_DIR)/.built experiments/paper.lock | .venv-paper/.made
	@echo "== installing the package and what the paper's experiments need (PyTorch is large)"
	$(call install,.venv-paper/bin/python,[paper],--constraint experiments/paper.lock)
	@touch $@

.venv-theory/.theory: $(WHEEL_DIR)/.built experiments/theory.lock | .venv-theory/.made
	@echo "== installing the package and what the experiments on the theory need"
	$(call install,.venv-theory/bin/python,[theory],--constraint experiments/theory.lock)
	@touch $@

.venv-eeg/.eeg: $(WHEEL_DIR)/.built experiments/eeg.lock | .venv-eeg/.made
	@echo "== installing the package and what the experiments on EEG need (PyTorch is large)"
	$(call install,.venv-eeg/bin/python,[eeg],--constraint experiments/eeg.lock)
	@touch $@

# --- the parts of make test, in the order in which they run -------------------------------------

lint: .venv/.test
	@echo "== ruff"
	@$(BIN)/ruff check $(PYTHON_DIRS)
	@$(BIN)/ruff format --check $(PYTHON_DIRS)
	@echo "== clang-format"
	@$(BIN)/clang-format --dry-run -Werror --style=file $(CXX_FILES)
	@echo "== codespell, and whitespace at the end of lines and files (which is repaired, and fails)"
	@$(BIN)/codespell $(TEXT_FILES)
	@$(BIN)/trailing-whitespace-fixer $(TEXT_FILES)
	@$(BIN)/end-of-file-fixer $(TEXT_FILES)

types: .venv/.test | lint
	@echo "== mypy"
	@cp .venv/lib/python*/site-packages/morforest/_core.pyi src/morforest/
	@$(BIN)/mypy src/morforest

SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer

# $(call native,folder,compiler flags)
define native
@cmake -S core/tests -B $(1) -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS="$(2)" \
  --log-level=WARNING
@cmake --build $(1) --parallel $(JOBS) -- --quiet
@ctest --test-dir $(1) --output-on-failure --parallel $(JOBS) --no-tests=error
endef

native: export PATH := $(CURDIR)/$(BIN):$(PATH)
native: .venv/.test | types
	@echo "== native tests"
	$(call native,build/native-debug,)
	@echo "== native tests with AddressSanitizer and UndefinedBehaviorSanitizer"
	$(call native,build/native-sanitize,$(SANITIZE))

pytest: .venv/.test | native
ifeq ($(origin TESTS),file)
	@echo "== pytest, and the examples of the docstrings; coverage of the Python layer"
	@mkdir -p build/coverage
	@$(BIN)/python -m pytest --numprocesses $(JOBS) --cov --cov-report=term --cov-report=json \
	  --doctest-modules $(TESTS)
	@$(BIN)/python tests/branch_coverage.py build/coverage/coverage.json
else
	@echo "== pytest of $(TESTS)"
	@$(BIN)/python -m pytest --numprocesses $(JOBS) $(TESTS)
endif

oldest: .venv-oldest/.test | pytest
	@echo "== compatibility: $$(.venv-oldest/bin/python -m pip show scikit-learn | sed -n 2p)"
	@.venv-oldest/bin/python -m pytest --numprocesses $(JOBS) $(OLDEST_TESTS)
