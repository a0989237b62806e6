"""Every operation, rendered to LLVM and run a vector at a time, means what NumPy's rendering means."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import tilewise as tw
from tilewise.algebra.dtypes import DTYPES, DType
from tilewise.algebra.expression import Expression, trace
from tilewise.algebra.to_llvm import Renderer, commutes, operands_swapped, scalar_kind, vector
from tilewise.algebra.to_numpy import numpy_function
from tilewise.backends.cpu.kernels.shared.convert import load, store
from tilewise.backends.cpu.runtime import compile
from tilewise.backends.cpu.runtime.target import Target, executable, host_target, plain_target, probed
from tilewise.errors import DtypeError
from tilewise.system.llvm_text import IRFunction, module

SPECIALS = [0.0, -0.0, 1.0, -1.0, 2.5, -3.25, 1e-30, 1e30, np.inf, -np.inf, np.nan]


def apply_everywhere(tree: Expression, dtype: DType, x: np.ndarray, y: np.ndarray, target: Target) -> np.ndarray:
    """The tree of every pair of x and y, by compiled code."""
    lanes = target.lanes(dtype)
    f = IRFunction("each", "ptr x, ptr y, ptr out, i64 count", public=True)
    size = f"[{dtype.itemsize} x i8]"
    with f.loop(0, "%count", lanes) as i:
        a, b = (load(f, target, dtype, dtype, f.at(size, name, i.index), lanes) for name in ("%x", "%y"))
        value = Renderer(f, dtype, lanes, target.has_vrange).value(tree, a, b)
        store(f, target, dtype, dtype, value, f.at(size, "%out", i.index), lanes)
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, ctypes.c_int64)(
        compile.load(module([f]), target, ("each",))["each"]
    )
    count = -(-x.size // lanes) * lanes
    padded = [np.resize(v, count).astype(dtype.numpy) for v in (x, y)]
    out = np.empty(count, dtype.numpy)
    call(padded[0].ctypes.data, padded[1].ctypes.data, out.ctypes.data, count)
    return out[: x.size]


def pairs_of(dtype: DType) -> tuple[np.ndarray, np.ndarray]:
    if dtype.kind == "b":
        values = np.array([False, True])
    elif dtype.kind == "f":
        values = np.array(SPECIALS).astype(dtype.numpy)
    elif dtype.kind == "c":
        values = np.array([0, 1, -2 + 1j, 0.5j, 3 - 4j]).astype(dtype.numpy)
    else:
        info = np.iinfo(dtype.numpy)
        values = np.array([0, 1, 2, 7, info.max, info.min, info.max - 1, info.max - 4, info.min + 5], dtype.numpy)
        values = np.append(values, np.array(-3).astype(dtype.numpy))
    x, y = np.meshgrid(values, values)
    return x.ravel(), y.ravel()


FUNCTIONS = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "neg": lambda x, y: -x,
    "abs": lambda x, y: abs(x),
    "min": tw.minimum,
    "max": tw.maximum,
    "lt": lambda x, y: x < y,
    "ge": lambda x, y: x >= y,
    "eq": lambda x, y: x == y,
    "ne": lambda x, y: x != y,
    "and": tw.logical_and,
    "or": tw.logical_or,
    "not": lambda x, y: tw.logical_not(x),
    "where": lambda x, y: tw.where(x < y, x, y),
    "where on a value": lambda x, y: tw.where(x, y, x),
    "a truth in a sum": lambda x, y: x + (x == y),
    "sqrt": lambda x, y: tw.sqrt(x),
    "exp": lambda x, y: tw.exp(x),
    "log1p": lambda x, y: tw.log1p(x),
    "logaddexp": tw.logaddexp,
    "|": lambda x, y: x | y,
    "&": lambda x, y: x & y,
    "^": lambda x, y: x ^ y,
    "~": lambda x, y: ~x,
    "%": lambda x, y: x % y,
    "//": lambda x, y: x // y,
    "<<": lambda x, y: x << y,
    ">>": lambda x, y: x >> y,
    "% by a constant": lambda x, y: (x + y) % 7,
    "| of truths": lambda x, y: (x < y) | (x == y),
    "~ of a truth": lambda x, y: ~(x < y),
    "min with a constant": lambda x, y: tw.minimum(x, 1),
}
ROUNDED = ("exp", "log1p", "logaddexp")
NAMES = [d for d in DTYPES if "long" not in d and d not in ("float16", "bfloat16")]


@pytest.mark.drawn(2)
@pytest.mark.parametrize("dtype", NAMES)
def test_every_operation_means_what_numpy_means(dtype: str) -> None:
    number = DTYPES[dtype]
    x, y = pairs_of(number)
    for name, function in FUNCTIONS.items():
        tree = trace(function, name)
        try:
            expected = numpy_function(tree, number)
            with np.errstate(all="ignore"):
                right = expected(x, y)
        except (DtypeError, TypeError):
            continue
        if number.kind == "c" and name == "abs":
            continue
        made = apply_everywhere(tree, number, x, y, host_target())
        if name in ROUNDED:
            np.testing.assert_allclose(made, right, rtol=3e-6 if number.itemsize == 4 else 1e-14, err_msg=name)
        else:
            np.testing.assert_array_equal(made, right, err_msg=name)


@pytest.mark.parametrize("target", executable())
def test_min_and_max_skip_nan_on_either_side_on_every_instruction_set(target: str) -> None:
    chosen = plain_target(target, probed())
    for dtype in ("float32", "float64"):
        x, y = pairs_of(DTYPES[dtype])
        for function, right in ((tw.minimum, np.fmin), (tw.maximum, np.fmax)):
            made = apply_everywhere(trace(function, "f"), DTYPES[dtype], x, y, chosen)
            np.testing.assert_array_equal(made, right(x, y))


@pytest.mark.parametrize("target", ["host", "generic"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_widened_and_rounded_as_numpy_does(target: str, dtype: str) -> None:
    """All 65,536 patterns go to float32 and back; and every float between two neighbours rounds to the right one."""
    chosen = host_target() if target == "host" else plain_target("generic", probed())
    half, single = DTYPES[dtype], DTYPES["float32"]
    f = IRFunction("both", "ptr x, ptr wide, ptr r, ptr out, i64 count", public=True)
    lanes = chosen.lanes(single)
    with f.loop(0, "%count", lanes) as i:
        value = load(f, chosen, half, single, f.at("i16", "%x", i.index), lanes)
        store(f, chosen, single, single, value, f.at("float", "%wide", i.index), lanes)
        rounded = load(f, chosen, single, single, f.at("float", "%r", i.index), lanes)
        store(f, chosen, single, half, rounded, f.at("i16", "%out", i.index), lanes)
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4, ctypes.c_int64)(
        compile.load(module([f]), chosen, ("both",))["both"]
    )
    x = np.arange(65536, dtype=np.uint16)
    wide, out = np.empty(65536, np.float32), np.empty(65536, np.uint16)
    rng = np.random.default_rng(0)
    with np.errstate(all="ignore"):
        exact = x.view(half.numpy).astype(np.float32)  # signalling NaN among them, of which NumPy warns on ARM
        r = (exact * (1 + rng.uniform(-1e-3, 1e-3, 65536))).astype(np.float32)
        r[:4096] = rng.uniform(-7e-5, 7e-5, 4096)  # float16's subnormals
        expected = r.astype(half.numpy)
    call(x.ctypes.data, wide.ctypes.data, r.ctypes.data, out.ctypes.data, 65536)
    np.testing.assert_array_equal(wide, exact)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(out.view(half.numpy).astype(np.float32), expected.astype(np.float32))


def test_exchanging_the_operands_of_a_tree() -> None:
    tree = trace(lambda x, y: x - 2 * y, "f")
    x, y = np.array([5.0]), np.array([3.0])
    assert numpy_function(operands_swapped(tree), DTYPES["float64"])(x, y) == numpy_function(tree, DTYPES["float64"])(
        y, x
    )
    assert not commutes(tree)
    assert commutes(trace(lambda x, y: y + x, "f"))


def test_a_register_of_each_dtype_has_a_name() -> None:
    assert vector(scalar_kind(DTYPES["float32"]), 16) == "<16 x float>"
    with pytest.raises(DtypeError, match="reference backend"):
        scalar_kind(DTYPES["longdouble"])
