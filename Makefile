# Short names for the commands in README.md and CONTRIBUTING.md; nothing happens here that isn't written there.

PYTHON = .venv/bin/python

.PHONY: all setup test coverage mutants lint docs site ci run clean

all: lint test

setup: .venv

.venv: setup.cfg
	python3 -m venv .venv
	.venv/bin/pip install -q -e '.[test,lint]'
	touch .venv

test: .venv
	$(PYTHON) -m twisted.trial -j4 tests

coverage: .venv
	COVERAGE_HOME=$(CURDIR) COVERAGE_PROCESS_START=$(CURDIR)/.ci/coveragerc $(PYTHON) -m twisted.trial -j4 tests
	COVERAGE_HOME=$(CURDIR) $(PYTHON) -m coverage combine -q --rcfile=.ci/coveragerc
	COVERAGE_HOME=$(CURDIR) $(PYTHON) -m coverage report --rcfile=.ci/coveragerc

mutants: .venv
	.venv/bin/pip install -q -e '.[mutants]'
	$(PYTHON) -m tests.mutants

lint: .venv
	.venv/bin/ruff check
	.venv/bin/ruff format --check
	.venv/bin/mypy
	.venv/bin/lint-imports --config setup.cfg

# What in the docs is made from the code.
docs: .venv
	$(PYTHON) -m tests.documents

# The documents as a site, in build/site.
site: .venv
	.venv/bin/pip install -q -e '.[docs]'
	$(PYTHON) -m tests.site

ci:
	.ci/run

run: .venv
	.venv/bin/twistd -n --pidfile= webhookrx --port tcp:8181:interface=127.0.0.1

clean:
	rm -rf .venv build dist *.egg-info _trial_temp* .coverage* .mypy_cache .ruff_cache .import_linter_cache .hypothesis
