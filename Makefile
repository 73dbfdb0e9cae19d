# make run   - sets up and opens the app (MODEL=demo needs no key)
# make test  - sets up and passes the tests
# make demo-atropos - prompts to a batch at a trainer, offline
# make consumers - every export read by the trainers it is for, each in an environment of its own (7 GB, once)
# make local - fetches the small real model (200 MB); the tests that ask it are skipped without it
# Set-up speaks on stderr only, so that a one-shot's stdout is the answer and nothing else.
SHELL := /bin/sh
VENV ?= .venv
BIN := $(VENV)/bin
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
  "$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
ATROPOS := atroposlib==0.4.0
MODEL ?=
ARGS ?=
# Where it is set, each of the thousands of programs that the tests start would compile all it imports.
unexport PYTHONDONTWRITEBYTECODE
# Most tests wait for processes and terminals, so several run at once; AT_ONCE= runs one after another.
AT_ONCE ?= -n 4 --dist worksteal

.PHONY: run test local demo-atropos consumers check lint types contracts bench pictures clean
run: $(VENV)/.installed
	@$(BIN)/hermes $(if $(MODEL),--model $(MODEL)) $(ARGS)

test: $(VENV)/.installed-dev
	$(BIN)/python -m pytest $(AT_ONCE) $(ARGS)

local: $(VENV)/.installed-dev
	@$(BIN)/hermes local install

check: lint types contracts test

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed-dev
	$(BIN)/mypy

contracts: $(VENV)/.installed-dev
	$(BIN)/lint-imports

demo-atropos: $(VENV)/.installed-dev
	@$(BIN)/python -m tests.batch.demo_atropos

consumers: $(VENV)/.installed-dev
	@$(BIN)/python -m tests.consumers $(ARGS)

bench: $(VENV)/.installed-dev
	$(BIN)/python -m bench $(ARGS)

$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "hermes needs Python 3.11 or newer; none was found on PATH" >&2; exit 2; }
	@if command -v uv >/dev/null 2>&1; then uv venv -q --python "$(PYTHON)" $(VENV) 1>&2; \
	else $(PYTHON) -m venv $(VENV) 1>&2; fi

$(VENV)/.installed: $(VENV)/bin/python pyproject.toml constraints.txt
	@echo "setting up in $(VENV) (once)" >&2
	@if command -v uv >/dev/null 2>&1; then uv pip install -q --python $(BIN)/python -c constraints.txt -e . 1>&2; \
	else $(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e . 1>&2; fi
	@touch $@

$(VENV)/.installed-dev: $(VENV)/bin/python pyproject.toml constraints.txt
	@echo "setting up for tests in $(VENV) (once)" >&2
	@if command -v uv >/dev/null 2>&1; then uv pip install -q --python $(BIN)/python -c constraints.txt -e '.[dev]' 1>&2; \
	else $(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[dev]' 1>&2; fi
	@# the API server a run is fed to; without the training packages it also asks for (1 GB)
	@{ if command -v uv >/dev/null 2>&1; then uv pip install -q --python $(BIN)/python --no-deps $(ATROPOS) 1>&2; \
	else $(BIN)/python -m pip install -q --disable-pip-version-check --no-deps $(ATROPOS) 1>&2; fi; } \
	|| echo "$(ATROPOS) could not be installed: the tests that feed it are skipped" >&2
	@# a cluster of two nodes on the loopback; not every index has it
	@{ if command -v uv >/dev/null 2>&1; then uv pip install -q --python $(BIN)/python -c constraints.txt -e '.[ray]' 1>&2; \
	else $(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[ray]' 1>&2; fi; } \
	|| echo "ray could not be installed: the tests of --engine ray are skipped" >&2
	@touch $(VENV)/.installed $@

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
