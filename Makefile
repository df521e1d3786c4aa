# `make demo` and `make test` do all their set-up themselves, in this folder, with any Python 3.11 or newer.
# Another interpreter than the one found: make PYTHON=/path/to/python3.12 test

.DEFAULT_GOAL := help
SHELL := /bin/sh

VENV := .venv
# Real clients of the older MCP line cannot live beside those of the newer one; tests/journeys runs them from here.
MCP1 := .venv-mcp1
# aider pins all it needs to the digit, and fastmcp brings much of its own; tests/clients runs them from here, and
# JavaScript from beside its lock.
AIDER := .venv-aider
FASTMCP := .venv-fastmcp
# The browser's driver, for tests/browser.
PAGE := .venv-page
JS := tests/clients/js
BIN := $(VENV)/bin
# Whatever this shell has set must not decide how the tests or the demo run, nor keep them from caching compiled code.
CLEAN_ENV := env -u PYTHONPATH -u PYTHONHOME -u PYTHONDONTWRITEBYTECODE

# A name may be there and not start, as the stand-ins of version managers do; so each is tried.
PYTHON ?= $(shell for name in python3 python3.13 python3.12 python3.11 python3.14 python; do \
	"$$name" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 \
	&& { command -v "$$name"; break; }; done)

.PHONY: help demo test crash clients page lint types check bench lock clean

help:  ## say what there is
	@sed -n 's/^\([a-z]*\):.*## /  make \1	/p' $(MAKEFILE_LIST)

demo: $(VENV)/ready  ## run the proxy with an emulated gateway, and say what to paste
	$(CLEAN_ENV) $(BIN)/python -m proxy demo $(ARGS)

test: $(VENV)/ready $(MCP1)/ready | ffprobe strace prometheus  ## run all tests but those of `make clients` and `make page`
	$(CLEAN_ENV) MCP1_PYTHON="$(CURDIR)/$(MCP1)/bin/python" $(BIN)/python -m pytest -n auto $(ARGS)

# A kill takes a third of a second on one core; KILLS=1000 is a matter of minutes.
KILLS ?= 10000
crash: $(VENV)/ready  ## kill the proxy KILLS times in the middle of traffic, and check the books after each
	$(CLEAN_ENV) $(BIN)/python -m tests.crash --kills $(KILLS) $(ARGS)

clients: $(VENV)/ready $(JS)/node_modules/ready $(FASTMCP)/ready  ## run real SDKs and coding agents through the proxy; they take 2 GB
	@$(MAKE) --no-print-directory $(AIDER)/ready || echo "AIDER WAS NOT INSTALLED, and its tests do not run; it needs Python 3.10 to 3.12." >&2
	$(CLEAN_ENV) $(BIN)/python -m pytest -n 2 --dist loadfile tests/clients $(ARGS)

# SHOTS=1 writes the pictures of docs/page anew.
page: $(VENV)/ready $(PAGE)/ready | chromium  ## open the page in a real browser
	$(CLEAN_ENV) SLUICEGATE_PYTHON="$(CURDIR)/$(BIN)/python" $(PAGE)/bin/python -m pytest -c tests/browser/pytest.ini \
		--rootdir tests/browser --confcutdir tests/browser tests/browser $(ARGS)

lint: $(VENV)/ready  ## judge form
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(VENV)/ready  ## judge types
	$(BIN)/mypy

check: lint types test  ## everything that has to hold before a change is offered

# QUICK=1 for one short round, ROUNDS=, SECONDS=, ONLY=cell,cell and WHO=candidate,candidate for parts of it.
bench: $(VENV)/ready  ## measure the proxy beside others, and write bench/RESULTS.md
	$(CLEAN_ENV) $(BIN)/python -m bench

clean:  ## take away what these commands made
	rm -rf $(VENV) $(MCP1) $(AIDER) $(FASTMCP) $(PAGE) $(JS)/node_modules .venv-lock build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find proxy tests -name __pycache__ -type d -prune -exec rm -rf {} +

lock: | found-python  ## renew every constraints file
	test -x .venv-lock/bin/uv || { "$(PYTHON)" -m venv .venv-lock && .venv-lock/bin/python -m pip install -q uv; }
	$(call compile,constraints.txt,build,--all-extras --group test --group check pyproject.toml)
	$(call compile,constraints-mcp1.txt,mcp1,)
	$(call compile,tests/clients/constraints-aider.txt,aider,)
	$(call compile,tests/clients/constraints-fastmcp.txt,fastmcp,)
	$(call compile,tests/browser/constraints.txt,page,)

# The first lines of a lock say what it is for; `#:` lines name what it holds beside the project's own lists.
define compile
	sed -n 's/^#: //p' $(1) > .venv-lock/$(2).in
	sed -n '/^#/p' $(1) > .venv-lock/$(2).txt
	.venv-lock/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-header --no-annotate $(3) .venv-lock/$(2).in -o .venv-lock/$(2).out
	cat .venv-lock/$(2).out >> .venv-lock/$(2).txt
	mv .venv-lock/$(2).txt $(1)
endef

$(VENV)/ready: constraints.txt pyproject.toml | found-python
	$(call install,$(VENV),constraints.txt)
	$(BIN)/python -m pip install -q --no-deps --no-build-isolation -e .
	touch $@

$(MCP1)/ready: constraints-mcp1.txt | found-python
	$(call install,$(MCP1),constraints-mcp1.txt)
	touch $@

# Not `npm ci`: the lock lacks packages for other platforms that the registry it was made with does not carry.
$(JS)/node_modules/ready: $(JS)/package.json $(JS)/package-lock.json
	@command -v npm >/dev/null || { echo "The clients need Node.js 20 or newer with npm." >&2; exit 1; }
	@echo "setting up $(JS)/node_modules with Node.js $$(node --version)"
	cd $(JS) && npm install --no-save --loglevel=error
	touch $@

$(AIDER)/ready: tests/clients/constraints-aider.txt | found-python
	$(call install,$(AIDER),tests/clients/constraints-aider.txt)
	touch $@

$(FASTMCP)/ready: tests/clients/constraints-fastmcp.txt | found-python
	$(call install,$(FASTMCP),tests/clients/constraints-fastmcp.txt)
	touch $@

$(PAGE)/ready: tests/browser/constraints.txt | found-python
	$(call install,$(PAGE),tests/browser/constraints.txt)
	touch $@

# Exactly what the lock lists, pip included, and only files with its hashes. Code is compiled when it is first imported:
# most of what is installed never is.
define install
	@echo "setting up $(1) with $(PYTHON)"
	"$(PYTHON)" -m venv --clear $(1)
	$(CLEAN_ENV) $(1)/bin/python -m pip install -q --disable-pip-version-check --no-compile --require-hashes -r $(2)
endef

# The tests of media decode them with ffprobe. Where it cannot be installed, those tests fail and say so.
.PHONY: ffprobe
ffprobe:
	@command -v ffprobe >/dev/null || { command -v apt-get >/dev/null && test "$$(id -u)" = 0 \
		&& { apt-get update -q && apt-get install -y -q --no-install-recommends ffmpeg; } >/dev/null; } || \
		echo "ffprobe is missing and was not installed (it is in Debian's ffmpeg): tests of media will fail" >&2

# What goes to the disk before what goes to the gateway is read from the calls of the system. Where strace is missing or
# not allowed, as in some containers, those tests are skipped and say so.
.PHONY: strace
strace:
	@command -v strace >/dev/null || { command -v apt-get >/dev/null && test "$$(id -u)" = 0 \
		&& { apt-get update -q && apt-get install -y -q --no-install-recommends strace; } >/dev/null; } || \
		echo "strace is missing and was not installed: tests of what is on the disk will be skipped" >&2

# The tests of dashboard and alerts ask a real Prometheus. Where it cannot be installed, those tests fail and say so.
.PHONY: prometheus
prometheus:
	@command -v prometheus >/dev/null || { command -v apt-get >/dev/null && test "$$(id -u)" = 0 \
		&& { apt-get update -q && apt-get install -y -q --no-install-recommends prometheus; } >/dev/null; } || \
		echo "prometheus is missing and was not installed (Debian's package prometheus): tests of the dashboard will fail" >&2

.PHONY: chromium
chromium:
	@command -v chromium >/dev/null || { command -v apt-get >/dev/null && test "$$(id -u)" = 0 \
		&& { apt-get update -q && apt-get install -y -q --no-install-recommends chromium; } >/dev/null; } || \
		echo "chromium is missing and was not installed (Debian's package chromium): the page is not tried" >&2

.PHONY: found-python
found-python:
	@test -n "$(PYTHON)" || { echo "No Python 3.11 or newer with venv was found. Install one (on Debian also python3-venv)," \
		"or name it: make PYTHON=/path/to/python3" >&2; exit 1; }
