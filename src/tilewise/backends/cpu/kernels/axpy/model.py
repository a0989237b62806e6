"""`axpy`: rows of N and of P side by side, M with any strides; on NEON, for few rows or a shallow k."""

from __future__ import annotations

from dataclasses import replace

from tilewise.backends.cpu.family import View, halves, light
from tilewise.backends.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.backends.cpu.kernels.shared.tasks import Extents, Tasks, columns_apart, pages, rows_apart
from tilewise.core.blocking import FEW, Blocking, RegisterTile, is_short, multiplies, signals, takes_a_port
from tilewise.core.problem import Problem

IDEA = "a few rows of N at a time, walked along their columns, onto rows of P"
# one core of a Neoverse-N1, 4,171 drawn products: k up to which it is the fastest for any M, from SHALLOW_COLUMNS on;
# and rows up to which it is for any k, from so many columns on
PORT = 24, 26, 32  # where an element in every lane takes a port
QUIET = 12, 26, 32  # and every vector of N has to be made quiet
LANE = 6, 16, 64  # where a step multiplies by one lane of a vector
SHALLOW_COLUMNS = 16
HALVES = 4  # rows of half precision, for each of which a vector of N is widened once
HALF_DEPTH = 12  # k of half precision that registers hold, so that tiles round their sums and write P themselves
SOME = 64  # rows and k of a product that is little either way, where an element in every lane takes a port


def takes(problem: Problem, view: View, tile: RegisterTile) -> bool:
    """A float's multiply-and-add takes one lane of a vector there, which tiles make more of; of halves a few rows, or
    any where tiles round them."""
    few_halves = halves(problem) and multiplies(problem) and (view.m <= FEW or _rounds(problem, view, tile))
    ring = light(problem) and not multiplies(problem)
    return tile.neon and (ring or few_halves) and view.n_along_n and view.p_along_n


def _rounds(problem: Problem, view: View, tile: RegisterTile) -> bool:
    """Whether sums of halves go from registers to P, and nowhere else."""
    return view.k <= HALF_DEPTH and view.n * 4 >= tile.vector_bytes and not problem.accumulate


def suits(problem: Problem, view: View, tile: RegisterTile) -> str:
    if halves(problem) and multiplies(problem):
        if view.n < SHALLOW_COLUMNS:
            return ""
        if _rounds(problem, view, tile):
            return f"{view.k} of k: P is the cost, and is rounded and written along its rows"
        return f"{view.m} rows: N is read along its rows, and widened as it is loaded" if view.m <= HALVES else ""
    if problem.dtype.itemsize < 4 or is_short(problem):
        return ""
    quiet, port = signals(problem), takes_a_port(problem, tile)
    depth, rows, columns = QUIET if quiet else PORT if port else LANE
    if view.k <= depth and view.n >= SHALLOW_COLUMNS:
        return f"{view.k} of k: P is the cost, and is written along its rows"
    some = port and not quiet and max(view.m, view.k) <= SOME and view.n >= SHALLOW_COLUMNS
    if some or (view.m <= rows and view.n >= columns):
        return f"{view.m} rows: N is read along its rows where it lies, and nothing is packed"
    return ""


def tasks(a: Arithmetic, cut: Blocking, x: Extents) -> Tasks:
    """Of halves each task has room for a few rows of sums, or of N, where tiles round their sums."""
    if (x.m <= FEW and not a.same_storage) or (x.m < x.n and x.m < x.workers * a.MR):
        made = replace(columns_apart(a, x, 0, 2), task_m=x.m)
    else:
        made = replace(rows_apart(a, x, 0), task_n=x.n)
    rows = max(x.m if x.m <= FEW else 0, x.k if x.k <= HALF_DEPTH else 0)
    return made if a.same_storage else replace(made, each=pages(rows * made.task_n * a.bytes))
