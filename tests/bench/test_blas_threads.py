"""The peers of the CPU's suites take as many threads as we do."""

from __future__ import annotations

import time

import numpy as np
import pytest

from tilewise.bench.blas_threads import set_blas_threads


@pytest.fixture
def square() -> np.ndarray:
    return np.random.default_rng(0).standard_normal((700, 700))


def test_numpys_blas_is_held_to_one_thread(square: np.ndarray) -> None:
    """All threads of the process together spend no more than one could."""
    if not set_blas_threads(1):
        pytest.skip("NumPy's BLAS here is not OpenBLAS")
    np.matmul(square, square)
    time.sleep(0.1)  # threads that spin after earlier work are asleep by now
    wall, spent = time.perf_counter(), time.process_time()
    for _ in range(5):
        np.matmul(square, square)
    spent, wall = time.process_time() - spent, time.perf_counter() - wall
    assert spent <= 1.2 * wall


def test_it_returns_whether_the_number_was_taken() -> None:
    if set_blas_threads(1):
        assert set_blas_threads(2)
        assert set_blas_threads(1)
