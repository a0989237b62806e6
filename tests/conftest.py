"""Every test run has caches of its own, so nothing left from an earlier run can make a test pass."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))  # oracle and strategies, for every folder below

settings.register_profile(
    "ci", max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)
settings.register_profile("all", max_examples=2500, deadline=None, suppress_health_check=list(HealthCheck))
settings.load_profile(os.environ.get("TILEWISE_TEST_PROFILE", "ci"))


def pytest_configure(config: pytest.Config) -> None:
    for name in ("thread_unsafe", "leaks_references", "valgrind_error", "parametrize_threads"):
        config.addinivalue_line("markers", f"{name}: NumPy's, on its own tests")


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    chosen = os.environ.get("TILEWISE_TEST_CACHE")  # to share what is compiled among several runs on purpose
    os.environ["TILEWISE_CACHE_DIR"] = chosen or str(tmp_path_factory.mktemp("cache"))
