# Everything a newcomer needs: `make demo` and `make test`. Only Python >= 3.11 and make are assumed.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
BASE   := $(VENV)/.base
READY  := $(VENV)/.ready
# Workers take tests from each other, neighbours stay together: what one compiled, the next finds.
PYTEST := $(BIN)/python -m pytest -n auto --dist worksteal

# uv installs in seconds what takes pip a minute. It does not read pip's configuration: what it cannot have, pip installs.
export UV_HTTP_TIMEOUT ?= 20
PIP_INSTALL := $(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check
define install
	UV_FIND_LINKS="$$PIP_FIND_LINKS" UV_DEFAULT_INDEX="$$PIP_INDEX_URL" UV_INDEX="$$PIP_EXTRA_INDEX_URL" \
	  $(BIN)/uv pip install --quiet --python $(BIN)/python $(1) 2> $(VENV)/uv.log || $(PIP_INSTALL) $(1)
endef

# Tests start Python hundreds of times; without bytecode each start would compile NumPy's source again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test tests test-all test-interop test-interop-all test-emulated torture test-browser test-cuda sanitize docs lint bytecode format lock clean

# What a user needs and no more: NumPy, LLVM's bindings, click, rich (and uv, which installs them).
demo: $(BASE)
	$(BIN)/tilewise demo

# mypy takes one core for half a minute: the tests begin beside it. What each worker would else compile for itself is
# compiled once, before them.
test: $(READY)
	$(MAKE) --no-print-directory -j 2 lint tests

tests: bytecode
	$(PYTEST)

test-all: $(READY) lint
	$(PYTEST) --seed clock -m 'not cuda and not browser and not interop and not emulated and not torture'

# Faults on purpose (kills, full disks, damage, forks, …) and fuzzed readers, for TORTURE_SECONDS (600) each; prints how many of each kind.
torture: $(READY)
	$(BIN)/python -m pytest --seed clock -m torture -s tests/torture

# Gradients, torch.compile, jit: with PyTorch or JAX in the environment (.venv/bin/pip install torch jax).
test-interop: $(READY)
	$(PYTEST) -m 'interop and not slow and not cuda' tests/torch tests/jax tests/docs

# Every case of them: those that test-interop draws leave the others to this.
test-interop-all: $(READY)
	$(PYTEST) -m 'interop and not cuda' tests/torch tests/jax tests/docs

# Kernels of the other architecture, compiled here and executed under qemu (Debian: .ci/emulation unpacks what it needs).
test-emulated: $(READY)
	TILEWISE_EMULATED_PYTHON=$$(.ci/emulation .emulation) $(BIN)/python -m pytest -s -m 'emulated and not slow' tests/backends/cpu

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
	PYTHONPATH=src:tests/support compute-sanitizer --tool memcheck --error-exitcode 9 $(PYTHON) tests/cuda/sanitize_families.py
	PYTHONPATH=src:tests/support compute-sanitizer --tool racecheck --error-exitcode 9 $(PYTHON) tests/cuda/sanitize_families.py

# The documentation site; it runs the notebooks.
docs: $(READY)
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo docs/_build/html/index.html

bytecode: $(READY)
	@$(BIN)/python -m pytest -q --collect-only $(COLLECTED) > /dev/null 2>&1 || true  # what fails here is said by the tests' own run

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
	sed -n '/^uv==/,/[^\]$$/p' requirements.lock > $(VENV)/uv.lock
	$(PIP_INSTALL) --require-hashes -r $(VENV)/uv.lock || true
	$(call install,--require-hashes -r requirements-base.lock)
	$(call install,--no-deps --editable .)
	touch $@

$(READY): $(BASE) requirements.lock
	$(call install,--require-hashes -r requirements.lock)
	touch $@

clean:
	rm -rf $(VENV) .emulation .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist docs/_build docs/_live docs/reference.md docs/notebooks/*.md docs/notebooks/*/*.md
