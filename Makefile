# Targets for developers and CI. Needs Python >= 3.11, make and a C++ compiler. Everything else, cmake and
# ninja too, comes from PyPI into .venv. To use another interpreter: make PYTHON=python3.12

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PY     := $(BIN)/python

# Prefer cmake and ninja of the environment to those of the machine.
export PATH := $(CURDIR)/$(BIN):$(PATH)

# Empty files in the environment mark finished steps; deleting .venv deletes them too.
TOOLS_DONE := $(VENV)/.tools-installed
BUILD_DONE := $(VENV)/.crfx-installed
BENCH_DONE := $(VENV)/.bench-installed
DOCS_DONE  := $(VENV)/.docs-installed
TORCH_DONE := $(VENV)/.torch-installed

CPP_FILES := $(shell find cpp -name '*.hpp' -o -name '*.cpp' 2>/dev/null)
# Inputs of the compiled module. Python files are not: the install is editable.
CORE_FILES := CMakeLists.txt $(shell find cpp -path cpp/tests -prune -o -type f -print 2>/dev/null)

# Test processes: one more than cores, because the tests of clusters run one by one and mostly wait.
TESTERS ?= $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 1) + 1)')

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup build stubs lint format types test test-core sanitize docs torch bench gpu demo \
        reproduce clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' Makefile

setup: $(BUILD_DONE) ## create .venv and install crfx and the developers' tools

build: $(BUILD_DONE) ## compile the core if its sources changed

$(TOOLS_DONE): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "crfx needs Python 3.11 or newer, but '$(PYTHON)' is older or missing." \
	       "Use another: make PYTHON=python3.12" >&2; exit 1; }
	@for cxx in $(firstword $(CXX)) c++ clang++; do command -v "$$cxx" && break; done >/dev/null || { \
	  echo "crfx needs a C++ compiler; install g++ or clang, or pass yours: CXX=..." >&2; exit 1; }
	@$(PY) -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv $(VENV)
	@$(PY) -c 'import tomllib; p = tomllib.load(open("pyproject.toml", "rb")); \
	  print(*p["build-system"]["requires"], *p["project"]["dependencies"], \
	        *p["project"]["optional-dependencies"]["dev"], sep="\n")' > $(VENV)/requirements.txt
	$(PY) -m pip install --quiet -r $(VENV)/requirements.txt
	@touch $@

# Without build isolation the build folder is kept, and only changed files are compiled again.
$(BUILD_DONE): $(TOOLS_DONE) pyproject.toml $(CORE_FILES)
	$(PY) -m pip install --quiet --no-build-isolation --no-deps --editable .
	@touch $@

stubs: $(BUILD_DONE) ## regenerate the type stub of the compiled module
	$(PY) -m nanobind.stubgen -q -m crfx._core._native -o src/crfx/_core/_native.pyi

lint: $(TOOLS_DONE) ## check style and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run --Werror $(CPP_FILES)

format: $(TOOLS_DONE) ## fix style and format where that is automatic
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(CPP_FILES)

types: $(TOOLS_DONE) ## check types with mypy --strict
	$(BIN)/mypy

test: $(BUILD_DONE) ## run all tests: Python, doctests, examples, README, then the C++ core
	$(PY) -m pytest -n $(TESTERS) --dist loadgroup $(PYTEST_ARGS)
	@$(MAKE) --no-print-directory test-core

test-core: build/core/build.ninja ## run the C++ tests of the core, without Python
	$(BIN)/cmake --build build/core
	$(BIN)/ctest --test-dir build/core --output-on-failure --no-tests=error

sanitize: build/sanitize/build.ninja ## run the C++ tests under address and undefined-behaviour sanitizers
	$(BIN)/cmake --build build/sanitize
	$(BIN)/ctest --test-dir build/sanitize --output-on-failure --no-tests=error

build/core/build.ninja: CMAKE_ARGS := -DCMAKE_BUILD_TYPE=Release
build/sanitize/build.ninja: CMAKE_ARGS := -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCRFX_SANITIZE=ON
# Configure once; afterwards ninja runs cmake whenever CMakeLists.txt changes.
build/%/build.ninja: | $(TOOLS_DONE)
	$(BIN)/cmake -S . -B $(@D) -G Ninja -DCRFX_BUILD_TESTS=ON -DCRFX_BUILD_PYTHON=OFF $(CMAKE_ARGS)

# Install the requirements of an extra of pyproject.toml, without crfx itself.
$(DOCS_DONE) $(BENCH_DONE): $(VENV)/.%-installed: pyproject.toml | $(BUILD_DONE)
	@$(PY) -c 'import tomllib; p = tomllib.load(open("pyproject.toml", "rb")); \
	  print(*p["project"]["optional-dependencies"]["$*"], sep="\n")' > $(VENV)/$*-requirements.txt
	$(PY) -m pip install --quiet -r $(VENV)/$*-requirements.txt
	@touch $@

torch: $(TORCH_DONE) ## install PyTorch, which the tests of one page of docs/ need

# At most the release of the benchmarks. Newer ones may bring gigabytes of GPU libraries.
$(TORCH_DONE): | $(TOOLS_DONE)
	$(PY) -m pip install --quiet 'torch>=2.2,<=2.13.0'
	@touch $@

# The variable turns off the theme's notice about MkDocs 2; docs/decisions/0020 discusses it.
docs: $(DOCS_DONE) ## build the documentation site into build/site; warnings are errors
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@echo 'built; to view it: python -m http.server -d build/site'

bench: $(BENCH_DONE) ## run the benchmarks, against other libraries
	$(PY) benchmarks/inference.py $(BENCH_ARGS)
	$(PY) benchmarks/boosting.py
	$(PY) benchmarks/linear.py
	$(PY) benchmarks/hidden_units.py
	$(PY) benchmarks/treecrf.py
	$(PY) benchmarks/objectives.py
	$(PY) benchmarks/ranking.py
	$(PY) benchmarks/tagging.py
	$(PY) benchmarks/class_weights.py
	$(PY) benchmarks/shards.py
	$(PY) benchmarks/out_of_core.py
	$(PY) benchmarks/distributed.py
	$(PY) benchmarks/latency.py
	$(PY) benchmarks/text_template.py
	$(PY) benchmarks/cli.py
	$(PY) benchmarks/report_page.py
	$(PY) benchmarks/real_work.py

gpu: $(BUILD_DONE) ## test and measure training on an NVIDIA GPU
	$(PY) -m pytest -q tests/estimators/test_cuda.py
	$(PY) benchmarks/gpu.py

demo: $(BUILD_DONE) ## train on strings of handwritten digits, without and with transitions
	@$(BIN)/crfx demo

reproduce: $(BUILD_DONE) ## reproduce a published table: TABLE=ocr; without TABLE, list them
	$(PY) -m reproduce $(or $(TABLE),--list) $(REPRODUCE_ARGS)

clean: ## remove .venv, builds and caches
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
