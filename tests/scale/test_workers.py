"""The model of many workers: bytes moved, layers that trade memory for bytes, error messages with the minimum."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewise as tw
from tilewise.core.problem import problem_of_shape
from tilewise.scale.workers import Spread, Workers, plan_workers

WORKERS = Workers(64, 1e12, 1e10)


def test_bytes_are_those_of_one_tile():
    spread = Spread(problem_of_shape(6400, 3200, 6400), WORKERS, 8, 8, 1)
    assert spread.tile == (800, 3200, 800)
    assert spread.bytes_in == 3200 * 1600 * 4
    assert spread.bytes_added == 0


def test_2_d_bytes_fall_with_the_root_of_the_workers():
    shape = problem_of_shape(65536, 65536, 65536)
    few, many = (plan_workers(shape, Workers(count, 1e12, 1e10))[0].bytes_in for count in (16, 1024))
    assert few / many == pytest.approx(math.sqrt(1024 / 16))


def test_layers_read_less_and_hold_more():
    flat, *layered = plan_workers(problem_of_shape(65536, 65536, 65536), WORKERS)
    assert flat.layers == 1
    for before, after in zip([flat, *layered], layered, strict=False):
        assert after.bytes_in < before.bytes_in
        assert after.needs > before.needs


@given(st.integers(1, 4000), st.integers(1, 4000), st.integers(1, 4000), st.integers(1, 300))
def test_every_cell_belongs_to_a_worker(m, k, n, count):
    for spread in plan_workers(problem_of_shape(m, k, n), Workers(count, 1e12, 1e10)):
        rows, depth, cols = spread.tile
        assert rows * spread.rows >= m
        assert cols * spread.cols >= n
        assert depth * spread.layers >= k
        assert spread.tiles <= count
        assert spread.predicted >= spread.floor * 0.999


def test_an_error_for_too_small_a_memory_names_the_least():
    problem = problem_of_shape(65536, 65536, 65536)
    with pytest.raises(tw.OutOfMemoryError, match="need at least"):
        plan_workers(problem, Workers(4, 1e12, 1e10, memory=10**6))
    with pytest.raises(tw.UsageError, match="workers=0"):
        plan_workers(problem, Workers(0, 1e12, 1e10))
