# SPDX-License-Identifier: Apache-2.0
# Targets for a fresh clone; they need only Python 3.10 or newer, make, and git:
#
#   make demo   run the example DAGs on a real Airflow, against the sandbox, and stop everything
#   make up     the same, but leave Airflow and the sandbox running; with DATA=1, see all pages full instead: sixteen
#               days of five DAGs, and MANY= more deliveries
#   make down   stop what make up started
#   make check  style, types, import contracts, and the quick unit tests, in a minute; run it often while you work
#   make test   style, types, import contracts, unit, integration, and end-to-end tests
#   make docs   build the documentation site in build/docs/html
#   make bench  run the benchmarks behind the performance claims
#
# tools/maintain.mk has the targets of maintainers; make help-maintain lists them.

PYTHON ?= python3
VENV := .venv
BENCH := .venv-bench
BIN := $(VENV)/bin

export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Import the code of this clone, regardless of the caller's environment.
unexport PYTHONPATH
# Hundreds of processes import the same files, so bytecode is cached.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo up down check test docs bench lint-without-tests browser services clean

help:
	@sed -n 's/^#   //p' Makefile

include tools/maintain.mk

demo: $(VENV)/.installed
	@$(BIN)/python -m demo run

up: $(VENV)/.installed
	@$(BIN)/python -m demo up

down: $(VENV)/.installed
	@$(BIN)/python -m demo down

# Most tests mostly wait and run in parallel; tests on a real Airflow run sequentially.
PARALLEL := -n 5

# Without the unit tests of `make lint`, because these targets run all of them.
lint-without-tests: $(VENV)/.installed-dev
	@$(BIN)/python -m tools.lint --without-tests

check: lint-without-tests
	@echo "== unit tests"
	@$(BIN)/python -m pytest -q -n logical -m "not slow" tests/unit

test: lint-without-tests services
	@echo "== unit, integration, and end-to-end tests"
	@$(BIN)/python -m pytest -q $(PARALLEL) tests sandbox/tests

bench: $(BENCH)/.installed-dev
	@tools/postgres-setup
	@$(BENCH)/bin/python -m benchmarks

docs: $(VENV)/.installed-dev
	@$(BIN)/python -m tools.docs_site

browser:
	@tools/browser-setup

# Programs that the tests start.
services: browser
	@tools/postgres-setup
	@tools/nginx-setup

clean: down
	rm -rf $(VENV) $(BENCH) $(MAINTAIN_VENVS) .airflow build dist mutants .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# An environment is complete if its stamp exists and is newer than its inputs.
$(VENV)/.installed: pyproject.toml sandbox/pyproject.toml constraints.txt
	@tools/make-venv $(PYTHON) $(VENV) constraints.txt parquet,sandbox ''
	@touch $@

$(VENV)/.installed-dev: pyproject.toml sandbox/pyproject.toml constraints.txt
	@tools/make-venv $(PYTHON) $(VENV) constraints.txt '' dev
	@touch $(VENV)/.installed $@

# A separate environment, so that the compared packages are not installed in the tested one.
$(BENCH)/.installed-dev: pyproject.toml sandbox/pyproject.toml constraints.txt
	@tools/make-venv $(PYTHON) $(BENCH) constraints.txt '' 'dev bench'
	@touch $@
