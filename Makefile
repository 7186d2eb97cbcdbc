# A face for bootstrap.py, which makes .venv and starts what is asked for. Without make: python bootstrap.py lab

PYTHON ?= $(shell command -v python3 || command -v python)
ASSIGNMENT ?= 03-zero-grad
ARGS ?=

BOOTSTRAP = $(or $(PYTHON),$(error Python was not found: install Python 3.10 or newer)) bootstrap.py
RUN = $(BOOTSTRAP) run

.DEFAULT_GOAL := help
.PHONY: help lab test release grade feedback report doctor bench lint format types lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "make %-9s %s\n", $$1, $$2}' Makefile

lab: ## set up and open the course; PORT=9999 fixes the port, BROWSER=no only prints the address
	@$(BOOTSTRAP) lab $(if $(PORT),--port '$(PORT)') $(if $(filter no,$(BROWSER)),--no-browser)

test: ## run the tests; ARGS="-k loops -n 2" goes to pytest
	@$(BOOTSTRAP) test $(ARGS)

release: ## make the student edition in notebooks/ from source/
	@$(RUN) autograder release $(ARGS)

grade: ## grade submitted/ with nbgrader; ASSIGNMENT="..." names others than 03-zero-grad
	@set -e; for assignment in $(ASSIGNMENT); do $(RUN) nbgrader autograde --force "$$assignment" $(ARGS); done

feedback: ## write the feedback pages of ASSIGNMENT into feedback/
	@set -e; for assignment in $(ASSIGNMENT); do $(RUN) nbgrader generate_feedback --force "$$assignment" $(ARGS); done

report: ## show how the class did, exercise by exercise; ARGS=03-zero-grad chooses
	@$(RUN) autograder report $(ARGS)

doctor: ## check this computer and the set-up
	@$(RUN) autograder doctor $(ARGS)

bench: ## measure the speeds that the project promises
	@$(RUN) autograder bench $(ARGS)

lint: ## check style and formatting
	@$(RUN) --dev ruff check .
	@$(RUN) --dev ruff format --check .

format: ## mend style and formatting
	@$(RUN) --dev ruff check --fix .
	@$(RUN) --dev ruff format .

types: ## check the types
	@$(RUN) --dev mypy

lock: ## pin anew what constraints.txt pins, at the newest versions; needs the network
	@$(RUN) --dev uv pip compile --quiet --upgrade --universal --python-version 3.10 --all-extras --no-annotate \
		--custom-compile-command 'make lock' --output-file constraints.txt pyproject.toml

clean: ## remove .venv and caches; submissions and grades stay
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache tests/artefacts build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
