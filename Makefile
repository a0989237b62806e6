# Everything a newcomer needs: `make demo` and `make test`. Only Python >= 3.11 and make are assumed.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
BASE   := $(VENV)/.base
READY  := $(VENV)/.ready
# Workers take tests from each other, neighbours stay together: what one compiled, the next finds.
PYTEST := $(BIN)/python -m pytest -n auto --dist worksteal

# Tests start Python hundreds of times; without bytecode each start would compile NumPy's source again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-all test-interop test-interop-all test-emulated torture test-browser test-cuda sanitize docs lint format lock clean

# What a user needs and no more: NumPy, LLVM's bindings, click, rich.
demo: $(BASE)
	$(BIN)/tilewise demo

test: $(READY) lint
	$(PYTEST)

test-all: $(READY) lint
	$(PYTEST) -m 'not cuda and not browser and not interop and not emulated and not torture'

# Faults on purpose (kills, full disks, damage, forks, …) and fuzzed readers, for TORTURE_SECONDS (600) each; prints how many of each kind.
torture: $(READY)
	$(BIN)/python -m pytest -m torture -s tests/torture

# Gradients, torch.compile, jit: with PyTorch or JAX in the environment (.venv/bin/pip install torch jax).
test-interop: $(READY)
	$(PYTEST) -m 'interop and not slow and not cuda' tests/interop tests/docs

# Every case of them: those that test-interop draws by the clock leave the others to this.
test-interop-all: $(READY)
	$(PYTEST) -m 'interop and not cuda' tests/interop tests/docs

# Kernels of the other architecture, compiled here and executed under qemu (Debian: .ci/emulation unpacks what it needs).
test-emulated: $(READY)
	TILEWISE_EMULATED_PYTHON=$$(.ci/emulation .emulation) $(BIN)/python -m pytest -s -m 'emulated and not slow' tests/engines/cpu

# The page in a real Chromium (Debian: apt-get install chromium chromium-driver); axe-core comes through npm.
test-browser: $(READY)
	$(PYTEST) -m 'browser and not slow' tests/browser

# On a machine with a card; uses the Python at hand, which may already hold torch or CuPy.
test-cuda:
	PYTHONPATH=src $(PYTHON) -m pytest -m cuda tests

# compute-sanitizer over every rung and every family; needs a card.
sanitize:
	PYTHONPATH=src compute-sanitizer --tool memcheck --error-exitcode 9 $(PYTHON) tests/cuda/sanitize.py
	PYTHONPATH=src compute-sanitizer --tool racecheck --error-exitcode 9 $(PYTHON) tests/cuda/sanitize.py
	PYTHONPATH=src compute-sanitizer --tool memcheck --error-exitcode 9 $(PYTHON) tests/cuda/sanitize_numbers.py
	PYTHONPATH=src compute-sanitizer --tool racecheck --error-exitcode 9 $(PYTHON) tests/cuda/sanitize_numbers.py
	PYTHONPATH=src compute-sanitizer --tool memcheck --error-exitcode 9 $(PYTHON) tests/cuda/sanitize_many.py
	PYTHONPATH=src compute-sanitizer --tool racecheck --error-exitcode 9 $(PYTHON) tests/cuda/sanitize_many.py
	PYTHONPATH=src:tests compute-sanitizer --tool memcheck --error-exitcode 9 $(PYTHON) tests/cuda/sanitize_families.py
	PYTHONPATH=src:tests compute-sanitizer --tool racecheck --error-exitcode 9 $(PYTHON) tests/cuda/sanitize_families.py

# The documentation site; it runs the notebooks.
docs: $(READY)
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo docs/_build/html/index.html

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The exact versions everything was tested with, hashes included.
lock: $(READY)
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header --no-annotate \
	  --no-emit-index-url --no-emit-find-links --extra dev pyproject.toml -o requirements.lock
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header --no-annotate \
	  --no-emit-index-url --no-emit-find-links pyproject.toml -c requirements.lock -o requirements-base.lock

$(BASE): pyproject.toml requirements-base.lock
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "tilewise needs Python 3.11 or newer, this is " + sys.version.split()[0])'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check --require-hashes -r requirements-base.lock
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check --no-deps --editable .
	touch $@

$(READY): $(BASE) requirements.lock
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check --require-hashes -r requirements.lock
	touch $@

clean:
	rm -rf $(VENV) .emulation .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist docs/_build docs/_live docs/reference.md docs/notebooks/*.md docs/notebooks/*/*.md
