"""Every family of the registry by configurations drawn by the clock, for compute-sanitizer: `make sanitize`.

A new family is covered by its line in the registry. The seed is printed and is the argument that repeats a run; a
second one, 0/4 to 3/4, takes every fourth of the cases: four processes share what takes minutes under racecheck.
Exits 1 when a product is wrong.
"""

from __future__ import annotations

import itertools
import sys

import numpy as np

import tilewise as tw
from sanitized_products import cases
from seeds import next_seed
from tilewise.backends.cuda.device import describe
from tilewise.planning.launchers import launcher_of


def right(problem, family, config, machine, rng):
    """Small whole numbers: whatever the order of the sum, nothing is rounded before P."""
    m, k, n, dtype = problem.m, problem.k, problem.n, problem.dtype.numpy
    M, N = (rng.integers(-2, 3, sides).astype(dtype) for sides in ((m, k), (k, n)))
    plan = family.plan(problem, machine, None, None) if config is None else family.pinned(problem, machine, config)
    launcher = launcher_of(plan, "cuda:0")
    poison = np.full(max(1, launcher.scratch_bytes), 0xFF, np.uint8)
    with (
        tw.to_device(M) as Md,
        tw.to_device(N) as Nd,
        tw.to_device(np.full((m, n), 7, dtype)) as Pd,
        tw.to_device(poison) as scratch,
    ):
        launcher(0, M=Md.pointer, N=Nd.pointer, P=Pd.pointer, scratch=scratch.pointer)
        return np.array_equal(Pd.numpy(), (M.astype(np.float64) @ N.astype(np.float64)).astype(dtype))


def main(seed, part="0/1"):
    print("seed", seed, "part", part, flush=True)
    machine, rng, ran, wrong = describe("cuda:0"), np.random.default_rng(seed), {}, []
    first, step = map(int, part.split("/"))
    for problem, family, config in itertools.islice(cases(seed, machine), first, None, step):
        ran[family.name] = ran.get(family.name, 0) + 1
        if not right(problem, family, config, machine, rng):
            wrong.append(f"{problem} by {family.name}, {config}")
    print(", ".join(f"{name} {count}" for name, count in ran.items()))
    print(f"{len(wrong)} wrong", *wrong, sep="\n")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else next_seed() % 2**32, *sys.argv[2:]))
