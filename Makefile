# From a fresh clone, with nothing prepared but Python 3.10 or newer, make and git:
#
#   make demo        the example DAGs on a real Airflow, against the sandbox; nothing keeps running
#   make up          the same, left running for a look around;  make down  ends it
#   make check       style, types, import walls, and unit tests: what to run again and again while working
#   make test        style, types, import walls, unit, integration and end-to-end tests
#   make test-floor  what depends on Airflow on the oldest that is supported; end to end, its pages in a browser
#   make test-next   the same on Airflow's newest prerelease
#   make test-pythons  the wheel, installed and tried on each Python that is supported
#   make bench       what is claimed about speed, measured
#   make scale       many waiting jobs on two of each of Airflow's components, with Celery, some of which are killed
#   make chaos       components and the database die, hang and starve at random for MINUTES=20, from a SEED that is
#                    printed; with DATABASE=sqlite, only API servers die
#   make first-steps the README, recipes, and the tutorial, word by word, in an empty home, and how long it takes
#   make conformance run the public Python and Node clients against the sandbox (needs Node; DESCRIPTION=path of the OpenAPI file)
#   make mutants     which small changes to the package no test notices; PARTS= and SAMPLE= limit it
#   make fuzz        pages, agents' URLs, and stored records with FACTOR=20 times as many draws, from a SEED that is printed
#   make stalls      the tests while random processes of them stall for MEAN=0.7 s, from a SEED that is printed; ARGS= are pytest's
#   make lint        style, types, import walls, generated files, and what was forgotten; every stage, summed up
#   make docs        the documentation site, in build/docs/html
#   make screenshot  the pictures of the UI in docs/images, each in light and in dark colors

PYTHON ?= python3
VENV := .venv
FLOOR := .venv-floor
NEXT := .venv-next
PYTHON_VERSIONS := .venv-pythons
BENCH := .venv-bench
SCALE := .venv-scale
MUTANTS := .venv-mutants
BIN := $(VENV)/bin

export PIP_DISABLE_PIP_VERSION_CHECK := 1
# The code of this clone, whatever the caller's shell prefers.
unexport PYTHONPATH
# Hundreds of processes import the same files: none need compile them again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo up down check test test-floor test-next test-pythons bench scale chaos first-steps mutants fuzz stalls conformance lint lint-without-tests docs screenshot browser services clean

help:
	@sed -n 's/^#   //p' Makefile

demo: $(VENV)/.installed
	@$(BIN)/python -m demo run

up: $(VENV)/.installed
	@$(BIN)/python -m demo up

down: $(VENV)/.installed
	@$(BIN)/python -m demo down

# Most tests wait more than they work, and so run side by side; those on a real Airflow run one after the other.
SIDE_BY_SIDE := -n 5
# What depends on the version of Airflow: tasks and waits, the connection, the plugin, migrations, and pages.
DEPENDS_ON_AIRFLOW := $(addprefix tests/unit/,hooks operators sensors triggers test_contract.py test_message_queue.py test_monitor_assets.py test_plugin.py test_provider_info.py test_supported_airflow.py test_walls.py) \
  $(addprefix tests/integration/,operators sensors triggers toolsets stored ui hooks/test_test_connection.py inbox/http/test_plugin.py inbox/http/test_secrets.py inbox/http/test_serve.py inbox/storage/test_cli.py inbox/storage/test_migrations.py) \
  $(addprefix tests/e2e/,test_ui.py test_waiting.py)

check: lint-without-tests
	@echo "== unit tests"
	@$(BIN)/python -m pytest -q -n 2 tests/unit

test: lint-without-tests services
	@echo "== unit, integration and end-to-end tests"
	@$(BIN)/python -m pytest -q $(SIDE_BY_SIDE) tests

test-floor: $(FLOOR)/.installed-dev services
	@echo "== tests that depend on Airflow, on $$($(FLOOR)/bin/python -c 'from airflow import __version__ as v; print("Airflow", v)')"
	@$(FLOOR)/bin/python -m pytest -q $(SIDE_BY_SIDE) $(DEPENDS_ON_AIRFLOW)

test-next: services
	@$(PYTHON) -m tools.next_airflow $(NEXT) -q $(SIDE_BY_SIDE) $(DEPENDS_ON_AIRFLOW)

test-pythons:
	@$(PYTHON) -m tools.pythons $(PYTHON_VERSIONS)

bench: $(BENCH)/.installed-dev
	@tools/postgres-setup
	@$(BENCH)/bin/python -m benchmarks

scale: $(SCALE)/.installed-scale
	@tools/postgres-setup
	@tools/redis-setup
	@$(SCALE)/bin/python -m demo scale

chaos: $(VENV)/.installed-dev
	@tools/postgres-setup
	@$(BIN)/python -m demo chaos

first-steps:
	@$(PYTHON) -m tools.first_steps

mutants: $(MUTANTS)/.installed-dev
	@$(MUTANTS)/bin/python -m tools.mutants $(PARTS) $(if $(SAMPLE),--sample $(SAMPLE)) $(if $(SEED),--seed $(SEED)) $(if $(AGAINST),--against $(AGAINST))

MEAN := 0.7
MOST := 3

fuzz: SEED ?= $(shell date +%s)
fuzz: $(VENV)/.installed-dev
	@echo "== SEED=$(SEED)"
	@FUZZ_SEED=$(SEED) FUZZ_FACTOR=$(or $(FACTOR),20) $(BIN)/python -m pytest -q -k fuzz tests/integration/ui tests/integration/toolsets tests/unit/tasks/test_fuzz.py

stalls: $(VENV)/.installed-dev services
	@$(BIN)/python -m tools.stalls --mean $(MEAN) --most $(MOST) $(if $(SEED),--seed $(SEED)) --log build/stalls.log -- $(BIN)/python -m pytest -q $(SIDE_BY_SIDE) $(or $(ARGS),tests)

conformance: $(VENV)/.installed-dev
	@$(BIN)/python -m tools.conformance $(DESCRIPTION)

lint: $(VENV)/.installed-dev
	@$(BIN)/python -m tools.lint

# For targets that run all unit tests, among which are those of `make lint`.
lint-without-tests: $(VENV)/.installed-dev
	@$(BIN)/python -m tools.lint --without-tests

docs: $(VENV)/.installed-dev
	@$(BIN)/python -m tools.docs_site

screenshot: $(VENV)/.installed-dev browser
	@WEBDATA_SCREENSHOTS=docs/images $(BIN)/python -m pytest -q tests/e2e/test_ui.py tests/e2e/test_connection_form.py

browser:
	@tools/browser-setup

# The programs that tests start for themselves.
services: browser
	@tools/postgres-setup
	@tools/nginx-setup

clean: down
	rm -rf $(VENV) $(FLOOR) $(NEXT) $(PYTHON_VERSIONS) $(BENCH) $(SCALE) $(MUTANTS) .airflow build dist mutants .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# An environment is complete when its stamp exists and is newer than what it was made from.
$(VENV)/.installed: pyproject.toml constraints.txt
	@tools/make-venv $(PYTHON) $(VENV) constraints.txt '.[parquet,sandbox]'
	@touch $@

$(VENV)/.installed-dev: pyproject.toml constraints.txt
	@tools/make-venv $(PYTHON) $(VENV) constraints.txt '.[dev]'
	@touch $(VENV)/.installed $@

$(FLOOR)/.installed-dev: pyproject.toml constraints-floor.txt
	@tools/make-venv $(PYTHON) $(FLOOR) constraints-floor.txt '.[dev]'
	@touch $@

# What it is compared with stays out of the environment that is tested.
$(BENCH)/.installed-dev: pyproject.toml constraints.txt
	@tools/make-venv $(PYTHON) $(BENCH) constraints.txt '.[dev,bench]'
	@touch $@

$(MUTANTS)/.installed-dev: pyproject.toml constraints.txt
	@tools/make-venv $(PYTHON) $(MUTANTS) constraints.txt '.[dev,mutants]'
	@touch $@

$(SCALE)/.installed-scale: pyproject.toml constraints.txt
	@tools/make-venv $(PYTHON) $(SCALE) constraints.txt '.[parquet,sandbox,scale]'
	@touch $@
