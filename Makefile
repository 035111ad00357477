# make            the targets
# make demo       installs, then runs the main job on data that ships
# make test       installs, then lint, types and all tests

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
export ORT_DISABLE_TELEMETRY := 1
export OMP_NUM_THREADS ?= 1

.PHONY: help install demo test check lint types tests docs bench clean
.DEFAULT_GOAL := help

help:  ## the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | awk -F '\t' '{printf "  make %-9s %s\n", $$1, $$2}'

install: $(STAMP)  ## creates .venv and installs mlpipe with its exact versions

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $(STAMP)

demo: $(STAMP)  ## installs, then runs the main job on data that ships
	$(BIN)/mlpipe run pipelines/penguins.yaml

test: $(STAMP) lint types tests  ## installs, then lint, types and all tests

check: test  ## the same as test

lint: $(STAMP)  ## ruff
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)  ## mypy, strict
	$(BIN)/mypy

tests: $(STAMP)  ## pytest, two at a time
	$(BIN)/python -m pytest -n 2 --dist loadgroup

docs: $(STAMP)  ## prints docs/reference.md from the code
	$(BIN)/python -m mlpipe.cli.reference > docs/reference.md

bench: $(STAMP)  ## benchmarks, written to bench/RESULTS.md (needs ../shared/data)
	$(BIN)/python -m bench

clean:  ## removes what make and the tools made, .venv and runs excepted
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist *.egg-info
