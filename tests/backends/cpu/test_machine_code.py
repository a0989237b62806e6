"""Kernels for every instruction set, and the disk cache of their object code."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import tilewise as tw
from tilewise.algebra.builtin import find_semiring
from tilewise.algebra.dtypes import DTYPES
from tilewise.backends.cpu.kernels.bits.text import pack_bits_function
from tilewise.backends.cpu.kernels.few_rows.text import few_rows_module
from tilewise.backends.cpu.kernels.packed.text import packed_module
from tilewise.backends.cpu.kernels.packed_n.text import packed_n_module
from tilewise.backends.cpu.kernels.shared.arithmetic import arithmetic
from tilewise.backends.cpu.kernels.unpacked.text import REMEMBERED, _is_new, unpacked_module
from tilewise.backends.cpu.limits import NOMINAL, with_instructions
from tilewise.backends.cpu.run import run
from tilewise.backends.cpu.runtime import compile
from tilewise.backends.cpu.runtime.target import (
    INSTRUCTION_SETS,
    Target,
    executable,
    host_target,
    known_target,
    plain_target,
    probed,
)
from tilewise.core.problem import problem_of_shape
from tilewise.errors import EngineError, UsageError
from tilewise.planning.choose import make_plan
from tilewise.system.llvm_text import Numbers, module

CASES = [("plus_times", "float32"), ("plus_times", "float64"), ("min_plus", "float32"), ("max_min", "float64"),
         ("min_plus", "int16"), ("plus_times", "int8"), ("plus_times", "float16"), ("plus_times", "bfloat16"),
         ("plus_times", "complex64"), ("lor_land", "bool"), ("plus_times", "uint64"), ("log", "float32")]  # fmt: skip


def here(name: str) -> Target:
    """An instruction set of this machine, forced."""
    return plain_target(name, probed())


def multiply(target: Target, ring: str, dtype: str, shape: tuple[int, int, int]) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    m, k, n = shape
    M, N = (rng.integers(0, 5, s).astype(DTYPES[dtype].numpy) for s in ((m, k), (k, n)))
    problem = problem_of_shape(m, k, n, dtype, ring)
    machine = with_instructions(NOMINAL, 1, target)
    P = np.empty((m, n), problem.result.numpy)
    run(make_plan(problem, machine), M, N, P, target=target)
    return P, tw.matmul(M, N, semiring=ring, kernel="reference")


@pytest.mark.drawn(1)  # beside the random products of every instruction set
@pytest.mark.parametrize(("ring", "dtype"), CASES)
@pytest.mark.parametrize("name", executable())
def test_lesser_instruction_sets_make_the_same_products(name: str, ring: str, dtype: str) -> None:
    for shape in ((50, 300, 70), (3, 90, 200), (16, 300, 210), (13, 300, 301), (200, 90, 3), (90, 70, 1), (5, 6, 7)):
        made, right = multiply(here(name), ring, dtype, shape)
        np.testing.assert_allclose(made.astype(np.complex128), right.astype(np.complex128), rtol=1e-5)


@pytest.mark.slow  # `test_inner_loops` compiles most of them
@pytest.mark.parametrize(("ring", "dtype"), CASES)
def test_neon_compiles(ring: str, dtype: str) -> None:
    target, number = known_target("neon"), DTYPES[dtype]
    a = arithmetic(find_semiring(ring).over(number), number, number, target, bits=dtype == "bool")
    assert compile.object_code(packed_module(a), target).startswith(b"\x7fELF")
    if a.same_storage and not a.heavy:
        assert compile.object_code(few_rows_module(a), target).startswith(b"\x7fELF")
        assert compile.object_code(unpacked_module(a), target).startswith(b"\x7fELF")
        assert compile.object_code(packed_n_module(a), target).startswith(b"\x7fELF")
    if a.bits:
        assert "store i64" in pack_bits_function(a).text()


def test_an_unknown_instruction_set() -> None:
    with pytest.raises(UsageError, match=", ".join(INSTRUCTION_SETS)):
        known_target("sse9")


def test_ir_that_llvm_refuses_is_an_error() -> None:
    with pytest.raises(EngineError, match="LLVM refused"):
        compile.object_code("define void @f() { no such thing }", host_target())


ONE_PRODUCT = """
import sys, numpy as np
import tilewise as tw
import tilewise.backends.cpu.runtime.compile as compile
built = []
real = compile.object_code
compile.object_code = lambda text, target: built.append(1) or real(text, target)
M = np.ones((5, 6), np.float32)  # a small module: only the cache is of interest
assert (tw.matmul(M, M.T, semiring="max_plus") == 2).all()
print(len(built))
"""


def fresh(code: str, cache: Path, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "TILEWISE_CACHE_DIR": str(cache), **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_processes_share_a_cache(tmp_path: Path) -> None:
    """Several processes fill an empty cache; then nothing is compiled except kernels for another instruction set and
    damaged entries."""
    environment = {**os.environ, "TILEWISE_CACHE_DIR": str(tmp_path)}
    started = [
        subprocess.Popen([sys.executable, "-c", ONE_PRODUCT], env=environment, stdout=subprocess.PIPE) for _ in range(2)
    ]
    built = [int(process.communicate()[0]) for process in started]
    assert [process.returncode for process in started] == [0] * 2
    assert fresh(ONE_PRODUCT, tmp_path) == "0"
    count = len(list((tmp_path / "llvm").iterdir()))
    assert count == max(built)
    for entry in (tmp_path / "llvm").iterdir():
        entry.write_bytes(entry.read_bytes()[:-40] + b"\0" * 40)
    assert int(fresh(ONE_PRODUCT, tmp_path)) == count
    others = [name for name in executable() if name != os.environ.get("TILEWISE_INSTRUCTION_SET", executable()[0])]
    for other in others[:1]:
        assert int(fresh(ONE_PRODUCT, tmp_path, TILEWISE_INSTRUCTION_SET=other)) >= 1
        assert len(list((tmp_path / "llvm").iterdir())) > count


def test_llvmlite_is_not_imported_before_it_is_used(tmp_path: Path) -> None:
    code = "import sys, tilewise as tw; tw.matmul; tw.closure; print('llvmlite' in sys.modules)"
    assert fresh(code, tmp_path) == "False"


def test_a_kernel_compiles_quickly_and_loads_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Less than 0.3 s and 10 ms of processor time, with slack for a busy machine."""
    monkeypatch.setenv("TILEWISE_CACHE_DIR", str(tmp_path))
    number = DTYPES["float32"]
    a = arithmetic(tw.semirings["plus_times"].over(number), number, number, host_target())
    compile.load("define void @nothing() { ret void }", host_target(), ("nothing",))  # LLVM itself is awake
    compiling, loading = [], []
    for attempt in range(3):
        start = time.process_time()
        text = packed_module(a) + f"; {attempt}"
        compile.load(text, host_target(), ("run",))
        compiling.append(time.process_time() - start)
        start = time.process_time()
        compile.load(packed_module(a) + f"; {attempt}", host_target(), ("run",))
        loading.append(time.process_time() - start)
    assert min(compiling) < 0.9
    assert min(loading) < 0.05


def test_an_n_is_new_until_it_was_among_the_last_ones() -> None:
    """What `unpacked` tests before it touches N; one that falls onto the same place takes it."""
    function = _is_new()
    function.public = True
    found = compile.load(module([Numbers("places", REMEMBERED), function]), host_target(), ("is_new",))
    is_new = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p)(found["is_new"])
    places = [2**32 + 64 * i for i in range(1, 200)]
    first = places[0]
    assert [is_new(first), is_new(first)] == [True, False]
    falls_there = next(other for other in places[1:] if is_new(other) and is_new(first))
    assert [is_new(falls_there), is_new(falls_there), is_new(first)] == [True, False, True]
