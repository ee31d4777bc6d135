# gpureport: `make demo` and `make test` are all that a fresh machine with Python 3.11+ and make needs.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
WORKERS ?= $(shell expr $$(nproc) + 2)

include tests/servers.mk
include tests/browser.mk
include tests/deploy.mk
include bench/bench.mk

.PHONY: help install demo test test-busy review-month soak lint bench docs clean

help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "  %-12s %s\n", $$1, $$2}'

$(PY):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "gpureport needs Python 3.11 or later")'
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); sh tests/install-venv.sh && $(PYTHON) -m venv $(VENV); }

$(VENV)/.installed: pyproject.toml constraints.txt | $(PY)
	@$(PIP) --editable .
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	@$(PIP) --editable '.[test,lint]'
	@touch $@

install: $(VENV)/.installed ## Install gpureport into .venv

demo: $(VENV)/.installed ## Write reports of a simulated cluster (out/demo) and of the bundled H200 recording (out/demo-h200)
	@$(VENV)/bin/gpureport demo --out out/demo-h200 > /dev/null
	@$(VENV)/bin/gpureport demo --simulated --out out/demo

# Bytecode is kept wherever tests run: each worker and child process would compile everything anew.
test test-busy review-month soak: export PYTHONDONTWRITEBYTECODE :=
# jemalloc where it can be had, as in the image.
ALLOCATOR := $(CURDIR)/.cache/allocator
PYTEST = LD_PRELOAD=$$(ls $(ALLOCATOR)/libjemalloc.so.2 2> /dev/null) $(PY) -m pytest

# Files of tests are in memory where there is enough: tests make and delete a hundred thousand, and wait for each to be on the disk.
SCRATCH = scratch=$$(sh tests/scratch.sh); trap 'rm -rf "$$scratch"' EXIT; export TMPDIR=$$scratch

.PHONY: allocator

allocator:
	@sh tests/fetch-allocator.sh $(ALLOCATOR)

# Compiled loops are kept beside their source. Workers that begin without them would each compile the same ones.
LOOPS := gpureport/compute/sums/loops.py gpureport/collect/shape/loops.py $(wildcard gpureport/collect/sources/prometheus/*.py)

$(VENV)/.compiled: $(LOOPS) deploy/compile-loops.py | $(VENV)/.installed-dev
	@$(PY) deploy/compile-loops.py > /dev/null
	@touch $@

test: $(VENV)/.installed-dev $(VENV)/.compiled allocator servers browser deploy-tools release-tools ## Run all tests
	@$(SCRATCH); $(PYTEST) -n $(WORKERS) --dist worksteal

test-busy: $(VENV)/.installed-dev $(VENV)/.compiled allocator servers browser deploy-tools release-tools ## Run all tests beside as many busy processes as there are cores
	@$(SCRATCH); hogs=; for core in $$(seq $$(nproc)); do $(PY) -c 'while True: pass' & hogs="$$hogs $$!"; done; trap "kill $$hogs; rm -rf $$scratch" EXIT; \
	$(PYTEST) -n $(WORKERS) --dist worksteal

review-month: $(VENV)/.installed-dev ## Test the findings of 300 simulated GPUs over 30 days (minutes)
	@$(PYTEST) tests/simulate/test_review.py -p no:cacheprovider --review-gpus 300 --review-days 30

soak: $(VENV)/.installed-dev servers ## Kill the nightly run 400 times and run it again (hours), restart its Prometheus, damage lakes, cut their power, read beside writers
	@$(PYTEST) tests/nightly/test_killed.py tests/nightly/test_restarts.py -p no:cacheprovider --kills 200 --restarts 20
	@$(PYTEST) tests/test_lake_damage.py tests/test_lake_power.py -p no:cacheprovider --flips 1000 --power-losses 200 --publishes 1000

lint: $(VENV)/.installed-dev ## Formatting, lint, types, import directions, SQL style
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/mypy
	@$(VENV)/bin/lint-imports
	@$(VENV)/bin/sqlfluff lint --processes 2 queries
	@$(PY) tests/glossary.py

docs: $(VENV)/.installed-dev ## Write the generated documents anew
	@PYTHONPATH=tests $(PY) -m documents

clean: ## Remove what was made here
	rm -rf $(VENV) out .cache build dist
