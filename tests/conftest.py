"""Every test run has caches of its own, so nothing left from an earlier run can make a test pass."""

from __future__ import annotations

import gc
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")  # XLA's, of programs of a few cells: a fifth of the time
sys.path.insert(0, str(Path(__file__).parent / "support"))  # not tests/ itself: it has a folder named torch

from warm_starts import Nursery

settings.register_profile(
    "ci", max_examples=6, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)
settings.register_profile("all", max_examples=2500, deadline=None, suppress_health_check=list(HealthCheck))
settings.load_profile(os.environ.get("TILEWISE_TEST_PROFILE", "ci"))


SEED = "TILEWISE_TEST_SEED"  # in the environment: workers start with it, and so do processes that tests start


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seed", metavar="N|clock", help="Draw other random cases; `clock`: new ones each time.")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.write_line(f"random cases were drawn with --seed {os.environ[SEED]}")


def pytest_configure(config: pytest.Config) -> None:
    for ignored in (signal.SIGINT, getattr(signal, "SIGHUP", signal.SIGINT)):  # `nohup` and `&` leave them ignored,
        if signal.getsignal(ignored) is signal.SIG_IGN:  # for the processes that tests start, too
            signal.signal(ignored, signal.default_int_handler if ignored is signal.SIGINT else signal.SIG_DFL)
    given = config.getoption("seed")
    if given and not hasattr(config, "workerinput"):  # a worker has it in its environment
        os.environ[SEED] = str(time.time_ns() % 2**31) if given == "clock" else given
    os.environ.setdefault(SEED, "1")
    for name in ("thread_unsafe", "leaks_references", "valgrind_error", "parametrize_threads"):
        config.addinivalue_line("markers", f"{name}: NumPy's, on its own tests")


@pytest.hookimpl(optionalhook=True)  # xdist may be missing
def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores: tests wait for limits, for programs they kill and for other processes."""
    return (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1) + 1


@pytest.hookimpl(hookwrapper=True)
def pytest_collection() -> Iterator[None]:
    """Modules and tests live until the end: no collection of garbage looks at them, now or later."""
    gc.disable()
    yield
    gc.freeze()
    gc.enable()


FRAMEWORKS = {Path(__file__).parent / name: name for name in ("torch", "jax")}
MARKED = {Path(__file__).parent / name: name for name in ("cuda", "browser")}  # folders whose tests all have that mark


def unselected(config: pytest.Config) -> frozenset[str]:
    """The marks that an expression such as `-m 'a and not b and not c'` excludes."""
    expression = config.option.markexpr
    whole = re.fullmatch(r"(not )?\w+( and (not )?\w+)*", expression)
    return frozenset(re.findall(r"not (\w+)", expression)) if whole else frozenset()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """The tests of a framework that is not installed, and folders of tests that -m excludes, are not read."""
    missing = collection_path in FRAMEWORKS and find_spec(FRAMEWORKS[collection_path]) is None
    return True if missing or MARKED.get(collection_path) in unselected(config) else None


@pytest.hookimpl(hookwrapper=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> Iterator[None]:
    """Cases that -m would deselect, more than half of all, are not made: every worker would make them. A test of which
    none is selected keeps one, to be counted; a test that is named with its case keeps all."""
    yield
    cases, excluded = metafunc._calls, unselected(metafunc.config)
    if len(cases) < 2 or any("::" in argument for argument in metafunc.config.args):
        return
    if any(metafunc.definition.get_closest_marker(name) for name in excluded):
        del cases[1:]
    elif "slow" in excluded:
        quick = [case for case in cases if not any(mark.name == "slow" for mark in case.marks)] or cases[:1]
        found = metafunc.definition.iter_markers_with_node("drawn")
        counts = [mark.args[0] for node, mark in found if not isinstance(node, pytest.Module)]
        kept = drawn_of(quick, counts[0], metafunc.definition.nodeid) if counts else quick
        cases[:] = [case for case in cases if any(case is one for one in kept)]


def drawn_of(cases: list[Any], count: int, name: str) -> list[Any]:
    return random.Random(os.environ[SEED] + name).sample(cases, min(count, len(cases)))


@pytest.hookimpl(tryfirst=True)  # before -m looks at the markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of a framework: `make test-interop`. `drawn(n)`: n cases of a test (as `pytestmark`: n tests of a file),
    drawn by the seed; the others are slow."""
    for item in items:
        if item.path.parent in FRAMEWORKS:
            item.add_marker(pytest.mark.interop)
    for whole_file in (False, True):
        groups: dict[str, list[tuple[int, pytest.Item]]] = {}
        for item in items:
            for node, mark in item.iter_markers_with_node("drawn"):
                if isinstance(node, pytest.Module) == whole_file and not item.get_closest_marker("slow"):
                    name = item.nodeid.partition("::" if whole_file else "[")[0]
                    groups.setdefault(name, []).append((mark.args[0], item))
        for name, drawn in groups.items():
            candidates = [item for _, item in drawn]
            for item in set(candidates) - set(drawn_of(candidates, drawn[0][0], name)):
                item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One for all workers of this run."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@pytest.fixture(scope="session", autouse=True)
def own_cache(run_folder: Path) -> None:
    chosen = os.environ.get("TILEWISE_TEST_CACHE")  # to share what is compiled among several runs on purpose
    folder = Path(chosen) if chosen else run_folder / "cache"
    folder.mkdir(mode=0o700, exist_ok=True)
    os.environ["TILEWISE_CACHE_DIR"] = str(folder)


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery | None]:
    if not (hasattr(os, "fork") and hasattr(os, "memfd_create")):
        yield None
        return
    made = Nursery()
    yield made
    made.close()


@pytest.fixture
def warm_starts(nursery: Nursery | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """`run_program` forks a process that has imported everything, instead of starting Python: 0.08 s, not 0.4."""
    if nursery is not None:
        from tilewise.emulator.host import process

        monkeypatch.setattr(process, "subprocess", SimpleNamespace(**{**vars(subprocess), "Popen": nursery.start}))
