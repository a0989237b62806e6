"""How long choosing a plan takes for shapes that were not seen before, with no card.

    python tests/support/planning_time.py [--shapes 200] [--seed 1] [--card h200] [--profile KIND]

For each kind of product a process of its own draws shapes and plans as many others first: formulas are then machine
code, and what depends on dtype and machine is there. It prints the median and the 90th percentile of the processor time
of one plan, and in the mean its calls of Python functions, and all calls. `--profile` lists what takes the time.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import random
import statistics
import subprocess
import sys
import time
from dataclasses import replace

from tilewise.algebra.builtin import SEMIRINGS
from tilewise.algebra.dtypes import dtype_named
from tilewise.bench.drawn_problems import stacked
from tilewise.bench.random_shapes import log_uniform
from tilewise.core.machine import KNOWN_CARDS, Machine
from tilewise.core.problem import Groups, Problem, problem_of_shape
from tilewise.core.tuning import table_for
from tilewise.planning.choose import make_plan
from tilewise.system.machine_code import compile_formulas

KINDS = {
    "bfloat16": {},
    "float16": {},
    "tf32": {"dtype": "float32", "precision": "tf32"},
    "float32": {},
    "float64": {},
    "int8": {},
    "min_plus": {"dtype": "float32", "semiring": "min_plus"},
    "stacks": {"dtype": "bfloat16"},
    "groups": {"dtype": "bfloat16"},
}


def drawn(rng: random.Random, kind: str) -> Problem:
    """A row-major product; half of them have extents that are multiples of eight."""
    given = dict(KINDS[kind])
    most = 512 if kind == "stacks" else 16384
    m, k, n = (log_uniform(rng, 1, most) for _ in range(3))
    if rng.random() < 0.5:
        m, k, n = (-(-extent // 8) * 8 for extent in (m, k, n))
    made = problem_of_shape(m, k, n, given.pop("dtype", kind), SEMIRINGS[given.pop("semiring", "plus_times")], **given)
    if kind == "int8":
        return replace(made, requested=dtype_named("int32"))
    if kind == "groups":
        return replace(made, layout_n=stacked(made.layout_n, k * n), groups=Groups(rng.choice((4, 16, 64))))
    if kind == "stacks":
        sides = (made.layout_m, m * k), (made.layout_n, k * n), (made.layout_p, m * n)
        of_m, of_n, of_p = (stacked(layout, step) for layout, step in sides)
        return replace(made, stack=(rng.randint(2, 256),), layout_m=of_m, layout_n=of_n, layout_p=of_p)
    return made


def machine_named(name: str) -> Machine:
    """With what was measured on it, if it is an H200."""
    card = KNOWN_CARDS[name]
    return replace(card, arch="sm_90a", tuned=table_for("NVIDIA H200")) if name == "h200" else card


def measured(options: argparse.Namespace, kind: str) -> str:
    rng, machine = random.Random(f"{options.seed} {kind}"), machine_named(options.card)
    before, problems, calls = ([drawn(rng, kind) for _ in range(options.shapes)] for _ in range(3))
    for number, problem in enumerate(before):
        make_plan(problem, machine)
        if number == 0:
            compile_formulas()
    times = []
    for problem in problems:
        start = time.thread_time()
        make_plan(problem, machine)
        times.append((time.thread_time() - start) * 1e6)
    profile = cProfile.Profile()
    for problem in calls:
        profile.runcall(make_plan, problem, machine)
    found = pstats.Stats(profile)
    if options.profile:
        found.sort_stats("tottime").print_stats(40)
    python = sum(row[1] for (file, *_), row in found.stats.items() if file != "~") / len(calls)  # type: ignore[attr-defined]
    ninetieth = statistics.quantiles(times, n=10)[-1]
    every = found.total_calls / len(calls)  # type: ignore[attr-defined]
    return f"{kind:10} {statistics.median(times):6.0f} {ninetieth:6.0f} {python:6.0f} {every:6.0f}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--card", default="h200")
    parser.add_argument("--profile", metavar="KIND", help="of one kind")
    parser.add_argument("--kind", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.profile or options.kind:
        print(measured(options, options.profile or options.kind))
        return 0
    print(
        f"{'kind':10} {'median':>6} {'90 %':>6} {'Python':>6} {'calls':>6}  (us of processor time; calls of one plan)"
    )
    own = [x for x in sys.argv[1:] if x != "--profile"]
    return max(
        subprocess.run([sys.executable, __file__, *own, "--kind", kind], check=False).returncode for kind in KINDS
    )


if __name__ == "__main__":
    sys.exit(main())
