# Everything a newcomer or CI runs. The environment is made on first use in .venv and made again only when
# pyproject.toml or constraints.txt change.
#
#   make demo    see it work: local nodes, traffic, planted faults, a summary
#   make test    the whole test suite
#   make check   what must be green before a commit: format, lint, types, fast tests
#   make bench   CPU per request and the other figures of docs/benchmarks.md
#   make kafka   a Kafka broker on this machine, in the foreground (needs Java 17)

SHELL := /bin/bash
.DELETE_ON_ERROR:
.PHONY: help setup demo test check format lint types fast nodes clients docs bench broker containers kafka constraints clean

VENV ?= .venv
PY := $(VENV)/bin/python
STAMP := $(VENV)/.installed
SOURCES := gnomon proxy ingest analytics api tests bench
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PYTHONDONTWRITEBYTECODE ?= 1

help:
	@sed -n '4,8s/^#  *//p' Makefile

# The first interpreter that is new enough and can make a virtual environment.
define FIND_PYTHON
for name in "$${PYTHON:-}" python3.14 python3.13 python3.12 python3.11 python3 python; do \
  [ -n "$$name" ] && command -v "$$name" >/dev/null 2>&1 || continue; \
  "$$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue; \
  if "$$name" -c 'import ensurepip, venv' 2>/dev/null; then echo "$$name"; exit 0; fi; \
  without_venv="$$name"; \
done; \
if [ -n "$${without_venv:-}" ]; then \
  echo "make: $$without_venv cannot make a virtual environment; install it: apt-get install python3-venv" >&2; \
else \
  echo "make: Python 3.11 or newer is needed; install it: apt-get install python3 python3-venv" >&2; \
fi; exit 1
endef

# By content, not by time: a fresh checkout of the same versions installs nothing again.
setup:
	@wanted="$$(cat pyproject.toml constraints.txt | cksum)"; \
	if [ -x "$(PY)" ] && [ "$$(cat $(STAMP) 2>/dev/null)" = "$$wanted" ]; then exit 0; fi; \
	set -e; \
	if [ ! -x "$(PY)" ]; then \
	  python="$$($(FIND_PYTHON))"; \
	  echo "make: creating $(VENV) with $$("$$python" --version)" >&2; \
	  "$$python" -m venv "$(VENV)"; \
	fi; \
	started=$$SECONDS; \
	echo "make: installing gnomon and its tools into $(VENV) (once; about 1.3 GB, chDB the most)" >&2; \
	"$(PY)" -m pip install --quiet -c constraints.txt -e '.[dev]'; \
	printf '%s\n' "$$wanted" > "$(STAMP)"; \
	echo "make: installed in $$((SECONDS - started)) s, $$(du -sh "$(VENV)" | cut -f1)" >&2

demo: setup
	@$(VENV)/bin/gnomon demo $(ARGS)

test: setup
	@$(PY) -m pytest $(ARGS)

check: setup format lint types fast

format:
	@$(VENV)/bin/ruff format --check .

lint:
	@$(VENV)/bin/ruff check .

types:
	@$(VENV)/bin/mypy

fast:
	@$(PY) -m pytest -q -m 'not e2e and not nodes and not clickhouse and not kafka and not deep' $(ARGS)

# Real EVM nodes for `make demo` and the tests marked `nodes`, outside the clone; `gnomon demo` does the same by itself.
nodes: setup
	@command -v npm >/dev/null || { echo "make: npm is needed: apt-get install nodejs npm" >&2; exit 1; }
	@$(PY) -c 'import asyncio, os; from gnomon.demo.installation import find_or_install; \
	print(asyncio.run(find_or_install(dict(os.environ), print)))'

# viem and ethers, which tests marked `nodes` ask through the proxy, outside the clone.
clients: setup
	@command -v npm >/dev/null || { echo "make: npm is needed: apt-get install nodejs npm" >&2; exit 1; }
	@$(PY) -m tests.clients.libraries
	@$(PY) -m tests.browser.tools

docs: setup
	@$(PY) -m gnomon.config.reference > docs/configuration.md
	@$(PY) -m gnomon.cli.reference docs/reference
	@$(PY) -m api.app > docs/openapi.json
	@$(PY) -m analytics.dashboards deploy/grafana/dashboards
	@$(PY) -m analytics.alerting.export > deploy/prometheus/gnomon.rules.yaml

bench: setup
	@$(PY) -m bench $(ARGS)

# Apache Kafka's jars, for `make kafka` and the tests marked `kafka`, outside the clone.
broker: setup
	@command -v java >/dev/null || { echo "make: Java is needed: apt-get install openjdk-17-jre-headless" >&2; exit 1; }
	@command -v mvn >/dev/null || { echo "make: Maven is needed: apt-get install maven" >&2; exit 1; }
	@$(PY) -m tests.broker.jars

# What reads Dockerfile and docker-compose.yml, for the tests marked `containers`: no Docker engine is needed.
containers: setup
	@"$(PY)" -m pip install --quiet -c constraints.txt -e '.[containers]'

kafka: broker
	@$(PY) -m tests.broker $(ARGS)

constraints: setup
	@{ sed -n '/^#/p' constraints.txt; \
	$(PY) -m pip freeze --exclude-editable --exclude gnomon | grep -v '^-e'; } > constraints.new
	@mv constraints.new constraints.txt

clean:
	@rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache
