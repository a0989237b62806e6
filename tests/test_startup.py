"""Nothing heavy is imported before it is used."""

from __future__ import annotations

import os
import subprocess
import sys

HEAVY = ("numpy", "llvmlite", "cuda", "torch", "cupy", "jax", "rich", "matplotlib", "dask", "ml_dtypes")


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_importing_tilewise_imports_nothing_heavy():
    loaded = run("import sys, tilewise; print(*sys.modules)").split()
    assert not {name.partition(".")[0] for name in loaded} & set(HEAVY)


def test_multiplying_on_the_cpu_imports_no_framework():
    loaded = run("import sys, tilewise as tw; tw.matmul([[1.0]], [[2.0]]); print(*sys.modules)").split()
    assert not {name.partition(".")[0] for name in loaded} & {"cuda", "torch", "cupy", "jax", "rich", "click"}
    assert "tilewise.kernels.registry" not in loaded, "what multiplies on a card takes 0.1 s to import"
    assert not {"numpy.ma", "numpy.random"} & set(loaded)


def test_planning_for_a_card_imports_no_kernel_of_the_cpu():
    code = "import sys, tilewise.api, tilewise.kernels.choosing; print(*sys.modules)"
    assert "tilewise.backends.cpu.registry" not in run(code).split()


def test_a_small_trace_imports_nothing_it_does_not_need():
    """Each of these took 10 ms or more of the 400 that a small trace may take."""
    traced = "from tilewise.cli.main import run; run(['trace', '--shape', '4x4x4'])"
    code = f"import sys; before = {{*sys.modules}}; {traced}; print(); print(*{{*sys.modules}} - before)"
    loaded = set(run(code).splitlines()[-1].split())
    assert not loaded & {"numpy.ma", "numpy.random", "importlib.resources", "tilewise.core.machine", "llvmlite", "rich"}


def test_a_framework_that_is_not_there_is_named():
    code = "import sys; sys.modules['torch'] = None; import tilewise as tw; tw.torch"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "tilewise.torch needs torch, which is not installed: pip install 'tilewise[torch]'" in done.stderr


def fastest(arguments, tries=5):
    """Processor time of the quickest of a few runs: what a busy neighbour takes does not count."""
    times = []
    for _ in range(tries):
        before = os.times()
        subprocess.run(arguments, capture_output=True, check=True)
        after = os.times()
        times.append(after.children_user - before.children_user + after.children_system - before.children_system)
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
