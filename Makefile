# Everything runs in .venv, made from the hashed locks; only Python (3.11 or newer) and make are needed.
# Another PYTHON has an environment of its own: `make test PYTHON=python3.13` makes and uses .venv-python3.13.
PYTHON ?= python3
VENV := .venv$(addprefix -,$(subst /,-,$(filter-out python3,$(PYTHON))))
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
FOREIGN := .venv-foreign
FOREIGN_STAMP := $(FOREIGN)/.installed
# FastMCP of the official SDK, as old as servers are: the first version, the last that ends at what comes before
# `initialize`, and the first that can ask.
FOREIGN_MCP := 1.2 1.8 1.10
FOREIGN_MCP_STAMPS := $(FOREIGN_MCP:%=$(FOREIGN)/mcp-%/.installed)
DOCS_STAMP := .venv-docs/.installed
FOREIGN_NODE := $(FOREIGN)/node
FOREIGN_NODE_STAMP := $(FOREIGN_NODE)/.installed

# Many tests wait for a process or a deadline: more workers than processors.
SIDE_BY_SIDE := -n 4 --dist worksteal

# The sample of `make mutants`, and how many examples `make test-nightly` draws for each property.
SEED ?= 0
COUNT ?= 400
EXAMPLES ?= 500

# Whoever sets it has pytest rewrite every test anew in each run.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-foreign check format lint types imports coverage bench bench-gate bench-coverage size models mutants test-nightly docs reference pictures man lock clean

demo: $(STAMP)  ## jp's main job in workspace-example/, with the embedded script provider
	@PATH="$(CURDIR)/$(BIN):$$PATH" sh workspace-example/demo.sh

test: $(STAMP)  ## the whole suite
	$(BIN)/python -m pytest -q -p no:inline_snapshot $(SIDE_BY_SIDE) -m "not foreign"

test-nightly: $(STAMP)  ## the properties, on 500 new examples each; EXAMPLES= sets how many
	JP_TEST_PROFILE=nightly JP_TEST_EXAMPLES=$(EXAMPLES) $(BIN)/python -m pytest -q -p no:inline_snapshot $(SIDE_BY_SIDE) tests/properties

test-foreign: $(STAMP) $(FOREIGN_NODE_STAMP) $(FOREIGN_MCP_STAMPS)  ## jp against servers that are not ours; the first time one is compiled, for minutes
	$(BIN)/python -m pytest -q -m foreign tests/foreign

check: lint types imports coverage  ## format, lint, types, import contracts, coverage of the pure packages

format: $(STAMP)  ## rewrite the sources as the formatter wants them
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lint: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(STAMP)
	$(BIN)/pyright

imports: $(STAMP)
	PYTHONSAFEPATH=1 $(BIN)/lint-imports

coverage: $(STAMP)
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -q -p no:inline_snapshot $(SIDE_BY_SIDE) tests/unit tests/properties tests/wire
	$(BIN)/coverage combine -q
	$(BIN)/coverage report

bench: $(STAMP)  ## every figure of the README and of docs/, written into them; ONLY="log turns" prints a few
	$(BIN)/python benchmarks/run.py $(ONLY)

bench-gate: $(STAMP)  ## counts of what jp does, within their bounds; LOWER=1 lowers the budget to what was counted
	$(BIN)/python benchmarks/gate.py $(if $(LOWER),--lower)

size: $(STAMP)  ## figures of the sources: modules, statements, headers, and what a request runs through
	$(BIN)/python benchmarks/size.py

bench-coverage: $(STAMP)  ## the public functions of jp.context that neither commands nor benchmarks of them enter
	$(BIN)/python benchmarks/entered.py

models: $(STAMP)  ## each provider's models.json anew, with what `jp model refresh` has kept
	$(BIN)/python benchmarks/model_tables.py

mutants: $(STAMP)  ## small changes of the sources that a test has to notice: SEED= and COUNT= set the sample
	$(BIN)/python benchmarks/mutants.py --seed $(SEED) --count $(COUNT)

docs: $(DOCS_STAMP)  ## the pages of docs/ as a site in site/; a dead link or anchor is an error
	.venv-docs/bin/zensical build --strict

reference: $(STAMP)  ## docs/commands.md, the list of keys in docs/configuration.md, and what shells complete, as the code has them
	cd tests && ../$(BIN)/python unit/cli/test_command_reference.py && ../$(BIN)/python unit/config/test_documentation.py
	$(BIN)/python benchmarks/completion_table.py

pictures: $(STAMP)  ## docs/images/*.svg: what a terminal shows after a command
	cd tests && PYTHONPATH=. ../$(BIN)/python process/test_pictures.py

man: $(STAMP)  ## the man pages, in build/man; a wheel has them
	$(BIN)/python benchmarks/man_pages.py

lock:  ## write requirements/*.txt anew from pyproject.toml (needs uv)
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header \
	  --no-annotate pyproject.toml -o requirements/run.txt
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header \
	  --no-annotate pyproject.toml --group dev -o requirements/dev.txt
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header \
	  --no-annotate --group pyproject.toml:foreign -o requirements/foreign.txt
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header \
	  --no-annotate --group pyproject.toml:docs -o requirements/docs.txt
	for version in 1.2.1 1.8.1 1.10.1; do \
	  printf 'mcp==%s\npydantic<2.11\n' $$version | uv pip compile -q --universal --python-version 3.11 \
	    --generate-hashes --no-header --no-annotate - -o requirements/mcp-$${version%.*}.txt; done

clean:
	rm -rf .venv .venv-* .pytest_cache .ruff_cache .hypothesis .coverage* dist build

$(STAMP): requirements/dev.txt pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/dev.txt
	$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	$(BIN)/python -m compileall -q -j 0 src  # as pip does with what is not editable
	@touch $(STAMP)

$(DOCS_STAMP): requirements/docs.txt
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/docs.txt
	@touch $@

$(FOREIGN_STAMP): requirements/foreign.txt
	$(PYTHON) -m venv $(FOREIGN)
	$(FOREIGN)/bin/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/foreign.txt
	@touch $(FOREIGN_STAMP)

$(FOREIGN)/mcp-%/.installed: requirements/mcp-%.txt
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install -q --disable-pip-version-check --require-hashes -r $<
	@touch $@

# Without Node.js, the tests that need what is installed here are skipped.
$(FOREIGN_NODE_STAMP): $(FOREIGN_STAMP) requirements/node/package-lock.json
	@mkdir -p $(FOREIGN_NODE)
	cp requirements/node/package.json requirements/node/package-lock.json $(FOREIGN_NODE)
	if command -v npm > /dev/null; then cd $(FOREIGN_NODE) && npm ci --ignore-scripts --no-audit --no-fund; fi
	@touch $(FOREIGN_NODE_STAMP)
