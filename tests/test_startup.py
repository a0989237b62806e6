"""Nothing heavy is imported before it is used."""

from __future__ import annotations

import subprocess
import sys
import time

HEAVY = ("numpy", "llvmlite", "cuda", "torch", "cupy", "jax", "rich", "matplotlib", "dask", "ml_dtypes")


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_importing_tilewise_imports_nothing_heavy():
    loaded = run("import sys, tilewise; print(*sys.modules)").split()
    assert not {name.partition(".")[0] for name in loaded} & set(HEAVY)


def test_multiplying_on_the_cpu_imports_no_framework():
    loaded = run("import sys, tilewise as tw; tw.matmul([[1.0]], [[2.0]]); print(*sys.modules)").split()
    assert not {name.partition(".")[0] for name in loaded} & {"cuda", "torch", "cupy", "jax", "rich", "click"}


def fastest(arguments, tries=5):
    times = []
    for _ in range(tries):
        start = time.perf_counter()
        subprocess.run(arguments, capture_output=True, check=True)
        times.append(time.perf_counter() - start)
    return min(times)


def test_import_and_help_are_quick():
    bare = fastest([sys.executable, "-c", "pass"])
    assert fastest([sys.executable, "-c", "import tilewise"]) - bare < 0.15
    assert fastest([sys.executable, "-m", "tilewise", "--help"]) < 0.25 + bare


def test_every_public_name_is_there():
    import tilewise

    for name in tilewise.__all__:
        assert getattr(tilewise, name) is not None
    assert set(tilewise.__all__) <= set(dir(tilewise))
