# Targets for a fresh clone; they need only Python 3.10 or newer, make, and git:
#
#   make demo        run the example DAGs on a real Airflow, against the sandbox, and stop everything
#   make up          the same, but leave Airflow and the sandbox running; stop them with  make down
#                    with DATA=1, see all pages full instead: sixteen days of five DAGs, and MANY= more deliveries
#   make check       style, types, import contracts, unit tests, and tests of stored forms; run it often while you work
#   make test        style, types, import contracts, unit, integration, and end-to-end tests
#   make test-floor  tests that depend on Airflow, on the oldest supported version; includes its pages in a browser
#   make test-next   the same on Airflow's newest prerelease
#   make test-pythons  install and test the wheel on each supported Python version
#   make bench       run the benchmarks behind the performance claims
#   make scale       many waiting jobs on two of each Airflow component, with Celery; some components are killed
#   make chaos       kill, suspend, and starve components and the database at random for MINUTES=20; prints its SEED;
#                    with DATABASE=sqlite, only API servers are killed
#   make first-steps follow the README, recipes, and the tutorial literally in an empty home, and time them
#   make conformance run the public Python and Node clients against the sandbox (needs Node; DESCRIPTION=path of the OpenAPI file)
#   make acceptance  run every operation against the server at BASE_URL=, with API_KEY= and at most CREDITS=50, and
#                    write a table of the results
#   make mutants     find small changes to the package that no test detects; limit it with PARTS= and SAMPLE=
#   make fuzz        test pages, agents' URLs, stored records, and all properties with FACTOR=20 times as many draws;
#                    prints its SEED
#   make stalls      run the tests while random test processes stall for MEAN=0.7 s; prints its SEED; ARGS= are pytest arguments
#   make lint        style, types, import contracts, generated files, and forgotten places, with a summary
#   make docs        build the documentation site in build/docs/html
#   make screenshot  write the screenshots of the UI to docs/images, in light and dark colors

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
# Import the code of this clone, regardless of the caller's environment.
unexport PYTHONPATH
# Hundreds of processes import the same files, so bytecode is cached.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help acceptance demo up down check test test-floor test-next test-pythons bench scale chaos first-steps mutants fuzz stalls conformance lint lint-without-tests docs screenshot browser services clean

help:
	@sed -n 's/^#   //p' Makefile

demo: $(VENV)/.installed
	@$(BIN)/python -m demo run

up: $(VENV)/.installed
	@$(BIN)/python -m demo up

down: $(VENV)/.installed
	@$(BIN)/python -m demo down

# Most tests mostly wait and run in parallel; tests on a real Airflow run sequentially.
PARALLEL := -n 5
# Tests that depend on the version of Airflow: tasks and waits, the connection, the plugin, migrations, and pages.
DEPENDS_ON_AIRFLOW := $(addprefix tests/unit/,hooks operators sensors triggers test_contract.py test_monitor_assets.py test_plugin.py test_provider_info.py test_supported_airflow.py test_walls.py) \
  $(addprefix tests/integration/,operators sensors triggers toolsets stored ui hooks/test_test_connection.py inbox/http/test_plugin.py inbox/http/test_secrets.py inbox/http/test_serve.py inbox/storage/test_cli.py inbox/storage/test_migrations.py) \
  $(addprefix tests/e2e/,test_ui.py test_waiting.py)

check: lint-without-tests
	@echo "== unit tests, and tests of stored forms"
	@$(BIN)/python -m pytest -q -n 2 tests/unit tests/integration/stored

test: lint-without-tests services
	@echo "== unit, integration, and end-to-end tests"
	@$(BIN)/python -m pytest -q $(PARALLEL) tests sandbox/tests

test-floor: $(FLOOR)/.installed-dev services
	@echo "== tests that depend on Airflow, on $$($(FLOOR)/bin/python -c 'from airflow import __version__ as v; print("Airflow", v)')"
	@$(FLOOR)/bin/python -m pytest -q $(PARALLEL) $(DEPENDS_ON_AIRFLOW)

test-next: services
	@$(PYTHON) -m tools.next_airflow $(NEXT) -q $(PARALLEL) $(DEPENDS_ON_AIRFLOW)

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
fuzz: $(VENV)/.installed-dev services
	@echo "== SEED=$(SEED)"
	@FUZZ_SEED=$(SEED) FUZZ_FACTOR=$(or $(FACTOR),20) $(BIN)/python -m pytest -q -k fuzz tests/integration/ui tests/integration/toolsets tests/unit/runs/test_fuzz.py
	@FUZZ_SEED=$(SEED) FUZZ_FACTOR=$(or $(FACTOR),20) $(BIN)/python -m pytest -q $(PARALLEL) -m hypothesis --hypothesis-seed=$(SEED) tests/unit tests/integration

stalls: $(VENV)/.installed-dev services
	@$(BIN)/python -m tools.stalls --mean $(MEAN) --most $(MOST) $(if $(SEED),--seed $(SEED)) --log build/stalls.log -- $(BIN)/python -m pytest -q --timeout 900 $(PARALLEL) $(or $(ARGS),tests sandbox/tests)

acceptance: $(VENV)/.installed
	@$(BIN)/python -m tools.acceptance

conformance: $(VENV)/.installed-dev
	@$(BIN)/python -m tools.conformance $(DESCRIPTION)

lint: $(VENV)/.installed-dev
	@$(BIN)/python -m tools.lint

# For targets that run all unit tests, including those of `make lint`.
lint-without-tests: $(VENV)/.installed-dev
	@$(BIN)/python -m tools.lint --without-tests

docs: $(VENV)/.installed-dev
	@$(BIN)/python -m tools.docs_site

screenshot: $(VENV)/.installed-dev browser
	@WEBDATA_SCREENSHOTS=docs/images $(BIN)/python -m pytest -q tests/e2e/test_connection_form.py
	@DATA=1 $(BIN)/python -m demo up
	@$(BIN)/python -m tools.pictures docs/images --docs; status=$$?; $(BIN)/python -m demo down && exit $$status

browser:
	@tools/browser-setup

# Programs that the tests start.
services: browser
	@tools/postgres-setup
	@tools/nginx-setup

clean: down
	rm -rf $(VENV) $(FLOOR) $(NEXT) $(PYTHON_VERSIONS) $(BENCH) $(SCALE) $(MUTANTS) .airflow build dist mutants .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# An environment is complete if its stamp exists and is newer than its inputs.
$(VENV)/.installed: pyproject.toml sandbox/pyproject.toml constraints.txt
	@tools/make-venv $(PYTHON) $(VENV) constraints.txt parquet,sandbox ''
	@touch $@

$(VENV)/.installed-dev: pyproject.toml sandbox/pyproject.toml constraints.txt
	@tools/make-venv $(PYTHON) $(VENV) constraints.txt '' dev
	@touch $(VENV)/.installed $@

$(FLOOR)/.installed-dev: pyproject.toml sandbox/pyproject.toml constraints-floor.txt
	@tools/make-venv $(PYTHON) $(FLOOR) constraints-floor.txt '' dev
	@touch $@

# A separate environment, so that the compared packages are not installed in the tested one.
$(BENCH)/.installed-dev: pyproject.toml sandbox/pyproject.toml constraints.txt
	@tools/make-venv $(PYTHON) $(BENCH) constraints.txt '' 'dev bench'
	@touch $@

$(MUTANTS)/.installed-dev: pyproject.toml sandbox/pyproject.toml constraints.txt
	@tools/make-venv $(PYTHON) $(MUTANTS) constraints.txt '' 'dev mutants'
	@touch $@

$(SCALE)/.installed-scale: pyproject.toml sandbox/pyproject.toml constraints.txt
	@tools/make-venv $(PYTHON) $(SCALE) constraints.txt parquet,sandbox scale
	@touch $@
