"""Products of many, drawn at random over functions × dtypes × array libraries × semirings, as `audited_calls` draws
calls of `tw.matmul`: each gives what it means, or is refused with a sentence.

`python tests/support/audited_functions.py [SECONDS [SEED|clock [LIBRARIES]]]`
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from itertools import pairwise

import numpy as np

import tilewise as tw
from audited_calls import LIBRARIES, SEMIRINGS, Drawn, _wrapped, back, difference, given, numpys, reduced, values

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

    def product(self, x: np.ndarray, y: np.ndarray, rounded: bool = True) -> np.ndarray:
        wide = {"i": object, "u": object, "c": np.complex128}.get(self.common.kind, np.float64)
        with np.errstate(all="ignore"):
            P = reduced(self.drawn, x.astype(wide)[..., :, :, None], y.astype(wide)[..., None, :, :], self.common)
            return P.astype(self.result) if rounded else P

    @property
    def result(self) -> np.dtype:
        return np.dtype(bool) if self.ring == "lor_land" else self.common


def power(c: Case) -> tuple[Whole, Whole]:
    stack = (2,) if c.rng.random() < 0.2 else ()
    most = 3 if c.ring.endswith("_times") and c.ring != "plus_times" else 4  # 4⁴ wraps in 8 bits: max of that is no law
    A, n = c.values(*stack, c.sizes[0], c.sizes[0]), int(c.rng.integers(1, most + 1))
    made, P = tw.power(c.given(A), n, semiring=c.ring), A.astype(c.result)
    for left in range(n - 2, -1, -1):  # squares of these values are exact in halves, cubes need not be: rounded once
        P = c.product(P, A, rounded=left == 0 or c.common.itemsize > 2 or c.common.kind in "biu")
    return [made], [P]


def chain(c: Case) -> tuple[Whole, Whole]:
    a, b, k = c.sizes
    given = [c.values(a, b), c.values(b, k), c.values(k, a)][: int(c.rng.integers(1, 4))]
    first, last = given[0], given[-1]
    vectors = len(given) > 1 and c.rng.random() < 0.3
    if vectors:
        given = [first[0], *given[1:-1], last[:, 0]]
    whole = [first[:1], *given[1:-1], last[:, :1]] if vectors else given
    P = whole[0].astype(c.result)
    for x in whole[1:]:
        P = c.product(P, x)
    return [tw.chain([c.given(v) for v in given], semiring=c.ring)], [P[0, 0] if vectors else P]


def conjugated(c: Case, x: np.ndarray) -> np.ndarray:
    return x.conj() if c.ring == "plus_times" and c.common.kind == "c" else x


def _arrays(c: Case) -> Whole:
    """A matrix or two of them, another matrix, a vector, and a vector for each of the first: all as wide."""
    a, b, k = c.sizes
    stack = (2,) if c.rng.random() < 0.3 else ()
    return [c.values(*stack, a, b), c.values(k, b), c.values(b), c.values(*stack, b)]


def matvec(c: Case) -> tuple[Whole, Whole]:
    A, _, _, y = _arrays(c)
    return [tw.matvec(c.given(A), c.given(y), semiring=c.ring)], [c.product(A, y[..., None])[..., 0]]


def vecmat(c: Case) -> tuple[Whole, Whole]:
    A, _, _, y = _arrays(c)
    left = np.ascontiguousarray(A.swapaxes(-1, -2))
    P = c.product(conjugated(c, y)[..., None, :], left)[..., 0, :]
    return [tw.vecmat(c.given(y), c.given(left), semiring=c.ring)], [P]


def vecdot(c: Case) -> tuple[Whole, Whole]:
    A, _, x, _ = _arrays(c)
    P = c.product(conjugated(c, A)[..., None, :], np.broadcast_to(x, A.shape)[..., None])[..., 0, 0]
    return [tw.vecdot(c.given(A), c.given(x), semiring=c.ring)], [P]


def inner(c: Case) -> tuple[Whole, Whole]:
    A, B, _, _ = _arrays(c)
    return [tw.inner(c.given(A), c.given(B), semiring=c.ring)], [c.product(A, B.T)]


def outer(c: Case) -> tuple[Whole, Whole]:
    A, _, x, _ = _arrays(c)
    return [tw.outer(c.given(A), c.given(x), semiring=c.ring)], [c.product(A.reshape(-1, 1), x[None])]


def tensordot(c: Case) -> tuple[Whole, Whole]:
    A, B, _, _ = _arrays(c)
    other, axes = (np.ascontiguousarray(B.T), 1) if c.rng.random() < 0.5 else (B, ([-1], [1]))
    return [tw.tensordot(c.given(A), c.given(other), axes, semiring=c.ring)], [c.product(A, B.T)]


EINSUMS = {  # with the product of matrices that it is: the axes of both operands as matrices, and of P
    "zij,jk->zki": (lambda x, y, c: (c.values(2, x, y), c.values(y, 3)), lambda P: P.swapaxes(-1, -2)),
    "ij,jk": (lambda x, y, c: (c.values(x, y), c.values(y, 3)), lambda P: P),
    "ij,j->i": (lambda x, y, c: (c.values(x, y), c.values(y)), lambda P: P),
    "...ij,jk->...ik": (lambda x, y, c: (c.values(2, x, y), c.values(y, 3)), lambda P: P),
}


def einsum(c: Case) -> tuple[Whole, Whole]:
    subscripts = str(c.rng.choice(tuple(EINSUMS)))
    make, place = EINSUMS[subscripts]
    A, B = make(*c.sizes[:2], c)
    P = c.product(A, B[:, None])[:, 0] if B.ndim == 1 else place(c.product(A, B))
    operands, how = [c.given(A), c.given(B)], {}
    if subscripts == "ij,jk" and c.rng.random() < 0.5:
        return [tw.einsum(operands[0], [0, 1], operands[1], [1, 2], semiring=c.ring)], [P]
    if c.library == "numpy" and c.rng.random() < 0.3:
        how = {"out": np.empty(P.shape, P.dtype)} if c.rng.random() < 0.5 else {"order": "F"}
    return [tw.einsum(subscripts, *operands, semiring=c.ring, **how)], [P]


def without_sum(c: Case) -> tuple[Whole, Whole]:
    a, b, _ = c.sizes
    A, B = c.values(a, b), c.values(a, b)
    P = c.product(A[..., None, None], B[..., None, None])[..., 0, 0]
    return [tw.einsum("ij,ij->ji", c.given(A), c.given(B), semiring=c.ring)], [P.T]


def summed(c: Case) -> tuple[Whole, Whole]:
    """A sum of one operand, and a diagonal."""
    a, b, _ = c.sizes
    if c.rng.random() < 0.5:
        A = c.values(a, a)
        made = tw.einsum("ii->i", c.given(A), semiring=c.ring)
        return [made], [A.diagonal().astype(c.result)]
    A = c.values(a, b)
    one = {"plus": 0, "times": 1, "land": 1}.get(c.ring.partition("_")[2])
    if one is None:
        return [], []
    ones = np.full((b, 1), one, c.dtype)
    return [tw.einsum("ij->i", c.given(A), semiring=c.ring)], [c.product(A, ones)[:, 0]]


ONES = {"min_plus": 0, "max_min": "largest", "min_max": "smallest", "lor_land": True}


def closure(c: Case) -> tuple[Whole, Whole]:
    return _closed(c, tracks=False)


def path(c: Case) -> tuple[Whole, Whole]:
    return _closed(c, tracks=True)


def _closed(c: Case, tracks: bool) -> tuple[Whole, Whole]:
    """By squaring: D = I ⊕ W, then D ⊕ D ⊗ D until nothing can change."""
    if c.ring not in ONES or c.common.kind not in "iuf" or c.common.itemsize < 4 or c.common.itemsize > 8:
        c.ring = "min_plus"
        kinds = ("float32",) if c.library == "jax" else ("float32", "float64", "int64")  # JAX has no others by default
        c.dtype = np.dtype(str(c.rng.choice(kinds))) if c.library != "lists" else c.dtype
        c.common = c.dtype
        c.drawn = replace(c.drawn, keywords={"semiring": c.ring})
    n = c.sizes[0]
    weights = abs(c.values(n, n).astype(np.int64)) + 1
    low, high = (-np.inf, np.inf) if c.common.kind == "f" else (np.iinfo(c.common).min, np.iinfo(c.common).max)
    zero = {"min": high, "max": low, "lor": 0}[c.ring[:3]]
    W = np.where(c.rng.random((n, n)) < 0.5, weights.astype(c.common), np.array(zero).astype(c.common))
    add = {"min": np.minimum, "max": np.maximum, "lor": np.logical_or}[c.ring[:3]]
    one = {"largest": high, "smallest": low}.get(ONES[c.ring], ONES[c.ring])
    D = W != 0 if c.ring == "lor_land" else W.copy()
    D[np.diag_indices(n)] = add(D.diagonal(), np.array(one).astype(D.dtype))
    for _ in range(n.bit_length()):
        D = add(D, c.product(D, D))
    how = {"sources": [int(i) for i in c.rng.integers(0, n, 2)]} if c.rng.random() < 0.4 else {}
    D = D[how["sources"]] if how else D
    if c.library == "sparse":  # here the cells that are no edges are not stored
        import scipy.sparse as sparse

        rows, columns = np.nonzero(zero != W)
        given_w = sparse.coo_array((W[rows, columns], (rows, columns)), shape=W.shape).tocsr()
    else:
        given_w = c.given(W)
    if not tracks:
        return [tw.closure(given_w, semiring=c.ring, **how)], [D.astype(c.result)]
    made, before = tw.closure(given_w, semiring=c.ring, return_predecessors=True, **how)
    _check_paths(c, W, zero, back(made, c.ring), back(before), how.get("sources"))
    return [made], [D.astype(c.result)]


def _check_paths(
    c: Case, W: np.ndarray, zero: object, D: np.ndarray, before: np.ndarray, sources: list[int] | None
) -> None:
    """Every path is made of edges, and is worth what D says."""
    mul = {"plus": np.add, "min": np.minimum, "max": np.maximum, "land": np.logical_and}[c.ring.partition("_")[2]]
    for row, source in enumerate(range(len(W)) if sources is None else sources):
        for target in range(W.shape[0]):
            nodes = tw.path(before, source, target, sources=sources)
            if source == target:
                assert nodes == [source]
                continue
            reached = bool(D[row, target]) if c.ring == "lor_land" else D[row, target] != zero
            assert bool(nodes) == reached, f"path {source} → {target} is {nodes}, and D {D[row, target]}"
            edges = [W[i, j] for i, j in pairwise(nodes)]
            assert all(weight != zero for weight in edges), f"path {nodes} walks where no edge is"
            worth = reduce(mul, edges) if edges else zero
            assert c.ring == "lor_land" or not edges or worth == D[row, target], (
                f"{nodes}: {worth}, not {D[row, target]}"
            )


def scattered(c: Case) -> tuple[Whole, Whole]:
    a, b, count = c.sizes
    y, rows = c.values(a, b), c.rng.integers(0, count, a)
    weights = c.values(a) if c.rng.random() < 0.5 else None
    wide = object if c.common.kind in "iu" else np.complex128
    P = np.zeros((count, b), wide)
    for i, row in enumerate(rows):
        P[row] += y[i].astype(wide) * (1 if weights is None else weights[i].astype(wide))
    how = {} if weights is None else {"weights": c.given(weights)}
    made = tw.scatter_rows(c.given(y), given(rows, c.library), count, **how)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exact = _wrapped(P, c.common) if c.common.kind in "iu" else P
        return [made], [exact.astype(c.common)]


def closure_of_lists(c: Case) -> tuple[Whole, Whole]:
    """The k shortest walks: of all that have one edge more, until no list changes."""
    c.library = "numpy"
    n, k = c.sizes[0], int(c.rng.integers(1, 6))
    W = np.where(c.rng.random((n, n)) < 0.5, c.rng.integers(1, 9, (n, n)).astype(c.rng.choice(["f4", "f8"])), np.inf)
    lists = [[[0.0] if i == j else [] for j in range(n)] for i in range(n)]
    while True:
        longer = [
            [sorted([0.0] * (i == j) + [x + W[m, j] for m in range(n) for x in lists[i][m] if W[m, j] < np.inf])[:k]
             for j in range(n)]
            for i in range(n)
        ]  # fmt: skip
        if longer == lists:
            break
        lists = longer
    empty = [np.full_like(W, np.inf)] * (k - 1)
    made = tw.closure((W, *empty), semiring=tw.k_best(k))
    padded = np.array([[x + [np.inf] * (k - len(x)) for x in row] for row in lists], W.dtype)
    return list(made), list(np.moveaxis(padded, 2, 0))


def closure_of_sums(c: Case) -> tuple[Whole, Whole]:
    """1 + W + W² + …, and the logarithm of it over logarithms."""
    c.library, n = "numpy", c.sizes[0]
    W = c.rng.random((n, n)) / (2 * n) * (c.rng.random((n, n)) < 0.7)
    D = sum(np.linalg.matrix_power(W, i) for i in range(64))
    with np.errstate(divide="ignore"):
        if c.rng.random() < 0.5:
            return [tw.closure(np.log(W), semiring="logaddexp_plus")], [np.log(D)]
    return [tw.closure(W, semiring="plus_times")], [D]


def fields(c: Case) -> tuple[Whole, Whole]:
    """Counted shortest paths, the k best, the largest with its tag, dual numbers: over every k at once."""
    a, b, k = c.sizes
    if c.library not in ("numpy", "dask", "files"):
        return [], []
    name = str(c.rng.choice(("min_count", "max_arg", "dual", "best")))
    shapes = ((a, b), (b, k))
    numbers = [c.rng.integers(0, 4, shape).astype(float) for shape in shapes]
    tags = [c.rng.integers(0, 3, shape) for shape in shapes]
    if name == "dual":
        tags = [x.astype(float) for x in tags]
    for number, tag in zip(numbers, tags, strict=True) if name == "min_count" else ():
        number[tag == 0] = np.inf
    held = [list(pair) for pair in zip(numbers, tags, strict=True)]
    if name == "best":
        held = [list(np.sort(np.stack([x, x + tag]), 0)) for x, tag in held]
    ring = tw.k_best(2) if name == "best" else name
    made = tw.matmul(*(tuple(given(x, c.library) for x in pair) for pair in held), semiring=ring)
    (x, s), (y, t) = [[field[:, :, None] for field in held[0]], held[1]]
    if name == "dual":
        return list(made), [(x * y).sum(1), (x * t + s * y).sum(1)]
    if name == "best":
        sums = np.sort(np.concatenate([p + q for p in (x, s) for q in (y, t)], 1), 1)
        return list(made), [sums[:, 0], sums[:, 1]]
    best = (x + y).min(1) if name == "min_count" else (x + y).max(1)
    wins = (x + y == best[:, None]) & np.isfinite(best[:, None])
    if name == "max_arg":
        return list(made), [best, np.where(wins, np.minimum(s, t), 9).min(1)]
    return list(made), [best, np.where(wins, s * t, 0).sum(1)]


OWN = (  # of `tw` or of NumPy, whose functions have the same names
    lambda f, x, y: f.absolute(x - y), lambda f, x, y: f.sqrt(f.absolute(x * y)) + y,
    lambda f, x, y: f.where(x < y, x, y + 1), lambda f, x, y: f.exp(-f.absolute(x + y)),
    lambda f, x, y: f.log(1 + f.absolute(x * y)), lambda f, x, y: f.log1p(f.absolute(x)) - y,
    lambda f, x, y: f.logaddexp(x, 2 * y), lambda f, x, y: f.where(f.logical_and(x > 0, f.logical_not(y > 1)), x, -y),
    lambda f, x, y: f.where(f.logical_or(x > 2, y > 2), f.maximum(x, y), f.minimum(2 * x, y)),
)  # fmt: skip


def expressions(c: Case) -> tuple[Whole, Whole]:
    """matmul over a semiring of one's own, made of `tw`'s functions: the best of NumPy's same expression."""
    a, b, k = c.sizes
    mul, least = OWN[int(c.rng.integers(len(OWN)))], bool(c.rng.random() < 0.5)
    if c.library not in ("numpy", "torch", "jax") or c.common.kind != "f" or c.common.itemsize not in (4, 8):
        return [], []
    add, zero = (tw.minimum, tw.largest) if least else (tw.maximum, tw.smallest)
    ring = tw.Semiring("own", add=add, mul=lambda x, y: mul(tw, x, y), zero=zero)
    A, B = c.values(a, b), c.values(b, k)
    terms = mul(np, A.astype(float)[:, :, None], B.astype(float))
    P = (terms.min(1) if least else terms.max(1)).astype(c.common)
    return [tw.matmul(c.given(A), c.given(B), semiring=ring)], [P]


def plans(c: Case) -> tuple[Whole, Whole]:
    """A plan names the problem; its product is the call's."""
    a, b, k = c.sizes
    A, B = c.given(c.values(a, b)), c.given(c.values(b, k))
    problem = tw.plan(A, B, semiring=c.ring).problem
    assert (problem.m, problem.k, problem.n) == (a, b, k), problem
    assert problem.result.numpy == back(tw.matmul(A, B, semiring=c.ring), c.ring).dtype.newbyteorder("="), problem
    return [], []


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
    if c.rng.random() < 0.3:
        y = c.values(a + b, 2)
        made = tw.grouped_matmul(c.given(x), c.given(y), ends, along="k", semiring=c.ring)
        return [made], [np.stack([c.product(x[:a].T, y[:a]), c.product(x[a:].T, y[a:])])]
    how, order = {}, np.arange(a + b)
    if c.rng.random() < 0.3:
        order = c.rng.permutation(a + b)
        how = {"rows": given(order, c.library)}
    made = tw.grouped_matmul(c.given(x), c.given(w), ends, semiring=c.ring, **how)
    x = x[order]
    return [made], [np.concatenate([c.product(x[:a], w[0]), c.product(x[a:], w[1])])]


FUNCTIONS: tuple[Callable[[Case], tuple[Whole, Whole]], ...] = (
    power, chain, matvec, vecmat, vecdot, inner, outer, tensordot, einsum, without_sum, summed, closure, path,
    closure_of_lists, closure_of_sums, scattered, fields, expressions, plans, many, blocks, groups,
)  # fmt: skip


def audit(seed: int, libraries: tuple[str, ...], of: int | None = None) -> tuple[str, str | None]:
    """Whether the product of one seed was "made" or "refused", and what is wrong with it. `of`: of which function."""
    rng = np.random.default_rng(seed)
    drawn = int(rng.integers(len(FUNCTIONS)))
    function, c = FUNCTIONS[drawn if of is None else of], Case(rng, libraries)
    case = f"{function.__name__} of {c.sizes} {c.dtype} from {c.library} over {c.ring}"
    try:
        made, meant = function(c)
        if c.library == "dask":
            made = [x.persist(scheduler="sync") if hasattr(x, "dask") else x for x in made]
    except tw.TilewiseError:
        return "refused", None
    except Exception as error:  # the point is to see it
        return "made", f"{case}: {type(error).__name__}: {error}"
    for one, P in zip(made, meant, strict=True):
        if c.library == "dask" and not hasattr(one, "dask"):
            return "made", f"{case}: a Dask array was computed into {type(one).__name__}"
        got = back(one, c.ring)
        if got.shape != P.shape:
            return "made", f"{case}: shape {got.shape} instead of {P.shape}"
        if got.dtype.newbyteorder("=") != P.dtype:  # a power of one is the matrix itself, as in NumPy
            return "made", f"{case}: dtype {got.dtype} instead of {P.dtype}"
        with np.errstate(all="ignore"):
            wrong = difference(got, P, P.dtype)
        if wrong:
            return "made", f"{case}: {wrong}"
    return "made", None


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    seed = int(sys.argv[2]) if len(sys.argv) > 2 and sys.argv[2] != "clock" else time.time_ns() % 2**40
    libraries = tuple(sys.argv[3].split(",")) if len(sys.argv) > 3 else ("numpy", "lists", "torch", "jax")
    counts, number, faults, last = {"made": 0, "refused": 0}, 0, 0, time.process_time() + seconds
    print("seed", seed, flush=True)
    while time.process_time() < last:
        kind, wrong = audit(seed + number, libraries)
        counts[kind] += 1
        if wrong:
            faults += 1
            print(f"seed {seed + number}: {wrong}", flush=True)
        number += 1
    print(f"{number} products from seed {seed}: {counts}, {faults} faults", flush=True)


if __name__ == "__main__":
    main()
