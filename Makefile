# Two commands: `make lab` to learn, `make test` to check everything. README.md explains both.
#
#   make lab                           JupyterLab on chapter 00
#   make lab HOST=localhost PORT=8888  the same on a machine that you reach over SSH
#   make lab TORCH_INDEX=ADDRESS       take torch, and nothing else, from that package index
#   make lab PYTHON=python3.12         with another Python
#   make lint|types|unit|selftest|notebooks   one step of `make test`
#   make selftest-full                 the judge's self-test with 20 seeds
#   make gpu                           the tests that need a GPU
#   make clean                         remove .venv and caches; work/ stays

PYTHON ?= python3
HOST ?=
PORT ?=
TORCH_INDEX ?=

SETUP := $(PYTHON) tools/setup.py
CHECKS := .venv/bin/python tools/checks.py

.PHONY: lab test setup setup-test lint types unit selftest notebooks selftest-full gpu constraints clean

lab: setup
	@$(SETUP) lab --host "$(HOST)" --port "$(PORT)"

setup:
	@$(SETUP) env --extras lab --torch-index "$(TORCH_INDEX)"
	@$(SETUP) model
	@$(SETUP) space

setup-test:
	@$(SETUP) env --extras test --torch-index "$(TORCH_INDEX)"
	@$(SETUP) model

test: setup-test
	@$(CHECKS) all

lint types unit selftest notebooks selftest-full gpu: setup-test
	@$(CHECKS) $@

constraints: setup-test
	@.venv/bin/python tools/constraints.py

clean:
	rm -rf .venv build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -not -path "./work/*" -prune -exec rm -rf {} +
