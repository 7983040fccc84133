# SPDX-License-Identifier: Apache-2.0
# Targets of maintainers, included by the Makefile:
#
#   make lint          style, types, import contracts, generated files, and forgotten places, with a summary
#   make lint-workflows  check the workflows with actionlint (needs Go and its module proxy)
#   make test-floor    tests that depend on Airflow, on the oldest supported version; includes its pages in a browser
#   make test-next     the same on Airflow's newest prerelease
#   make test-airflow  the same on the version AIRFLOW=, such as 3.3.0
#   make test-lowest   unit tests with the lower bounds of all dependencies
#   make release-dry   all of a release but publishing: reproducible builds, wheels beside each Airflow on each Python,
#                      bill of materials, provenance, documentation; limit it with STAGES=, PYTHON_VERSIONS=, AIRFLOWS=
#   make first-steps   follow the README, recipes, and the tutorial literally in an empty home, and time them
#   make chaos         kill, suspend, and starve components and the database at random for MINUTES=20; prints its SEED;
#                      with DATABASE=sqlite, only API servers are killed
#   make scale         many waiting jobs on two of each Airflow component, with Celery; some components are killed
#   make stalls        run the tests while random test processes stall for MEAN=0.7 s; prints its SEED; ARGS= are pytest
#                      arguments
#   make fuzz          test pages, agents' URLs, stored records, and all properties with FACTOR=20 times as many draws;
#                      prints its SEED
#   make mutants       find small changes to the package that no test detects; limit it with PARTS= and SAMPLE=
#   make conformance   run the public Python and Node clients against the sandbox (needs Node; DESCRIPTION=path of the
#                      OpenAPI file)
#   make acceptance    run every operation against the server at BASE_URL=, with API_KEY=, SERVER= (its kind), and at
#                      most CREDITS=50, and write a table of the results
#   make screenshot    write the screenshots of the UI to docs/images, in light and dark colors

FLOOR := .venv-floor
NEXT := .venv-next
LOWEST := .venv-lowest
RELEASE := .venv-release
SCALE := .venv-scale
MUTANTS := .venv-mutants
MAINTAIN_VENVS := $(FLOOR) $(NEXT) $(LOWEST) $(RELEASE) $(SCALE) $(MUTANTS) $(wildcard .venv-airflow-*)

.PHONY: help-maintain lint lint-workflows test-floor test-next test-airflow test-lowest release-dry first-steps chaos scale stalls fuzz mutants conformance acceptance screenshot

help-maintain:
	@sed -n 's/^#   //p' tools/maintain.mk

lint: $(VENV)/.installed-dev
	@$(BIN)/python -m tools.lint

ACTIONLINT := github.com/rhysd/actionlint/cmd/actionlint@v1.7.12

lint-workflows:
	@go run $(ACTIONLINT)

# Tests that depend on the version of Airflow: tasks and waits, the connection, the plugin, migrations, and pages.
DEPENDS_ON_AIRFLOW := $(addprefix tests/unit/,hooks operators sensors triggers test_contract.py test_monitor_assets.py test_plugin.py test_provider_info.py test_stored_forms.py test_supported_airflow.py test_walls.py) \
  $(addprefix tests/integration/,operators sensors triggers toolsets ui upstream hooks/test_test_connection.py inbox/http/test_plugin.py inbox/http/test_secrets.py inbox/http/test_serve.py inbox/storage/test_cli.py inbox/storage/test_migrations.py) \
  $(addprefix tests/e2e/,test_ui.py test_waiting.py)

test-floor: services
	@$(PYTHON) -m tools.airflow_versions $(FLOOR) floor -q $(PARALLEL) $(DEPENDS_ON_AIRFLOW)

test-next: services
	@$(PYTHON) -m tools.airflow_versions $(NEXT) next -q $(PARALLEL) $(DEPENDS_ON_AIRFLOW)

test-airflow: services
	@$(PYTHON) -m tools.airflow_versions .venv-airflow-$(AIRFLOW) $(AIRFLOW) -q $(PARALLEL) $(or $(ARGS),$(DEPENDS_ON_AIRFLOW))

# Without the tests of the tools, which need the newest tools.
test-lowest:
	@$(PYTHON) -m tools.lowest $(LOWEST) -q -n 2 --ignore tests/unit/tools tests/unit

release-dry: $(RELEASE)/.installed-dev
	@$(RELEASE)/bin/python -m tools.release $(addprefix --python ,$(PYTHON_VERSIONS)) $(addprefix --airflow ,$(AIRFLOWS)) $(if $(TAG),--tag $(TAG)) $(STAGES)

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
	@FUZZ_SEED=$(SEED) FUZZ_FACTOR=$(or $(FACTOR),20) $(BIN)/python -m pytest -q $(PARALLEL) -m hypothesis --hypothesis-seed=$(SEED) tests/unit tests/integration sandbox/tests

stalls: $(VENV)/.installed-dev services
	@$(BIN)/python -m tools.stalls --mean $(MEAN) --most $(MOST) $(if $(SEED),--seed $(SEED)) --log build/stalls.log -- $(BIN)/python -m pytest -q --timeout 900 $(PARALLEL) $(or $(ARGS),tests sandbox/tests)

acceptance: $(VENV)/.installed
	@$(BIN)/python -m tools.acceptance

conformance: $(VENV)/.installed-dev
	@$(BIN)/python -m tools.conformance $(DESCRIPTION)

screenshot: $(VENV)/.installed-dev browser
	@WEBDATA_SCREENSHOTS=docs/images $(BIN)/python -m pytest -q tests/e2e/test_connection_form.py
	@DATA=1 $(BIN)/python -m demo up
	@$(BIN)/python -m tools.pictures docs/images --docs; status=$$?; $(BIN)/python -m demo down && exit $$status

$(RELEASE)/.installed-dev: pyproject.toml sandbox/pyproject.toml constraints.txt
	@tools/make-venv $(PYTHON) $(RELEASE) constraints.txt '' 'dev release'
	@touch $@

$(MUTANTS)/.installed-dev: pyproject.toml sandbox/pyproject.toml constraints.txt
	@tools/make-venv $(PYTHON) $(MUTANTS) constraints.txt '' 'dev mutants'
	@touch $@

$(SCALE)/.installed-scale: pyproject.toml sandbox/pyproject.toml constraints.txt
	@tools/make-venv $(PYTHON) $(SCALE) constraints.txt parquet,sandbox scale
	@touch $@
