"""Every kernel family of the CPU that takes a product, timed: how good the planner's choice is, and NumPy beside it.

`python docs/how/families_speed.py [COUNT] [SEED] [DTYPE]`: one thread; m, k and n log-uniform from 1 to 200,000, each
operand row- or column-major. Thread time, so that other processes on the core count little.
"""

import math
import random
import sys
import time

import numpy as np

import tilewise as tw
from tilewise.backends.cpu import registry
from tilewise.backends.cpu.family import views
from tilewise.backends.cpu.limits import host_machine
from tilewise.backends.cpu.ready import Ready
from tilewise.bench.blas_threads import set_blas_threads
from tilewise.core.options import Options
from tilewise.dispatch.bind import bind

CELLS, LEAST, MOST = 2**21, 500, 3e7  # most cells of M, N and P together; steps
HOPELESS = 3  # times the fastest, from which a family is timed no further
ROUNDS, SECONDS = 4, 0.005  # for each candidate and round


def drawn(rng):
    while True:
        m, k, n = (int(math.exp(rng.uniform(0, math.log(2e5)))) for _ in range(3))
        if m * k + k * n + m * n <= CELLS and LEAST <= m * k * n <= MOST:
            return m, k, n


def candidates(M, N):
    """The name of the planner's choice, and a callable for every family that takes the product or its transpose."""
    problem, found = bind(M, N, Options()).problem, {}
    tile = registry.tile_of(problem, host_machine())
    family, view, _ = registry._best(problem, tile)
    for family_too in registry.FAMILIES.values():
        for view_too in views(problem):
            if registry._may_take(family_too, problem, tile) and family_too.takes(problem, view_too, tile):
                ready = Ready(problem, registry._blocking(problem, family_too, view_too, tile, ""))
                ready.shape = problem.m, problem.n
                found[family_too.name, view_too.swapped] = ready.into_fresh_memory(), ready
    return (family.name, view.swapped), {name: work for name, (work, _) in found.items()}, found


def least(work, seconds=SECONDS):
    work()
    start = time.perf_counter()
    work()
    took = time.perf_counter() - start
    clock = time.thread_time if took > 2e-4 else time.perf_counter  # it takes a third of a microsecond
    best = math.inf
    for _ in range(max(2, min(60, int(seconds / max(took, 1e-7))))):
        start = clock()
        work()
        best = min(best, clock() - start)
    return best


def timed(M, N):
    """The seconds of the choice, of the fastest family and of NumPy, and the names of both."""
    choice, works, _kept = candidates(M, N)
    runs = {name: (lambda work=work: work(M, N)) for name, work in works.items()}
    first = {name: least(run, 0) for name, run in runs.items()}
    runs = {x: run for x, run in runs.items() if first[x] < HOPELESS * min(first.values()) or x == choice}
    runs["numpy"] = lambda: M @ N
    seconds = {name: min(least(run) for _ in range(ROUNDS)) for name, run in runs.items()}
    numpys = seconds.pop("numpy")
    fastest = min(seconds, key=seconds.__getitem__)
    return seconds[choice], seconds[fastest], numpys, choice, fastest


def mean(x):
    return math.exp(sum(map(math.log, x)) / len(x))


tw.set_num_threads(1)
set_blas_threads(1)
count = int(sys.argv[1]) if len(sys.argv) > 1 else 100
seed = int(sys.argv[2]) if len(sys.argv) > 2 else int(time.time())
dtype = sys.argv[3] if len(sys.argv) > 3 else "float32"
rng, chance, rows = random.Random(seed), np.random.default_rng(seed), []
for _ in range(count):
    m, k, n = drawn(rng)
    M, N = ((9 * chance.standard_normal(shape)).astype(dtype, order=rng.choice("CF")) for shape in ((m, k), (k, n)))
    ours, best, numpys, choice, fastest = timed(M, N)
    orders = "".join("C" if x.flags.c_contiguous else "F" for x in (M, N))
    names = ("{}{}".format(name, ", transposed" * swapped) for name, swapped in (choice, fastest))
    rows.append(
        (best / ours, numpys / ours, f"{m}x{k}x{n} {orders}: {1e6 * ours:.1f} µs by {' instead of '.join(names)}")
    )
share, ratio = [row[0] for row in rows], [row[1] for row in rows]
slow, behind = (sum(x < limit for x in part) for part, limit in ((share, 0.8), (ratio, 0.7)))
print(f"{count} products of {dtype}, seed {seed}: {mean(share):.3f} of the fastest family's speed, under 0.8 in {slow}")
print(f"{mean(ratio):.2f} of NumPy's speed, under 0.7 in {behind}, lowest {min(ratio):.2f}")
for row in sorted(rows)[:8]:
    print("  {:.2f} of the fastest, {:.2f} of NumPy: {}".format(*row))
