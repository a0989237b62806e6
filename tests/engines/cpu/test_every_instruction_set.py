"""The same product on every instruction set that this machine executes, into memory that holds something else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tilewise.algebra.builtin import find_semiring
from tilewise.algebra.dtypes import DTYPES
from tilewise.engines import cpu
from tilewise.engines.cpu.runtime.target import Target, host_target, known_target
from tilewise.execution import machine_of
from tilewise.planning import make_plan
from tilewise.problem import Layout, Problem, row_major

WIDER = {"avx512": ("avx512", "avx2", "generic"), "avx2": ("avx2", "generic"), "neon": ("neon",)}
TARGETS = WIDER.get(host_target().name, ("generic",))
POISON = 77


def multiply(target: Target, M: np.ndarray, N: np.ndarray, semiring: str = "plus_times") -> tuple[str, np.ndarray]:
    """The kernel that a machine with such vectors chooses, and what it leaves in a P that was full of POISON."""
    dtype = DTYPES[M.dtype.name]
    m, k, n = *M.shape, N.shape[1]
    layouts = (Layout(k, 1, ()), Layout(n, 1, ()), row_major(m, n, ()))
    problem = Problem(m, k, n, (), dtype, dtype, find_semiring(semiring), *layouts)
    machine = replace(machine_of("cpu"), vector_bytes=target.vector_bytes, registers=target.registers)
    P = np.full((m, n), POISON, problem.result.numpy)
    plan = make_plan(problem, machine)
    cpu.run(plan, M, N, P, target=target)
    return plan.kernel, P


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
def test_a_handful_of_columns_is_written_whole(name: str, dtype: str) -> None:
    target = replace(known_target(name), triple="")
    rng = np.random.default_rng(1)
    seen = set()
    for n in range(1, 2 * target.lanes(DTYPES[dtype]) * 3 + 2):
        M, N = (rng.integers(-9, 9, shape).astype(dtype) for shape in ((300, 257), (257, n)))
        kernel, P = multiply(target, M, N)
        seen.add(kernel)
        np.testing.assert_array_equal(P, M @ N, err_msg=f"{n} columns by {kernel}")
    assert "few_columns" in seen
