"""The bits that `docs/how/same-bits.md` defines for `reproducible="everywhere"`, in C of its own."""

from __future__ import annotations

import ctypes
import hashlib
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import numpy as np

COMPILER = shutil.which("gcc") or shutil.which("clang") or shutil.which("cc")
EXTREME = {"min": "min", "max": "max", "plus": "add", "times": "mul"}
SOURCE = r"""
#include <math.h>
#define min(x, y) ((y) < (x) || (x) != (x) ? (y) : (x))
#define max(x, y) ((y) > (x) || (x) != (x) ? (y) : (x))
#define add(x, y) ((x) + (y))
#define mul(x, y) ((x) * (y))

// One row of P after the other; the cells of a row side by side, each with a chain of its own.
#define SUMS(T, FMA, NAME) \
void NAME(const T *M, const T *N, T *P, T *chain, long m, long k, long n, int onto) { \
    for (long i = 0; i < m; ++i, P += n) { \
        for (long begin = 0; begin < k; begin += 512) { \
            for (long j = 0; j < n; ++j) chain[j] = 0; \
            for (long kk = begin; kk < k && kk < begin + 512; ++kk) \
                for (long j = 0; j < n; ++j) chain[j] = FMA(M[i * k + kk], N[kk * n + j], chain[j]); \
            for (long j = 0; j < n; ++j) P[j] = begin == 0 && !onto ? chain[j] : P[j] + chain[j]; \
        } \
        for (long j = 0; j < n && k == 0 && !onto; ++j) P[j] = 0; \
    } \
}
SUMS(float, fmaf, sums_float32)
SUMS(double, fma, sums_float64)

#define PAIRS(T, FMA, NAME) \
void NAME(const T *M, const T *N, T *P, T *chain, long m, long k, long n, int onto) { \
    for (long i = 0; i < m; ++i, P += 2 * n) { \
        for (long begin = 0; begin < k; begin += 512) { \
            for (long j = 0; j < 2 * n; ++j) chain[j] = 0; \
            for (long kk = begin; kk < k && kk < begin + 512; ++kk) { \
                T a = M[2 * (i * k + kk)], b = M[2 * (i * k + kk) + 1]; \
                for (long j = 0; j < n; ++j) { \
                    T c = N[2 * (kk * n + j)], d = N[2 * (kk * n + j) + 1]; \
                    chain[2 * j] = FMA(-b, d, FMA(a, c, chain[2 * j])); \
                    chain[2 * j + 1] = FMA(b, c, FMA(a, d, chain[2 * j + 1])); \
                } \
            } \
            for (long j = 0; j < 2 * n; ++j) P[j] = begin == 0 && !onto ? chain[j] : P[j] + chain[j]; \
        } \
        for (long j = 0; j < 2 * n && k == 0 && !onto; ++j) P[j] = 0; \
    } \
}
PAIRS(float, fmaf, sums_complex64)
PAIRS(double, fma, sums_complex128)

#define BEST(T, ADD, MUL, NAME) \
void NAME(const T *M, const T *N, T *P, T *best, long m, long k, long n, int onto, double zero) { \
    for (long i = 0; i < m; ++i, P += n) { \
        for (long j = 0; j < n; ++j) best[j] = zero; \
        for (long kk = 0; kk < k; ++kk) \
            for (long j = 0; j < n; ++j) { \
                T step = MUL(M[i * k + kk], N[kk * n + j]); \
                if (step == step) best[j] = ADD(best[j], step); \
            } \
        for (long j = 0; j < n; ++j) P[j] = (onto && P[j] == P[j] ? ADD(best[j], P[j]) : best[j]) + 0; \
    } \
}
"""


@cache
def library() -> ctypes.CDLL:
    """The functions, compiled once."""
    assert COMPILER, "needs a C compiler"
    text = SOURCE
    for kind, name in (("float", "float32"), ("double", "float64")):
        for add in ("min", "max"):
            text += "".join(
                f"BEST({kind}, {add}, {mul}, {add}_{mul}_{name})\n"
                for mul in ("min", "max", "add", "mul")
                if mul != add
            )
    flags = ["-O3", "-ffp-contract=off", "-fPIC", "-shared"]
    flags += ["-mfma"] if "fma" in _features() else []  # else a call of libm, which is exact too
    folder = Path(tempfile.gettempdir()) / f"defined-bits-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    folder.mkdir(exist_ok=True)
    source, target = folder / "defined.c", folder / "defined.so"
    if not target.exists():
        source.write_text(text)
        made = folder / f"{np.random.default_rng().integers(1 << 60)}.so"
        subprocess.run([COMPILER, *flags, str(source), "-o", str(made), "-lm"], check=True)
        made.rename(target)
    return ctypes.CDLL(str(target))


def _features() -> str:
    cpu = Path("/proc/cpuinfo")
    return next((line for line in cpu.read_text().splitlines() if line.startswith("flags")), "") if cpu.exists() else ""


def defined(M: np.ndarray, N: np.ndarray, ring: str, onto: np.ndarray | None, result: np.dtype) -> np.ndarray:
    """P of two matrices; `onto`: what P holds where the product is accumulated."""
    sums = M.dtype if M.dtype.kind == "c" or M.dtype == np.float64 else np.dtype(np.float32)
    M, N = (np.ascontiguousarray(x.astype(sums)) for x in (M, N))
    (m, k), n = M.shape, N.shape[1]
    P = np.zeros((m, n), sums) if onto is None else np.ascontiguousarray(onto.astype(sums))
    room, (add, mul) = np.empty(max(n, 1), sums), ring.split("_")
    name = f"sums_{sums}" if ring == "plus_times" else f"{EXTREME[add]}_{EXTREME[mul]}_{sums}"
    more = () if ring == "plus_times" else (ctypes.c_double(np.inf if add == "min" else -np.inf),)
    function = getattr(library(), name)
    function.restype = None
    places = (ctypes.c_void_p(x.ctypes.data) for x in (M, N, P, room))
    function(*places, *map(ctypes.c_long, (m, k, n)), ctypes.c_int(onto is not None), *more)
    with np.errstate(all="ignore"):
        return one_nan(P.astype(result))


def one_nan(x: np.ndarray) -> np.ndarray:
    """Every NaN with the bits of the definition, in each part of complex numbers."""
    parts = x.view(x.real.dtype) if x.dtype.kind == "c" else x
    parts[np.isnan(parts)] = np.nan
    return x
