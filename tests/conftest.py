"""Every test run has caches of its own, so nothing left from an earlier run can make a test pass."""

from __future__ import annotations

import os
import random
import sys
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

sys.path[:0] = [
    str(Path(__file__).parent / "support"),
    str(Path(__file__).parent),
]  # oracle and strategies; docs.code_blocks

settings.register_profile(
    "ci", max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)
settings.register_profile("all", max_examples=2500, deadline=None, suppress_health_check=list(HealthCheck))
settings.load_profile(os.environ.get("TILEWISE_TEST_PROFILE", "ci"))


SEED = "TILEWISE_TEST_SEED"  # in the environment: workers start with it, and so do processes that tests start


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seed", metavar="N|clock", help="Draw other random cases; `clock`: new ones each time.")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.write_line(f"random cases were drawn with --seed {os.environ[SEED]}")


def pytest_configure(config: pytest.Config) -> None:
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


@pytest.hookimpl(tryfirst=True)  # before -m looks at the markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """`drawn(n)`: n cases of a test, drawn by the seed, are quick enough for every run; the others are slow."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("drawn") and not item.get_closest_marker("slow"):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for name, all_of_them in cases.items():
        (count,) = all_of_them[0].get_closest_marker("drawn").args
        now = random.Random(os.environ[SEED] + name).sample(all_of_them, min(count, len(all_of_them)))
        for item in set(all_of_them) - set(now):
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
