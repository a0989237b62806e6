"""Calls of `tw.matmul` drawn at random, keywords × dtypes × array libraries, each held against what it means.

Every call is made three times on new values, so that what is prepared for the second is looked at as well. It gives the
product that its keywords mean or is refused with a sentence; anything else, a keyword that changes nothing included, is
reported with what repeats it.

`python tests/support/audited_calls.py [SECONDS [SEED|clock [LIBRARIES]]]`
"""

from __future__ import annotations

import math
import sys
import tempfile
import time
from dataclasses import dataclass

import ml_dtypes
import numpy as np

import tilewise as tw

BF16 = np.dtype(ml_dtypes.bfloat16)
SEMIRINGS = ("plus_times", "min_plus", "max_plus", "min_times", "max_times", "min_max", "max_min", "lor_land")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "bfloat16", "float32", "float64")
OF_TORCH = ("bool", "int8", "int16", "int32", "int64", "uint8", *FLOATS)
OF_JAX = ("bool", "int8", "int16", "int32", "uint8", "uint16", "uint32", "float16", "bfloat16", "float32", "complex64")
OF_NUMPY = ("bool", *INTEGERS, *FLOATS, "complex64", "complex128", "longdouble", ">f4", ">i4")
LIBRARIES = {
    "numpy": OF_NUMPY, "lists": ("int64", "float64"), "torch": OF_TORCH, "torch gradient": FLOATS, "jax": OF_JAX,
    "jax jit": OF_JAX, "dask": OF_NUMPY, "files": OF_NUMPY,
    "sparse": ("bool", *INTEGERS, "float32", "float64", "complex64", "complex128"),
}  # fmt: skip
ROUTES = ("dask", "files", "sparse")  # of NumPy's own numbers
ACTIVATIONS = {
    "relu": lambda x: np.maximum(x, 0), "silu": lambda x: x / (1 + np.exp(-x)),
    "gelu": lambda x: x / 2 * (1 + np.vectorize(math.erf, otypes=[float])(x / math.sqrt(2))),
    "gelu_tanh": lambda x: x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
}  # fmt: skip
LAYS = ("rows", "columns", "reversed", "every other", "offset")


@dataclass(frozen=True)
class Drawn:
    """A call but for its values."""

    library: str
    dtypes: tuple[str, str]
    shapes: tuple[tuple[int, ...], tuple[int, ...]]
    lays: tuple[str, str]
    keywords: dict[str, object]
    strange: bool  # whether there are infinities, NaN and missing edges

    @property
    def modulus(self) -> int:
        return getattr(self.keywords.get("semiring"), "modulus", 0)

    @property
    def ring(self) -> str:
        return "modular" if self.modulus else str(self.keywords.get("semiring", "plus_times"))


def draw(rng: np.random.Generator, libraries: tuple[str, ...]) -> Drawn:
    library = str(rng.choice(libraries))
    first = str(rng.choice(LIBRARIES[library]))
    second = first if rng.random() < 0.75 else str(rng.choice(LIBRARIES[library]))
    try:
        np.promote_types(numpys(first), numpys(second))
    except TypeError:  # nothing holds both
        second = first
    m, k, n = (int(x) for x in rng.choice((1, 2, 3, 5, 8, 17, 33), 3))
    shapes = [(m, k), (k, n)]
    if rng.random() < 0.2:
        stack = (int(rng.integers(1, 4)),)
        shapes = [(*stack, m, k), (k, n) if rng.random() < 0.5 else (*stack, k, n)]
    elif rng.random() < 0.15:
        shapes = [(k,), (k, n)] if rng.random() < 0.5 else [(m, k), (k,)]
    keywords: dict[str, object] = {}
    values = {
        "semiring": lambda: str(rng.choice(SEMIRINGS)) if rng.random() < 0.85 else tw.modular(int(rng.choice((2, 97)))),
        "out": lambda: True, "accumulate": lambda: True, "return_arg": lambda: True, "nonnegative": lambda: True,
        "device": lambda: str(rng.choice(("cpu", "auto"))), "precision": lambda: str(rng.choice(("ieee", "tf32"))),
        "kernel": lambda: str(rng.choice(("packed", "reference"))), "tile": lambda: 8,
        "memory": lambda: "1GB", "dtype": lambda: str(rng.choice((*FLOATS, "int32", "int64", "complex128"))),
        "scales": lambda: tuple(rng.choice(("rows", "number", "none", "one"), 2)),
        "alpha": lambda: float(rng.choice((0.5, -2, 0))), "bias": lambda: True,
        "activation": lambda: str(rng.choice(tuple(ACTIVATIONS))), "order": lambda: str(rng.choice(tuple("CFA"))),
        "axes": lambda: [(-2, -1)] * 3, "casting": lambda: str(rng.choice(("no", "safe", "unsafe"))),
    }  # fmt: skip
    for name in rng.permutation(tuple(values))[: int(rng.choice((0, 1, 1, 2, 2, 3, 4)))]:
        keywords[str(name)] = values[str(name)]()
    if "accumulate" in keywords and rng.random() < 0.9:
        keywords["out"] = True
    lays = tuple(str(x) for x in rng.choice(LAYS, 2)) if rng.random() < 0.5 else ("rows", "rows")
    return Drawn(library, (first, second), tuple(shapes), lays, keywords, bool(rng.random() < 0.3))


def numpys(name: str) -> np.dtype:
    return BF16 if name == "bfloat16" else np.dtype(name)


def values(rng: np.random.Generator, dtype: np.dtype, shape: tuple[int, ...], d: Drawn) -> np.ndarray:
    """Small whole numbers, which every dtype has; where it is strange, its extremes too."""
    low = 0 if dtype.kind in "ub" or "nonnegative" in d.keywords else -4
    made = rng.integers(low, 2 if dtype.kind == "b" else 5, shape).astype(dtype)
    if d.strange and dtype.kind in "fV" and d.ring in ("min_plus", "max_plus", "min_max", "max_min"):
        strange = (np.inf, -np.inf, np.nan) if "nonnegative" not in d.keywords else (np.inf,)
        where = rng.random(shape) < 0.15
        made[where] = rng.choice(strange, int(where.sum())).astype(dtype)
    if d.strange and dtype.kind in "iu" and d.ring in ("min_plus", "max_plus"):
        extreme = np.iinfo(dtype).max if d.ring == "min_plus" else np.iinfo(dtype).min
        made[rng.random(shape) < 0.3] = extreme
    return made


def laid(x: np.ndarray, lay: str) -> np.ndarray:
    """The same values, lying otherwise."""
    if lay == "columns":
        return np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2) if x.ndim > 1 else x
    if lay == "reversed":
        return np.ascontiguousarray(x[..., ::-1])[..., ::-1]
    if lay == "every other":
        return np.repeat(x, 2, axis=-1)[..., ::2]
    if lay == "offset":
        room = np.zeros((*x.shape[:-1], x.shape[-1] + 1), x.dtype)
        room[..., 1:] = x
        return room[..., 1:]
    return x


def given(x: np.ndarray, library: str, lay: str = "rows"):
    """As the library has it."""
    if library == "lists":
        return x.tolist()
    if library == "numpy":
        return laid(x, lay)
    if library == "dask":
        import dask.array as da

        return da.from_array(laid(x, lay), chunks=3)
    if library == "files":  # a map of a file, read-only
        with tempfile.TemporaryFile() as file:
            file.write(b"-" * 64 + np.asarray(x, order="C").tobytes())
            file.flush()
            return np.memmap(file, x.dtype, "r", 64, x.shape) if x.size else x
    if library == "sparse":  # with every cell stored: one that is not is the semiring's zero
        return stored_whole(x) if x.ndim == 2 else x
    if library.startswith("torch"):
        import torch

        wide = x.astype(np.float32) if x.dtype == BF16 else x
        made = torch.from_numpy(np.ascontiguousarray(wide if lay == "reversed" else laid(wide, lay)))
        made = made.to(torch.bfloat16) if x.dtype == BF16 else made
        if lay == "columns" and made.ndim > 1:
            made = made.mT.contiguous().mT
        return made.requires_grad_() if library == "torch gradient" and made.is_floating_point() else made
    import jax.numpy as jnp

    return jnp.asarray(x)


def stored_whole(x: np.ndarray):
    import scipy.sparse as sparse

    rows, columns = (i.ravel() for i in np.indices(x.shape))
    return sparse.coo_array((x.ravel(), (rows, columns)), shape=x.shape).tocsr()


def back(x: object, ring: str = "plus_times") -> np.ndarray:
    if hasattr(x, "tocoo"):  # cells that are not stored are the semiring's zero
        cells = x.tocoo()
        low, high = (False, True) if cells.dtype.kind == "b" else (-np.inf, np.inf)
        if cells.dtype.kind in "iu":
            low, high = (np.iinfo(cells.dtype).min, np.iinfo(cells.dtype).max)
        made = np.full(x.shape, {"min": high, "max": low}.get(ring[:3], 0), cells.dtype)
        made[cells.row, cells.col] = cells.data
        return made
    if hasattr(x, "dask"):
        return np.asarray(x.compute(scheduler="sync"))
    if hasattr(x, "detach"):
        x = x.detach()
        return x.float().numpy().astype(BF16) if str(x.dtype) == "torch.bfloat16" else x.numpy()
    return np.asarray(x)


def meant(d: Drawn, M: np.ndarray, N: np.ndarray, more: dict[str, np.ndarray]) -> tuple[np.ndarray, np.dtype, bool]:
    """P in wide numbers, its dtype, and whether every number of it is exact."""
    common = np.promote_types(*(x.dtype.newbyteorder("=") for x in (M, N)))
    wanted = d.keywords.get("dtype")
    common = numpys(wanted) if wanted else common
    left, right = M[None] if M.ndim == 1 else M, N[:, None] if N.ndim == 1 else N
    wide = object if common.kind in "iu" else (np.complex128 if common.kind == "c" else np.float64)
    with np.errstate(all="ignore"):
        x, y = (a.astype(common).astype(wide) for a in (left, right))
        P = reduced(d, x[..., :, :, None], y[..., None, :, :], common)
        if d.keywords.get("accumulate"):
            held = more["out"].astype(P.dtype if wide is object else wide).reshape(P.shape)
        if "scales" in d.keywords:
            P = more["a"] * P * more["b"]
        P = d.keywords.get("alpha", 1) * P if "alpha" in d.keywords else P
        P = P + more["bias"] if "bias" in d.keywords else P
        if d.keywords.get("accumulate"):
            P = _added(d, P, held)
        act = d.keywords.get("activation")
        P = ACTIVATIONS[act](P) if act else P
    shape = (*(M.shape[:-1] if M.ndim > 1 else ()), *((N.shape[-1],) if N.ndim > 1 else ()))
    if N.ndim > 2 and M.ndim > 1:
        shape = (*np.broadcast_shapes(M.shape[:-2], N.shape[:-2]), M.shape[-2], N.shape[-1])
    result = np.dtype(bool) if d.ring == "lor_land" else common
    return P.reshape(shape), result, act is None and not {"scales", "bias", "alpha"} & set(d.keywords)


def reduced(d: Drawn, x: np.ndarray, y: np.ndarray, common: np.dtype) -> np.ndarray:
    if d.ring == "lor_land" or (common.kind == "b" and d.ring == "plus_times"):
        return ((x != 0) & (y != 0)).any(-2)
    if d.ring in ("plus_times", "modular"):
        P = (x * y).sum(-2)
        if d.modulus:
            return P % d.modulus
        return _wrapped(P, common) if common.kind in "iu" else P
    add, mul = d.ring.split("_")
    if common.kind in "iu":
        return _whole_paths(x, y, add, mul, common)
    joined = {"plus": np.add, "times": np.multiply, "min": np.fmin, "max": np.fmax}[mul](x, y)
    if common.kind == "b" and mul == "plus":
        joined = np.minimum(joined, 1)
    zero = {"min": np.inf, "max": -np.inf}[add] if common.kind != "b" else {"min": 1, "max": 0}[add]
    return (np.fmin if add == "min" else np.fmax).reduce(joined, axis=-2, initial=zero)


def _whole_paths(x: np.ndarray, y: np.ndarray, add: str, mul: str, dtype: np.dtype) -> np.ndarray:
    """Over integers: sums with a missing edge are missing."""
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    zero = high if add == "min" else low
    joined = {"plus": np.add, "times": np.multiply, "min": np.minimum, "max": np.maximum}[mul](x, y)
    if mul == "plus" and not (add == "max" and low == 0):
        gone = np.broadcast_to((x == zero) | (y == zero), joined.shape)
        joined = np.where(gone, zero, joined)
    else:
        joined = _wrapped(joined, dtype)
    return (np.minimum if add == "min" else np.maximum).reduce(joined, axis=-2, initial=zero)


def _wrapped(P: np.ndarray, dtype: np.dtype) -> np.ndarray:
    span = 2 ** (8 * dtype.itemsize)
    low = int(np.iinfo(dtype).min)
    return (P - low) % span + low


def _added(d: Drawn, P: np.ndarray, held: np.ndarray) -> np.ndarray:
    if d.ring in ("plus_times", "modular"):
        return (P + held) % d.modulus if d.modulus else P + held
    if d.ring == "lor_land":
        return (P != 0) | (held != 0)
    return (np.fmin if d.ring.startswith("min") else np.fmax)(P, held)


def called(rng: np.random.Generator, d: Drawn):
    """One call on new values: what was made, and what is meant."""
    M, N = (values(rng, numpys(dtype), shape, d) for dtype, shape in zip(d.dtypes, d.shapes, strict=True))
    keywords, more = dict(d.keywords), {}
    rows, columns = M.shape[-2] if M.ndim > 1 else 1, N.shape[-1] if N.ndim > 1 else 1
    common = np.promote_types(*(x.dtype.newbyteorder("=") for x in (M, N)))
    result = numpys(d.keywords["dtype"]) if "dtype" in d.keywords else common
    result = np.dtype(bool) if d.ring == "lor_land" else result
    if "bias" in keywords:
        kind = BF16 if result == BF16 else np.dtype(np.float32 if rng.random() < 0.5 or result != np.float64 else float)
        more["bias"] = values(rng, kind, (columns,), d)
        keywords["bias"] = given(more["bias"], d.library.removesuffix(" gradient"))
    if "scales" in keywords:
        pair = []
        for name, what, extent in zip("ab", keywords["scales"], (rows, columns), strict=True):
            x = rng.integers(1, 5, {"rows": extent, "one": 1}.get(str(what), 1)).astype(np.float32)
            more[name] = x.reshape((-1, 1) if name == "a" else (1, -1)) if what != "none" else np.float32(1)
            simple = {"number": float(x[0]), "none": None}
            pair.append(simple[str(what)] if str(what) in simple else given(x, d.library.removesuffix(" gradient")))
        keywords["scales"] = tuple(pair)
    if "out" in keywords:
        more["out"] = values(rng, result, _shape(M, N), d)
        keywords["out"] = given(
            more["out"].copy(), "numpy" if d.library in ("lists", *ROUTES) else d.library.removesuffix(" gradient")
        )
    operands = [given(x, d.library, lay) for x, lay in zip((M, N), d.lays, strict=True)]
    if d.library == "jax jit":
        import jax

        made = jax.jit(lambda x, y: tw.matmul(x, y, **keywords))(*operands)
    else:
        made = tw.matmul(*operands, **keywords)
    if "out" in keywords:
        first = made[0] if isinstance(made, tuple) else made
        assert first is keywords["out"], "out= was not returned"
    return made, (M, N, more)


def _shape(M: np.ndarray, N: np.ndarray) -> tuple[int, ...]:
    if M.ndim == 1 or N.ndim == 1:
        return (*M.shape[:-1], *(N.shape[-1:] if N.ndim > 1 else ()))
    return (*np.broadcast_shapes(M.shape[:-2], N.shape[:-2]), M.shape[-2], N.shape[-1])


def fault(d: Drawn, made: object, M: np.ndarray, N: np.ndarray, more: dict[str, np.ndarray]) -> str | None:
    """What is wrong with a product, if anything is."""
    P, dtype, _ = meant(d, M, N, more)
    if d.keywords.get("return_arg"):
        if not isinstance(made, tuple):
            return "return_arg=True gave no pair"
        made, arg = made
        found = _arg_fault(d, back(made, d.ring), back(arg), M, N)
        if found:
            return found
    if d.library == "dask" and not hasattr(made, "dask"):
        return f"a Dask array was computed into a {type(made).__name__}"
    got = back(made, d.ring)
    if got.shape != P.shape:
        return f"shape {got.shape} instead of {P.shape}"
    narrowed = d.library.startswith("jax")  # without x64 JAX has no wide numbers
    if got.dtype != dtype and not narrowed and not (d.library.startswith("torch") and len(set(d.dtypes)) > 1):
        return f"dtype {got.dtype} instead of {dtype}"
    with np.errstate(all="ignore"):
        return difference(got, P, dtype)


def difference(got: np.ndarray, P: np.ndarray, dtype: np.dtype) -> str | None:
    if dtype.kind in "biu" and P.dtype.kind in "Ob":
        same = got.astype(object) == P.astype(object)
    else:
        kind = np.complex128 if dtype.kind == "c" else np.float64
        want, have = P.astype(dtype).astype(kind), got.astype(kind)
        eps = {"bfloat16": 2**-6, "float16": 2**-9}.get(dtype.name, 1e-5)
        same = (abs(have - want) <= eps * (1 + abs(want))) | (have == want) | (np.isnan(have) & np.isnan(want))
    wrong = np.argwhere(~np.asarray(same, bool))
    if not len(wrong):
        return None
    at = tuple(int(i) for i in wrong[0])
    return f"{len(wrong)} of {P.size} cells are wrong, first {at}: {got[at]} instead of {P[at]}"


def _arg_fault(d: Drawn, P: np.ndarray, arg: np.ndarray, M: np.ndarray, N: np.ndarray) -> str | None:
    """Whether the returned k gives the returned value."""
    if M.ndim != 2 or N.ndim != 2:
        return None
    if arg.shape != P.shape or arg.dtype.kind != "i":
        return f"arg is {arg.shape} {arg.dtype}"
    for i, j in np.ndindex(P.shape):
        k = int(arg[i, j])
        if not -1 <= k < M.shape[1]:
            return f"arg[{i}, {j}] is {k}"
        if k >= 0:
            one = Drawn(d.library, d.dtypes, ((1, 1), (1, 1)), d.lays, d.keywords, d.strange)
            value = meant(one, M[i : i + 1, k : k + 1], N[k : k + 1, j : j + 1], {})[0]
            with np.errstate(all="ignore"):
                faults = difference(P[i : i + 1, j : j + 1], value, P.dtype)
            if faults:
                return f"arg[{i}, {j}] is {k}: {faults}"
    return None


def audit(seed: int, libraries: tuple[str, ...]) -> tuple[str, str | None]:
    """Whether the call of one seed was "made" or "refused", and what is wrong with it."""
    rng = np.random.default_rng(seed)
    d = draw(rng, libraries)
    for turn in range(3):
        try:
            made, (M, N, more) = called(rng, d)
        except (tw.TilewiseError, MemoryError) as error:
            return ("refused", None) if turn == 0 else ("made", f"{d}: refused in round {turn}: {error}")
        except Exception as error:  # the point is to see it
            return "made", f"{d}: {type(error).__name__}: {error}"
        found = fault(d, made, M, N, more)
        if found:
            return "made", f"{d}, round {turn}: {found}"
    return "made", None


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    seed = int(sys.argv[2]) if len(sys.argv) > 2 and sys.argv[2] != "clock" else time.time_ns() % 2**40
    libraries = tuple(sys.argv[3].split(",")) if len(sys.argv) > 3 else tuple(LIBRARIES)
    print("seed", seed, flush=True)
    counts, number, last = {"made": 0, "refused": 0}, 0, time.process_time() + seconds
    faults: set[str] = set()
    while time.process_time() < last:
        kind, wrong = audit(seed + number, libraries)
        counts[kind] += 1
        if wrong and wrong[-60:] not in faults:
            faults.add(wrong[-60:])
            print(f"seed {seed + number}: {wrong}", flush=True)
        number += 1
        if number % 500 == 0:
            print(f"{number} calls from seed {seed}: {counts}, {len(faults)} faults", flush=True)
    print(f"{number} calls from seed {seed}: {counts}, {len(faults)} faults", flush=True)


if __name__ == "__main__":
    main()
