# Needs make and python3 >= 3.11 (with venv) and nothing else: `make demo`, `make test`.
# Another interpreter: make demo PYTHON=python3.13

PYTHON ?= python3
PYTEST_ARGS ?=
VALIDATE_ARGS ?=
QUICK ?=

# Many tests start programs: these read the bytecode of the package, as does the second worker.
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check
BENCH = failed=; for script in benchmarks/[!_]*.py; do \
    echo "$$script" >&2; $(BIN)/python "$$script" $(if $(filter bench-small,$@),--small) || \
        failed="$$failed $$script"; \
    done; test -z "$$failed" || { echo "These failed:$$failed" >&2; exit 1; }

.DEFAULT_GOAL := help
.PHONY: help demo examples test test-elsewhere test-explore test-long test-lowest test-restricted test-site attack lint format typecheck validate bench bench-small docs dist pictures clean

help:  ## this list
	@echo "usage: make TARGET [PYTHON=python3.13]"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-15s %s\n", $$1, $$2 }' Makefile

demo: $(VENV)/installed  ## install, and do the main job in 90 seconds: figures and a table in out/
	@$(BIN)/python examples/demo.py

examples: $(VENV)/installed  ## run all examples, about ten minutes: figures and a table of verdicts in out/
	@$(BIN)/python examples/run_all.py

test: $(VENV)/installed-test  ## install what the tests need and run the whole suite
	@echo "Running the tests ..."
	@$(BIN)/python -m pytest $(PYTEST_ARGS)

test-explore: $(VENV)/installed-test $(VENV)/installed-browser  ## the explorer in a browser, which is Chromium
	@$(BIN)/python -m pytest -n 0 -s tests/explore/in_browser.py $(PYTEST_ARGS)

test-site: $(VENV)/installed-test $(VENV)/installed-browser docs  ## every page of the site in a browser, which is Chromium
	@$(BIN)/python -m pytest -n 0 tests/explore/site_in_browser.py $(PYTEST_ARGS)

attack: $(VENV)/installed-test  ## try to break it: kills, damaged files, full disks, bad calls, threads
	@$(BIN)/python -m pytest tests/robustness --attack $(PYTEST_ARGS)

test-elsewhere: $(VENV)/installed-test  ## files, resumes and sweeps without what only Linux and macOS have
	@PYTHONPATH=tests/elsewhere $(BIN)/python -m pytest -m "not posix" tests/core/test_whole_files.py \
	    tests/results tests/sweeps tests/solving/test_evaluation.py $(PYTEST_ARGS)

test-lowest: $(VENV)/created  ## the suite with the lowest versions that pyproject.toml allows
	@$(INSTALL) uv && $(BIN)/uv venv --quiet --clear --python $(BIN)/python $(VENV)/lowest
	@$(BIN)/uv pip install --quiet --python $(VENV)/lowest --resolution lowest-direct --editable '.[test,networks]'
	@$(VENV)/lowest/bin/python -m pytest $(PYTEST_ARGS)

test-long: $(VENV)/installed-test  ## tests that the suite leaves out because they take long
	@$(BIN)/python -m pytest --long -m long $(PYTEST_ARGS)

test-restricted: $(VENV)/installed-test  ## tests of equal bits as a processor without AVX-512 runs them
	@echo "Running the tests of equal bits without AVX-512 ..."
	@$(BIN)/python tests/restricted.py $(PYTEST_ARGS)

lint: $(VENV)/installed-test  ## ruff: rules and format
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

format: $(VENV)/installed-test  ## ruff: sort imports and format
	@$(BIN)/ruff check --select I --fix .
	@$(BIN)/ruff format .

typecheck: $(VENV)/installed-test  ## mypy on the package, here and with what Python has on Windows
	@$(BIN)/mypy
	@$(BIN)/mypy --platform win32 --cache-dir .mypy_cache/windows

validate: $(VENV)/installed-test  ## check every claim, write out/validation/report.html (QUICK=1)
	@$(BIN)/python validation/_run.py $(if $(filter-out 0,$(QUICK)),--quick) $(VALIDATE_ARGS)

bench: $(VENV)/installed-bench  ## time the solver beside other packages
	@$(BENCH)

bench-small: $(VENV)/installed-test  ## whether all benchmarks work: small sizes, times mean nothing
	@$(BENCH)

dist: $(VENV)/installed-dist  ## sdist and wheel of the tag that is checked out, in dist/
	@$(BIN)/python -m build

pictures: $(VENV)/installed  ## make the two pictures of the README anew
	@$(BIN)/python docs/pictures/draw.py

docs: $(VENV)/installed-docs  ## run the examples, build the pages into docs/_build/html
	@$(BIN)/sphinx-build --quiet -W --keep-going -d docs/_build/doctrees docs docs/_build/html
	@echo "Open docs/_build/html/index.html"

clean:  ## remove the environment, the caches, and what builds and runs wrote
	@rm -rf $(VENV) out build dist docs/_build docs/gallery *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Each stamp is touched last, so an interrupted installation is taken up again.

$(VENV)/created:
	@command -v $(PYTHON) >/dev/null || { \
	    echo "meanfield needs Python 3.11 or later, and there is no $(PYTHON) on the PATH." >&2; \
	    echo "Install Python, or name yours: make PYTHON=/path/to/python" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo "meanfield needs Python 3.11 or later; $(PYTHON) is `$(PYTHON) --version 2>&1`." >&2; \
	    echo "Name a newer one: make PYTHON=python3.13" >&2; exit 1; }
	@echo "Creating $(VENV) with `$(PYTHON) --version` ..."
	@$(PYTHON) -m venv --clear $(VENV) || { \
	    echo "$(PYTHON) cannot make virtual environments: install its venv module" >&2; \
	    echo "(on Debian and Ubuntu: apt install python3-venv) and try again." >&2; exit 1; }
	@touch $@

$(VENV)/installed: $(VENV)/created pyproject.toml
	@echo "Installing meanfield and its dependencies into $(VENV) ..."
	@$(INSTALL) --editable .
	@touch $@

$(VENV)/installed-%: $(VENV)/created pyproject.toml
	@echo "Installing meanfield with its [$*] extra into $(VENV) ..."
	@$(INSTALL) --editable '.[$*]'
	@touch $(VENV)/installed $@
