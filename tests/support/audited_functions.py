"""Products of many, drawn at random over functions × dtypes × array libraries × semirings, as `audited_calls` draws
calls of `tw.matmul`: each gives what it means, or is refused with a sentence.

`python tests/support/audited_functions.py [SECONDS [SEED]]`
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np

import tilewise as tw
from audited_calls import LIBRARIES, SEMIRINGS, Drawn, back, difference, given, numpys, reduced, values

Whole = list[np.ndarray]


class Case:
    """A draw: how arrays are made and given, and what their product is."""

    def __init__(self, rng: np.random.Generator, libraries: tuple[str, ...]) -> None:
        self.rng, self.library = rng, str(rng.choice(libraries))
        self.ring = str(rng.choice(SEMIRINGS))
        self.dtype = numpys(str(rng.choice(LIBRARIES[self.library])))
        self.common = self.dtype.newbyteorder("=")
        name = self.dtype.name
        self.drawn = Drawn(
            self.library, (name, name), ((1, 1), (1, 1)), ("rows", "rows"), {"semiring": self.ring}, False
        )
        self.sizes = tuple(int(x) for x in rng.integers(1, 9, 3))

    def values(self, *shape: int) -> np.ndarray:
        return values(self.rng, self.dtype, shape, self.drawn)

    def given(self, x: np.ndarray) -> object:
        return given(x, self.library)

    def product(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        wide = {"i": object, "u": object, "c": np.complex128}.get(self.common.kind, np.float64)
        with np.errstate(all="ignore"):
            P = reduced(self.drawn, x.astype(wide)[..., :, :, None], y.astype(wide)[..., None, :, :], self.common)
            return P.astype(self.result)

    @property
    def result(self) -> np.dtype:
        return np.dtype(bool) if self.ring == "lor_land" else self.common


def power(c: Case) -> tuple[Whole, Whole]:
    A, n = c.values(c.sizes[0], c.sizes[0]), int(c.rng.integers(1, 4))
    made, P = tw.power(c.given(A), n, semiring=c.ring), A.astype(c.result)
    for _ in range(n - 1):
        P = c.product(P, A)
    return [made], [P]


def chain(c: Case) -> tuple[Whole, Whole]:
    a, b, k = c.sizes
    x, y, z = c.values(a, b), c.values(b, k), c.values(k, a)
    return [tw.chain([c.given(v) for v in (x, y, z)], semiring=c.ring)], [c.product(c.product(x, y), z)]


def matvec(c: Case) -> tuple[Whole, Whole]:
    A, x = c.values(*c.sizes[:2]), c.values(c.sizes[1])
    return [tw.matvec(c.given(A), c.given(x), semiring=c.ring)], [c.product(A, x[:, None])[:, 0]]


def einsum(c: Case) -> tuple[Whole, Whole]:
    a, b, k = c.sizes
    A, B = c.values(2, a, b), c.values(b, k)
    made = tw.einsum("zij,jk->zki", c.given(A), c.given(B), semiring=c.ring)
    return [made], [c.product(A, B).swapaxes(-1, -2)]


def many(c: Case) -> tuple[Whole, Whole]:
    a, b, k = c.sizes
    pairs = [(c.values(a, b), c.values(b, k)), (c.values(k, a), c.values(a, b))]
    made = tw.matmul_many([(c.given(x), c.given(y)) for x, y in pairs], semiring=c.ring)
    return made, [c.product(x, y) for x, y in pairs]


def blocks(c: Case) -> tuple[Whole, Whole]:
    a, b, k = c.sizes
    M, N, mask = c.values(2 * a, 3 * b), c.values(3 * b, k), c.rng.random((2, 3)) < 0.5
    made = tw.block_sparse_matmul(c.given(M), c.given(N), mask, semiring=c.ring)
    held = np.repeat(mask, b, axis=1)
    return [made], [np.concatenate([c.product(M[a * i : a * (i + 1), held[i]], N[held[i]]) for i in range(2)])]


def groups(c: Case) -> tuple[Whole, Whole]:
    a, b, k = c.sizes
    x, w, ends = c.values(a + b, k), c.values(2, k, 3), given(np.array([a, a + b]), c.library)
    made = tw.grouped_matmul(c.given(x), c.given(w), ends, semiring=c.ring)
    return [made], [np.concatenate([c.product(x[:a], w[0]), c.product(x[a:], w[1])])]


FUNCTIONS: tuple[Callable[[Case], tuple[Whole, Whole]], ...] = (power, chain, matvec, einsum, many, blocks, groups)


def audit(seed: int, libraries: tuple[str, ...]) -> tuple[str, str | None]:
    """Whether the product of one seed was "made" or "refused", and what is wrong with it."""
    rng = np.random.default_rng(seed)
    function, c = FUNCTIONS[int(rng.integers(len(FUNCTIONS)))], Case(rng, libraries)
    case = f"{function.__name__} of {c.sizes} {c.dtype} from {c.library} over {c.ring}"
    try:
        made, meant = function(c)
    except tw.TilewiseError:
        return "refused", None
    except Exception as error:  # the point is to see it
        return "made", f"{case}: {type(error).__name__}: {error}"
    for one, P in zip(made, meant, strict=True):
        got = back(one)
        if got.shape != P.shape:
            return "made", f"{case}: shape {got.shape} instead of {P.shape}"
        if got.dtype.newbyteorder("=") != c.result:  # a power of one is the matrix itself, as in NumPy
            return "made", f"{case}: dtype {got.dtype} instead of {c.result}"
        with np.errstate(all="ignore"):
            wrong = difference(got, P, c.result)
        if wrong:
            return "made", f"{case}: {wrong}"
    return "made", None


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else time.time_ns() % 2**40
    counts, number, faults, last = {"made": 0, "refused": 0}, 0, 0, time.process_time() + seconds
    print("seed", seed, flush=True)
    while time.process_time() < last:
        kind, wrong = audit(seed + number, ("numpy", "lists", "torch", "jax"))
        counts[kind] += 1
        if wrong:
            faults += 1
            print(f"seed {seed + number}: {wrong}", flush=True)
        number += 1
    print(f"{number} products from seed {seed}: {counts}, {faults} faults", flush=True)


if __name__ == "__main__":
    main()
