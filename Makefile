# Two commands on a fresh machine with Python 3.11 and make: `make demo` and `make test`.
# Each installs what it needs into .venv first; `make help` lists the rest.

PYTHON ?= $(shell for python in python3.11 python3 python; do \
	"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& echo "$$python" && break; done)
WORKERS ?= 2
ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input
INSTALLED := $(VENV)/.installed
COMPILED := $(VENV)/.compiled
# The demo needs half of what the tests do, and compiles its kernels while Spark starts.
DEMO := $(if $(wildcard $(INSTALLED)),$(INSTALLED),$(VENV)/.demo)
KERNELS := $(wildcard src/penstock/kernels/*.py) src/penstock/machine/warm_up.py
# Linters run in the environment of the tests if there is one, else in a small one without Spark.
LINT := $(if $(wildcard $(INSTALLED)),$(VENV),.venv-lint)
UV := $(shell command -v uv 2>/dev/null || echo .venv-lint/bin/uv)

# Tests that search (Hypothesis) come last: a plain mistake shows within seconds.
SEARCHING = $(shell grep -rlE --include='test_*.py' 'hypothesis|testing.generators' tests | sort)
PLAIN = $(filter-out $(SEARCHING),$(shell find tests -name 'test_*.py' | sort))

.DEFAULT_GOAL := help
.PHONY: help demo ui test matrix lint bench docs install lock release clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-9s%s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(DEMO) ## a live join of three streams on Spark, about a minute (ARGS=--embedded: no Spark)
	@$(BIN)/penstock demo $(ARGS)

ui: $(DEMO) ## the same, live in a browser: open the address that it prints
	@$(BIN)/penstock demo --ui $(ARGS)

TESTS ?= $(PLAIN) $(SEARCHING)
VERSIONS ?= 3.11 3.12 3.13

test: $(COMPILED) ## linters and types, then all tests (TESTS=tests/query: these)
	@$(MAKE) --no-print-directory lint
	$(BIN)/pytest -n $(WORKERS) --dist loadgroup $(ARGS) $(TESTS)

# Each version in an environment of its own, filled by uv, which finds or fetches the interpreter.
# What cannot be had is said first, not after half an hour of tests.
matrix: $(UV) ## the tests on Python 3.11, 3.12 and 3.13 (TESTS="tests/query tests/plan": these)
	@lacking=0; for version in $(VERSIONS); do \
		test -x ".venv-$$version/bin/python" && continue; \
		said=$$($(UV) venv --quiet --python "$$version" ".venv-$$version" 2>&1 | head -n 1); \
		test -x ".venv-$$version/bin/python" || { lacking=1; \
			echo "penstock: Python $$version is lacking ($${said#error: }); install it, or name those you have: make matrix VERSIONS=\"3.11 3.12\"" >&2; }; \
	done; exit $$lacking
	@set -e; for version in $(VERSIONS); do \
		echo "penstock: Python $$version"; \
		$(MAKE) --no-print-directory test VENV=".venv-$$version" \
			PIP="env VIRTUAL_ENV=.venv-$$version $(UV) pip"; \
	done

.venv-lint/bin/uv:
	$(PYTHON) -m venv .venv-lint
	.venv-lint/bin/python -m pip --disable-pip-version-check --no-input install --quiet uv

lint: $(if $(filter .venv-lint,$(LINT)),.venv-lint/.installed) ## ruff, mypy and the import rules (in a fresh clone without Spark)
	$(LINT)/bin/ruff check .
	$(LINT)/bin/ruff format --check .
	$(LINT)/bin/mypy --python-executable $(LINT)/bin/python
	PYTHONPATH=src $(LINT)/bin/lint-imports --no-logo

.venv-lint/.installed: requirements-lint.lock
	@test -x .venv-lint/bin/python || $(PYTHON) -m venv .venv-lint
	.venv-lint/bin/python -m pip --disable-pip-version-check --no-input install --quiet \
		--require-hashes --requirement requirements-lint.lock
	@touch $@

bench: $(COMPILED) ## the engine against DuckDB, a few minutes (ARGS=--quick: about a minute)
	$(BIN)/penstock bench engine $(ARGS)

docs: $(INSTALLED) ## the documentation into build/site; links and names are checked
	$(BIN)/python -m penstock.cli.reference > docs/reference/cli.md
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

install: $(COMPILED) ## everything into .venv, kernels compiled

# The pinned packages, then Penstock itself, built with the pinned build tools.
define install
	@$(if $(strip $(PYTHON)),,echo "Penstock needs Python 3.11 or newer: none of python3.11, python3, python is. Install one, or name it: make $(firstword $(MAKECMDGOALS)) PYTHON=/path/to/python3.11" >&2; exit 1)
	@echo "penstock: installing into $(VENV) (about $(2), once)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install --require-hashes --requirement $(1)
	$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@
endef

$(INSTALLED): requirements.lock pyproject.toml
	$(call install,requirements.lock,1.7 GB)

# Kernels are compiled while Spark is still being installed: that leaves a core idle.
$(VENV)/.demo: requirements-engine.lock requirements-demo.lock pyproject.toml
	$(call install,requirements-engine.lock,1.2 GB)
	@rm -f $@; $(BIN)/penstock warm-up --first >/dev/null 2>&1 & \
	$(PIP) install --require-hashes --requirement requirements-demo.lock
	@touch $@

$(COMPILED): $(INSTALLED) $(KERNELS)
	@$(BIN)/penstock warm-up
	@touch $@

lock: $(INSTALLED) ## pin the newest versions that pyproject.toml allows
	@command -v uv >/dev/null || test -x $(BIN)/uv || $(PIP) install uv
	PATH="$$PATH:$(BIN)" UV_CUSTOM_COMPILE_COMMAND="make lock" uv pip compile pyproject.toml \
		--extra dev --universal --python-version 3.11 --generate-hashes --upgrade --quiet \
		--no-emit-index-url --output-file requirements.lock
	PATH="$$PATH:$(BIN)" UV_CUSTOM_COMPILE_COMMAND="make lock" uv pip compile \
		--group lint --universal --python-version 3.11 --generate-hashes --quiet \
		--no-emit-index-url --constraint requirements.lock --output-file requirements-lint.lock
	PATH="$$PATH:$(BIN)" UV_CUSTOM_COMPILE_COMMAND="make lock" uv pip compile pyproject.toml \
		--extra spark --group demo --universal --python-version 3.11 --generate-hashes --quiet \
		--no-emit-index-url --constraint requirements.lock --output-file requirements-demo.lock
	PATH="$$PATH:$(BIN)" UV_CUSTOM_COMPILE_COMMAND="make lock" uv pip compile pyproject.toml \
		--group demo --universal --python-version 3.11 --generate-hashes --quiet \
		--no-emit-index-url --constraint requirements.lock --output-file requirements-engine.lock

release: $(INSTALLED) ## wheel, sdist and notes of this version into dist; uploads nothing
	rm -rf dist
	$(BIN)/hatchling build
	awk '/^## \[/ { versions++ } versions == 1' CHANGELOG.md > dist/NOTES.md
	@echo "penstock: dist has what a release needs. Next: set the date in CHANGELOG.md, commit, then"
	@echo "  git tag v$$($(BIN)/python -c 'import penstock; print(penstock.__version__)')"

clean: ## remove .venv and everything else that was made
	rm -rf $(VENV) .venv-3.* .venv-lint build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
