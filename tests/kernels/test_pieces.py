"""Launches of bounded length: pieces cover P once, run by the same kernel, and none is expected to take much longer."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

import tilewise.backends.cuda.device as device
from tilewise.bench.drawn_problems import random_problem
from tilewise.core.machine import KNOWN_CARDS
from tilewise.core.problem import Layout, problem_of_shape
from tilewise.errors import TilewiseError, UsageError
from tilewise.kernels.pieces import cuts_of, in_pieces
from tilewise.kernels.recipes import recipe_of
from tilewise.kernels.shared.placed import operands_of
from tilewise.planning.choose import make_plan

FROZEN = 0.6  # seconds that no launch may take, with a bound of half a second
KINDS = (("float16", "plus_times"), ("float32", "plus_times"), ("float64", "plus_times"), ("float32", "min_plus"))


@pytest.mark.parametrize("name", sorted(KNOWN_CARDS))
@pytest.mark.parametrize(("dtype", "ring"), KINDS)
def test_no_launch_freezes_a_display(name, dtype, ring):
    machine = replace(KNOWN_CARDS[name], launch_seconds=0.5)
    problem = problem_of_shape(16384, 16384, 16384, dtype, ring)
    plan = make_plan(problem, machine)
    pieces = [piece for piece, _ in in_pieces(plan, operands_of(problem))]
    assert all(piece.predicted < FROZEN for piece in pieces)
    assert {piece.kernel for piece in pieces} == {plan.kernel}
    assert (len(pieces) > 1) == (plan.predicted > 0.5)
    assert ("in pieces of P" in " ".join(plan.notes)) == (len(pieces) > 1)


def test_a_slow_card_has_many_pieces():
    machine = replace(KNOWN_CARDS["rtx3060"], launch_seconds=0.5)
    plan = make_plan(problem_of_shape(16384, 16384, 16384, "float64"), machine)
    assert plan.predicted > 50
    assert len(cuts_of(plan)) >= 100


def addresses(x, stack):
    """Of every cell of a stack of matrices, relative to its base."""
    made = np.arange(x.rows)[:, None] * x.layout.row + np.arange(x.cols) * x.layout.col
    for extent, step in zip(reversed(stack), reversed(x.layout.stack), strict=True):
        made = np.arange(extent).reshape(-1, *[1] * made.ndim) * step + made
    return x.pointer.offset + made * x.dtype.itemsize


@pytest.mark.parametrize("dtype", ["float16", "float32", "complex64"])
def test_a_last_piece_of_one_row_keeps_its_members(dtype):
    """Of members that share N, whose rows are no rows of one taller product: one row of each would be."""
    m, k, n = 4097, 64, 512
    apart = {
        "layout_m": Layout(k, 1, (2 * m * k,)),
        "layout_n": Layout(n, 1, (0,)),
        "layout_p": Layout(n, 1, (2 * m * n,)),
    }
    stack = replace(problem_of_shape(m, k, n, dtype), stack=(2,), **apart)
    plan = make_plan(stack, replace(KNOWN_CARDS["a100"], launch_seconds=1e-6))
    rows = set()
    for piece, given in in_pieces(plan, operands_of(plan.problem)):
        p = piece.problem
        assert (p.m, p.k, p.n, p.stack) == (given.P.rows, k, given.P.cols, (1,)), p
        assert (p.layout_m, p.layout_n, p.layout_p) == (given.M.layout, given.N.layout, given.P.layout)
        rows.add(p.m)
    assert 1 in rows
    assert recipe_of(plan).steps


def test_pieces_cover_every_cell_once_with_its_own_operands():
    rng, tried = random.Random(7), 0
    machine = replace(KNOWN_CARDS["a100"], launch_seconds=2e-6)
    while tried < 40:
        p = random_problem(rng)
        if p.groups or p.members * p.m * p.n > 2e6 or p.dtype.kind == "c":
            continue
        try:
            plan = make_plan(p, machine)
        except TilewiseError:
            continue
        p, given = plan.problem, operands_of(plan.problem)
        pieces = in_pieces(plan, given)
        if len(pieces) == 1:
            continue
        tried += 1
        found = np.concatenate([addresses(x.P, piece.problem.stack).ravel() for piece, x in pieces])
        assert np.array_equal(np.sort(found), np.sort(addresses(given.P, p.stack).ravel()))
        for piece, x in pieces:  # a cell's row of M and column of N lie where the whole product has them
            q = piece.problem
            assert (q.k, x.M.rows, x.N.cols) == (p.k, q.m, q.n)
            assert (q.layout_m, q.layout_n, q.layout_p) == (x.M.layout, x.N.layout, x.P.layout)
            for side in (x.M, x.N, x.P):
                assert side.layout.misalignment == side.pointer % 16
            if not p.stack:
                row = (x.P.pointer.offset - given.P.pointer.offset) // p.dtype.itemsize // max(1, p.layout_p.row)
                assert x.M.pointer.offset == row * p.layout_m.row * p.dtype_m.itemsize or p.m == 1


def test_pieces_share_their_scratch_memory():
    problem = problem_of_shape(16383, 16383, 16383, "float32")  # rows that are realigned, or packed, first
    free = recipe_of(make_plan(problem, KNOWN_CARDS["t4"]))
    bound = recipe_of(make_plan(problem, replace(KNOWN_CARDS["t4"], launch_seconds=0.1)))
    assert len(bound.steps) > len(free.steps)
    assert bound.scratch_bytes <= free.scratch_bytes


@pytest.mark.parametrize(
    ("given", "has_time_out", "seconds"), [("", True, 0.5), ("", False, 0), ("0", True, 0), ("2", False, 2)]
)
def test_a_bound_is_the_users_or_for_a_display(monkeypatch, given, has_time_out, seconds):
    monkeypatch.setenv("TILEWISE_LAUNCH_SECONDS", given)
    assert device.launch_seconds(has_time_out) == seconds


@pytest.mark.parametrize("given", ["soon", "-1", "inf", "nan"])
def test_a_bound_is_a_number(monkeypatch, given):
    monkeypatch.setenv("TILEWISE_LAUNCH_SECONDS", given)
    with pytest.raises(UsageError, match="must be a number of seconds"):
        device.launch_seconds(True)
