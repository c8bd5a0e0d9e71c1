# Every target builds what it needs: on a fresh machine `make demo` or `make test` is enough.
PYTHON ?= python3.11
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
# Quiet TensorFlow's start-up chatter in the commands below; the library itself sets nothing.
export TF_CPP_MIN_LOG_LEVEL ?= 3
export TF_ENABLE_ONEDNN_OPTS ?= 0

.PHONY: help setup demo test test-all test-serving test-node lint format pictures api bench wheel clean
help:            ## show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(READY)  ## build the environment in .venv (done by every other target)

$(READY): requirements.lock setup.py pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "error: $(PYTHON) not found. lemn_tf needs Python 3.11: install it, or say 'make $(or $(MAKECMDGOALS),setup) PYTHON=/path/to/python3.11'." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' || { echo "error: $(PYTHON) is $$($(PYTHON) --version); lemn_tf needs Python 3.11." >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { echo "error: could not create $(VENV). Is the venv module installed and is there room on the disk (about 3 GB)?" >&2; exit 1; }
	@echo "installing the locked packages into $(VENV) (about a minute) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements.lock \
	  || { echo "error: installing requirements.lock failed. Check the network and the free disk space (about 3 GB; if a hash does not match, the package came changed: find out why), then run the same command again: it goes on where it stopped. If that does not help, 'make clean' first." >&2; exit 1; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e . \
	  || { echo "error: installing lemn_tf itself into $(VENV) failed; see the message above. 'make clean' and the same command start afresh." >&2; exit 1; }
	@touch $@

demo: $(READY)   ## run the main job
	$(BIN)/lemn demo

# The quick tests compile more than they run, so XLA need not optimise what it compiles for them.
test: lint       ## lint, then the quick tests (about nine minutes on two cores)
	XLA_FLAGS="--xla_backend_optimization_level=0 $(XLA_FLAGS)" $(BIN)/python -m pytest -q -n 2 --dist loadgroup

test-all: lint   ## the quick tests and the slow ones
	$(BIN)/python -m pytest -q -n 2 --dist loadgroup -m "slow or not slow"

test-serving: $(READY)  ## wire tests against a running server: URL=http://HOST:8501/v1/models/NAME [GRPC=HOST:8500]
	@test -n "$(URL)" || { echo "error: say which server: make test-serving URL=http://127.0.0.1:8501/v1/models/NAME [GRPC=127.0.0.1:8500]" >&2; exit 1; }
	LEMN_TEST_URL=$(URL) LEMN_TEST_GRPC=$(GRPC) $(BIN)/python -m pytest -q tests/export/wire

test-node: $(READY)  ## an export in Node (@tensorflow/tfjs-node), where node, npm and g++ are
	$(BIN)/python -m pytest -q -rs -m slow tests/export/node

lint: $(READY)   ## ruff check and format check, and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY) ## let ruff format and fix
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

pictures: $(READY)  ## make the pictures of README and docs again
	@mkdir -p build/pictures docs/pictures
	$(BIN)/lemn data babi --variant noisy --episodes 400 --out build/pictures
	$(BIN)/lemn compare babi-noisy-st-lemn-5 babi-noisy-st-lemn-10 babi-noisy-st-lemn-3to20 --data build/pictures/noisy_train.txt --slots 3,5,7,10,20 --policies fifo,lru --figure docs/pictures/sizes.svg
	$(BIN)/lemn trace babi-noisy-st-lemn-5 --data build/pictures/noisy_test.txt --episode 39 --figure docs/pictures/life-lines.svg
	$(BIN)/lemn play imaze-mqn-st-lemn-4 --length 9 --out docs/pictures/memory.gif
	$(BIN)/lemn report babi-noisy-st-lemn-5 --data build/pictures/noisy_test.txt --out build/pictures/report.html
	$(BIN)/python docs/screenshot.py build/pictures/report.html docs/pictures/report.png

api: $(READY)    ## write docs/api.md from the docstrings
	$(BIN)/python docs/api.py

bench: $(READY)  ## run the benchmarks
	@for f in benchmarks/bench_*.py; do echo "== $$f"; $(BIN)/python $$f || exit 1; done

wheel: $(READY)  ## build dist/*.whl
	$(BIN)/python -m build --wheel --no-isolation

clean:           ## remove the environment and build products
	rm -rf $(VENV) build dist *.egg-info
