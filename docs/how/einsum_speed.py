"""einsum beside np.einsum(optimize=True) on 200 random expressions, and over min_plus beside broadcast-and-reduce.

The figures of einsum.md. `python docs/how/einsum_speed.py [SEED]`
"""

import math
import sys
import time

import numpy as np

import tilewise as tw

LABELS = "abcdefg"
MOST_TERMS = 3e7  # product of all label sizes


def expression(rng):
    """Subscripts and shapes: two to four operands of one to three labels each, an output of any labels in any order."""
    while True:
        sizes = {label: int(rng.integers(2, 65)) for label in LABELS}
        many = int(rng.integers(2, 5))
        subscripts = ["".join(rng.choice(list(LABELS), int(rng.integers(1, 4)), replace=False)) for _ in range(many)]
        used = sorted(set("".join(subscripts)))
        if 1e4 <= math.prod(sizes[c] for c in used) <= MOST_TERMS:
            output = "".join(rng.permutation(used)[: int(rng.integers(0, min(4, len(used)) + 1))])
            return ",".join(subscripts) + "->" + output, [tuple(sizes[c] for c in labels) for labels in subscripts]


def seconds(work):
    work()
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
        if best > 0.2:
            break
    return best


def broadcast_and_reduce(x, y, subscripts):
    """Every term by broadcasting, then the minimum: the usual NumPy expression."""
    if subscripts == "ij,jk->ik":
        return (x[:, :, None] + y[None]).min(1)
    return (x[:, :, :, None] + y[:, None]).min(2)


seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
rng = np.random.default_rng(seed)
ratios = []
for _ in range(200):
    subscripts, shapes = expression(rng)
    operands = [rng.standard_normal(shape) for shape in shapes]
    np.testing.assert_allclose(
        tw.einsum(subscripts, *operands),
        np.einsum(subscripts, *operands, optimize=True),
        rtol=1e-7,
        atol=1e-7,
        err_msg=subscripts,
    )
    ours = seconds(lambda w=subscripts, x=operands: tw.einsum(w, *x))
    numpys = seconds(lambda w=subscripts, x=operands: np.einsum(w, *x, optimize=True))
    ratios.append(numpys / ours)
    if "-v" in sys.argv and numpys < 0.7 * ours:
        print(f"{subscripts} {shapes}: {1e6 * ours:.0f} µs, NumPy {1e6 * numpys:.0f} µs")
ratios = np.array(ratios)
mean, least = np.exp(np.log(ratios).mean()), np.quantile(ratios, 0.05)
print(
    f"200 expressions, seed {seed}: np.einsum(optimize=True) takes {mean:.2f} times as long (geometric mean), 5 % "
    f"of them below {least:.2f}, {100 * (ratios >= 1).mean():.0f} % at 1 or more"
)
for subscripts, left, right in (
    ("ij,jk->ik", (300, 300), (300, 300)),
    ("bij,bjk->bik", (16, 100, 100), (16, 100, 100)),
):
    x, y = rng.random(left), rng.random(right)
    ours = seconds(lambda w=subscripts, x=x, y=y: tw.einsum(w, x, y, semiring="min_plus"))
    terms = seconds(lambda w=subscripts, x=x, y=y: broadcast_and_reduce(x, y, w))
    print(
        f"min_plus {subscripts} {left}: {1e3 * ours:.2f} ms, broadcast {1e3 * terms:.1f} ms: {terms / ours:.0f} times"
    )
