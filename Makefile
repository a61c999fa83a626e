# make demo    judge, build and train: the main job on real data
# make test    every check: linters, types, layers, tests
#
# Each makes the virtual environment it needs from nothing but Python (3.10 or later) and a C
# compiler; a second call reuses it. VENV names another folder for it, PYTHON another Python.

PYTHON ?= python3
VENV ?= .venv
PY := $(VENV)/bin/python
PYTEST := $(PY) -m pytest
# Each worker takes neighbouring tests, which share fixtures and kernels; one that is done takes
# over half of what the other has left.
WORKERS := -n 2 --dist worksteal
# The files that compare with peers; no other need be imported for it.
COMPARING = $(shell grep -rl --include='test_*.py' 'mark\.peers' tests | sort)
# Python compiles the modules that it imports; pip would compile all there are.
PIP_INSTALL := $(PY) -m pip install --quiet --disable-pip-version-check --no-compile
# setuptools is there once symgrad is: it compiles kernels.
PIP_ADD := $(PIP_INSTALL) --no-build-isolation

.PHONY: help demo test quick quick-suite check style types layers suite test-peers clean
.DEFAULT_GOAL := help
# The stamps are written last, so that a failed installation is tried again.
.DELETE_ON_ERROR:

help:
	@sed -n 's/^# \{0,1\}//p' Makefile | head -2
	@echo "make quick   the linters, types and layers, and one test of each file, in a minute"
	@echo "make test-peers   compare with torch, jax and scikit-learn (installs them)"

# An environment that is there and works is used as it is; a broken one is made anew.
$(VENV)/.symgrad-run: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' \
	    || { echo "symgrad needs Python 3.10 or later: make PYTHON=..." >&2; exit 1; }
	@$(PY) -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null \
	    || { echo "making $(VENV)"; $(PYTHON) -m venv --clear $(VENV); }
	@$(PY) -m pip --version >/dev/null 2>&1 || $(PY) -m ensurepip --upgrade >/dev/null 2>&1
	$(PIP_INSTALL) --editable .
	@touch $@

$(VENV)/.symgrad-test: $(VENV)/.symgrad-run
	$(PIP_ADD) --editable '.[test]'
	@touch $@

$(VENV)/.symgrad-peers: $(VENV)/.symgrad-test
	$(PIP_ADD) --editable '.[test,peers]'
	@touch $@

demo: $(VENV)/.symgrad-run
	$(PY) examples/train_digits.py

# `make -j2 test` checks the types while the tests begin.
test: check suite

check: style types layers

style: $(VENV)/.symgrad-test
	$(PY) -m ruff check
	$(PY) -m ruff format --check

types: $(VENV)/.symgrad-test
	$(PY) -m mypy

layers: $(VENV)/.symgrad-test
	$(VENV)/bin/lint-imports --no-logo

suite: $(VENV)/.symgrad-test
	$(PYTEST) $(WORKERS)

# The checks beside the tests; mypy remembers what it has seen.
quick: $(VENV)/.symgrad-test
	@$(MAKE) --no-print-directory --output-sync=target -j2 check quick-suite

# What that is, tests/quick.py says.
quick-suite: $(VENV)/.symgrad-test
	$(PYTEST) $(WORKERS) --quick

test-peers: $(VENV)/.symgrad-peers
	$(PYTEST) $(WORKERS) -m peers $(COMPARING)

clean:
	rm -rf build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
