# Everything runs from here. Needs Python 3.11 or newer with pip, and make; the rest it sets up.

PYTHON ?= $(shell command -v python3 || command -v python)
VENV   := .venv
PY     := $(VENV)/bin/python
BENCH  := .venv-bench
PIP    := -m pip --quiet --disable-pip-version-check --no-input
WORKERS ?= 2
SIZES  ?= 1MB 7.9MB 10MB 100MB 1GB
PEERS  ?= callslip agno strands haystack deepagents ctxtual plain
ARGS   ?=

.DEFAULT_GOAL := help
.PHONY: help demo servers test test-all lint format bench soak cli-reference constraints clean

help: ## what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# The stamp is newer than what decides the contents of the environment: a second run starts at once.
$(VENV)/.stamp: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "callslip needs Python 3.11 or newer; this is " + sys.version.split()[0])'
	@echo "setting up $(VENV), once: a minute or two …"
	@test -x $(PY) || $(PYTHON) -m venv $(VENV)
	@$(PY) $(PIP) install --upgrade 'pip>=25.1'
	@$(PY) $(PIP) install --constraint constraints.txt --group dev --editable .
	@touch $@

demo: $(VENV)/.stamp ## an agent answers questions about four large results, and what its window held
	@$(PY) -m demo $(ARGS)

servers: ## servers for the tests that do not come from PyPI, into .servers
	@sh tools/servers.sh npm

test: $(VENV)/.stamp servers ## all tests on one interpreter (ARGS="-k word" for some)
	$(PY) -m pytest -q -n $(WORKERS) $(ARGS)

test-all: ## the tests on every interpreter from 3.11 to 3.14 that is found
	@sh tools/test_all.sh $(ARGS)

lint: $(VENV)/.stamp ## style, formatting, types
	$(PY) -m ruff check
	$(PY) -m ruff format --check
	$(PY) -m mypy

format: $(VENV)/.stamp ## put the style right
	$(PY) -m ruff check --fix
	$(PY) -m ruff format

$(BENCH)/.stamp: pyproject.toml bench/constraints.txt
	@echo "setting up $(BENCH), with the peers: some hundred packages …"
	@test -x $(BENCH)/bin/python || $(PYTHON) -m venv $(BENCH)
	@$(BENCH)/bin/python $(PIP) install --upgrade 'pip>=25.1'
	@$(BENCH)/bin/python $(PIP) install --constraint bench/constraints.txt --group bench --editable .
	@touch $@

bench: $(BENCH)/.stamp ## callslip and its peers on the same bytes (SIZES, PEERS)
	$(BENCH)/bin/python -m bench.run --sizes '$(SIZES)' --peers '$(PEERS)' $(ARGS)

soak: $(VENV)/.stamp servers ## many processes, kill -9 at random points, Ceph, another PostgreSQL
	@sh tools/servers.sh apt
	$(PY) -m pytest -q -s -m 'soak or ceph' $(ARGS)
	CALLSLIP_POSTGRES=pypi $(PY) -m pytest -q -n $(WORKERS) tests/stacks/index/postgres tests/test_laws_on_postgres.py

cli-reference: $(VENV)/.stamp ## write docs/cli.md from the commands themselves
	$(PY) tools/cli_reference.py docs/cli.md

constraints: $(VENV)/.stamp ## lock the versions that are installed now
	$(PY) tools/constraints.py constraints.txt

clean: ## remove what the other targets made
	rm -rf $(VENV) $(BENCH) .servers .venv-3.* .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
