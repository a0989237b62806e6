"""What a kernel family is worth: products for which it is chosen, beside the plans that would be chosen without it.

    python tests/support/without_family.py [FAMILY ...] [--seed 1] [--draws 4000] [--each 40] [--seconds 100]
    python tests/support/without_family.py [FAMILY ...] --card a100        with no card: expected times alone

FAMILY: a name of the registry; names joined by + are removed together; all but the course's where none is given.
Draws products, stacks and groups of every dtype and layout, of odd sizes, neighbours of powers of two, skinny, thin,
deep and tiny ones. Two plans are compared with the chosen one: the next that competes, and the next of all kernels that
take the problem when they are requested by name. On a card they are timed interleaved on the same random operands
(medians, in CUDA graphs), and each is checked against float64. A line for each FAMILY: products, geometric mean and
worst of (time without / time with) of products as they were drawn, the same of those with the greatest expected loss,
and wrong results. --save keeps each product: to decide one needs the single ones, not the mean alone.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from typing import Any, NamedTuple

from drawn_problems import drawn_anywhere
from tilewise.core.machine import KNOWN_CARDS, Machine
from tilewise.core.plan import Plan
from tilewise.core.problem import Problem
from tilewise.core.tuning import table_for
from tilewise.errors import TilewiseError
from tilewise.kernels.choosing import _by, _weight, plans_in_turn, seen_by
from tilewise.kernels.detours import recipe_of
from tilewise.kernels.registry import BY_NAME, COURSE, FAMILIES

MOST_LAUNCHES = 40
MOST_BYTES = 4e9
ROUNDS = 5
FAR = 1000.0  # an expected time many times as long counts as this many
TOLERANCE = {"bfloat16": 1e-2, "float16": 2e-3, "float32": 1e-5, "tf32": 2e-3, "float64": 1e-12}


class Found(NamedTuple):
    """A drawn problem, the family chosen for it, and by what factor the next plan is expected to be slower."""

    number: int
    family: str
    loss: float


class Timed(NamedTuple):
    """The time without a family over the time with it, by the next plan that competes and by the next of all."""

    what: str
    competing: float
    requested: float
    wrong: int


def machine_of(card: str) -> Machine:
    made = KNOWN_CARDS[card]
    return replace(made, arch="sm_90a", tuned=table_for("NVIDIA H200")) if card == "h200" else made


def numbered(seed: str, number: int) -> Problem:
    """A drawn problem, as it is planned: members that share N are one taller product."""
    made = drawn_anywhere(random.Random(f"{seed} {number}"))
    return made.folded if made.stack and not made.groups else made


def plans(problem: Problem, machine: Machine, without: tuple[str, ...] = ()) -> tuple[Plan, Plan | None, Plan | None]:
    """The chosen plan; the next that competes, and the next of all, when these families are gone."""
    turn = plans_in_turn(problem, machine)
    gone = without or (turn[0].family,)
    next_one = next((x for x in turn if x.family not in gone and not x.real), None)
    every = [next_one] if next_one else []
    for family in FAMILIES:
        if family.name not in gone and not family.teaches and not problem.groups:
            try:
                if family.refusal(seen_by(family, problem), machine) is None:
                    every.append(_by(family, problem, machine, None, None))
            except (TilewiseError, ValueError, IndexError):  # no configuration
                continue
    return turn[0], next_one, min(every, key=_weight, default=None)


def all_drawn(machine: Machine, seed: str, numbers: range) -> list[Found]:
    """What is chosen for drawn problems."""
    made = []
    for number in numbers:
        problem = numbered(seed, number)
        try:
            turn = plans_in_turn(problem, machine)
        except TilewiseError:  # the semiring does not have the dtype
            continue
        if turn and not turn[0].real:
            others = [_weight(x) for x in turn if x.family != turn[0].family and not x.real]
            loss = min([*others, FAR * _weight(turn[0])]) / _weight(turn[0])
            made.append(Found(number, turn[0].family, loss))
    return made


def all_found(machine: Machine, options: argparse.Namespace) -> list[Found]:
    jobs = options.jobs or max(1, len(os.sched_getaffinity(0)) - 1)
    parts = [range(part, options.draws, jobs) for part in range(jobs)]
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        return sorted(one for part in pool.map(partial(all_drawn, machine, options.seed), parts) for one in part)


def selected(every: list[Found], names: tuple[str, ...], each: int) -> tuple[list[Found], list[Found]]:
    """Two thirds as they were drawn, and of the others those with the greatest expected loss."""
    own = [x for x in every if x.family in names]
    drawn = own[: each - each // 3]
    return drawn, sorted(own[len(drawn) :], key=lambda x: -x.loss)[: each // 3]


def mean(losses: list[float]) -> float:
    return math.exp(sum(map(math.log, losses)) / len(losses)) if losses else 1.0


def summary(losses: list[float]) -> str:
    return f"mean {mean(losses):.3f} worst {max(losses, default=1.0):.2f}"


# --- with no card ---


def expected(machine: Machine, options: argparse.Namespace) -> None:
    every = all_found(machine, options)
    for names in options.families:
        competing, requested = [], []
        for one in every:
            if one.family in names:
                problem = numbered(options.seed, one.number)
                chosen, next_one, any_one = plans(problem, machine, names)
                for losses, other in ((competing, next_one), (requested, any_one)):
                    losses.append(min(FAR, _weight(other) / _weight(chosen)) if other else FAR)
        share = len(competing) / max(1, len(every))
        print(f"{'+'.join(names):22} chosen {len(competing):5} ({share:.1%}): next that competes "
              f"{summary(competing)}; next of all {summary(requested)}", flush=True)  # fmt: skip


# --- on a card ---


def memory(torch: Any, rows: int, cols: int, layout: Any, stack: tuple[int, ...], name: str) -> Any:
    """Random numbers in a layout."""
    number = getattr(torch, name)
    steps = (*layout.stack, layout.row, layout.col)
    extents = (*stack, rows, cols)
    cells = 1 + sum((extent - 1) * step for extent, step in zip(extents, steps, strict=True))
    first = layout.misalignment // number.itemsize
    if number.is_floating_point:
        wide = torch.float32 if number.itemsize == 1 else number
        flat = torch.randn(cells + first, device="cuda", dtype=wide).to(number)
    else:
        low, high = (0, 2) if name == "bool" else (0 if name == "uint8" else -99, 100)
        flat = torch.randint(low, high, (cells + first,), device="cuda").to(number)
    return flat.as_strided(extents, steps, first)


def torch_name(dtype: Any) -> str:
    return "bool" if dtype.name.startswith("bool") else str(dtype.name)


class Product:
    """The operands of a problem on a card, and whether P is right."""

    def __init__(self, torch: Any, problem: Problem) -> None:
        p, self.torch, self.problem = problem, torch, problem
        self.M = memory(torch, p.m, p.k, p.layout_m, p.stack, torch_name(p.dtype_m))
        self.N = memory(torch, p.k, p.n, p.layout_n, p.stack_n, torch_name(p.dtype_n))
        self.P = memory(torch, p.m, p.n, p.layout_p, p.stack, torch_name(p.result))
        self.addresses = {"M": self.M.data_ptr(), "N": self.N.data_ptr(), "P": self.P.data_ptr()}
        if p.groups:
            length = p.m if p.groups.along == "rows" else p.k
            ends = torch.randint(0, length + 1, (p.groups.count,), device="cuda").sort().values
            ends[-1] = length
            self.ends = ends.to(torch.int64 if p.groups.wide else torch.int32)
            self.addresses["offsets"] = self.ends.data_ptr()
        if p.epilogue.bias:
            self.bias = torch.randn(p.n, device="cuda").to(getattr(torch, p.epilogue.bias.name))
            self.addresses["bias"] = self.bias.data_ptr()

    def work(self, plan: Plan) -> Any:
        from tilewise.planning.launchers import launcher_of

        torch, launcher = self.torch, launcher_of(plan, "cuda:0")
        scratch = torch.empty(max(1, launcher.scratch_bytes), dtype=torch.uint8, device="cuda")

        def launch() -> None:
            launcher(torch.cuda.current_stream().cuda_stream, scratch=scratch.data_ptr(), **self.addresses)

        return launch

    def right(self, launch: Any) -> bool:
        """One launch onto the semiring's zero, some rows and columns of some members compared."""
        torch, p = self.torch, self.problem
        self.P.fill_(p.algebra.zero if p.accumulate else 77 if torch_name(p.result) != "bool" else 1)
        launch()
        torch.cuda.synchronize()
        rows = torch.randperm(p.m, device="cuda")[: 8 if self.exact else 48]
        cols = torch.randperm(p.n, device="cuda")[: 16 if self.exact else 96]
        return all(self._alike(*part) for part in self._parts(rows, cols))

    @property
    def exact(self) -> bool:
        return self.problem.semiring.name != "plus_times" or self.problem.dtype.kind != "f"

    def _parts(self, rows: Any, cols: Any) -> Any:
        """Rows of M, columns of N, and the cells of P where they meet."""
        torch, p = self.torch, self.problem
        if p.groups and p.groups.along == "rows":
            some = rows[:12]
            of = torch.searchsorted(self.ends.long(), some, right=True)
            for row, group in zip(some.tolist(), of.tolist(), strict=True):
                yield self.M[row : row + 1], self.N[group][:, cols], self.P[row : row + 1, cols], cols
            return
        last = p.members - 1
        starts = [0, *self.ends.tolist()] if p.groups else []
        for number in sorted({0, last, random.Random(last).randint(0, last)}):
            M, N, P = (x[number] if p.stack else x for x in (self.M, self.N, self.P))
            if p.groups:
                M, N = M[:, starts[number] : starts[number + 1]], N[starts[number] : starts[number + 1]]
            yield M[rows], N[:, cols], P[rows][:, cols], cols

    def _alike(self, M: Any, N: Any, P: Any, cols: Any) -> bool:
        p, e = self.problem, self.problem.epilogue
        if self.exact:
            return agree(M, N, P, p)
        wide = [x.float().double() if x.element_size() == 1 else x.double() for x in (M, N)]
        made = e.alpha * (wide[0] @ wide[1])
        if e.bias:
            made = made + self.bias.double()[cols]
        if e.activation:
            made = activated(self.torch, e.activation, made)
        kind = "tf32" if p.dtype.name == "float32" and p.precision == "tf32" else p.result.name
        return bool((P.double() - made).norm() <= TOLERANCE[kind] * made.norm())


def agree(M: Any, N: Any, P: Any, p: Problem) -> bool:
    """By the oracle, which takes NumPy's arrays."""
    import numpy as np

    from oracle import assert_close, oracle

    sides = (x.cpu().numpy().astype(p.dtype.numpy) for x in (M, N))
    try:
        assert_close(np.asarray(P.cpu().numpy()), *oracle(*sides, p.semiring.name))
    except AssertionError:
        return False
    return True


def activated(torch: Any, name: str, x: Any) -> Any:
    made = torch.nn.functional
    if name == "gelu_tanh":
        return made.gelu(x, approximate="tanh")
    return getattr(made, name)(x)


def timed(torch: Any, problem: Problem, chosen: Plan, others: tuple[Plan | None, Plan | None]) -> Timed:
    """The chosen plan and one or two others; an infinite time where there is no other."""
    from tilewise.bench.timing import replayed

    product, works, wrong = Product(torch, problem), {}, 0
    for name, plan in (("with", chosen), ("competing", others[0]), ("requested", others[1])):
        if plan is not None and not (name == "requested" and plan == others[0]):
            works[name] = product.work(plan)
            if not product.right(works[name]):
                wrong += 1
                print(f"WRONG {plan.kernel} {plan.cut} {problem}", file=sys.stderr, flush=True)
    with torch.no_grad():
        seconds = replayed(torch, works, ROUNDS)
    losses = [seconds[name] / seconds["with"] for name in ("competing", "requested") if name in works]
    kernels = [x.kernel if x else "-" for x in (chosen, *others)]
    of = f"{problem.shape} {torch_name(problem.dtype)} {problem.semiring.name}"
    return Timed(
        f"{of} {' '.join(kernels)} {seconds['with'] * 1e6:.1f} us",
        losses[0] if losses else FAR,
        losses[-1] if losses else FAR,
        wrong,
    )


def too_large(problem: Problem) -> bool:
    return problem.least_bytes > MOST_BYTES


def measured(machine: Machine, options: argparse.Namespace) -> None:
    import torch

    from tilewise.backends.cuda.builders import build, workers_for

    start = time.monotonic()
    every = all_found(machine, options)
    cases: dict[tuple[str, ...], list[tuple[bool, Problem, Any]]] = {}
    for names in options.families:
        own = cases[names] = []
        for as_drawn, some in zip((True, False), selected(every, names, options.each), strict=True):
            for one in some:
                problem = numbered(options.seed, one.number)
                of = plans(problem, machine, names)
                launches = [len(recipe_of(x).steps) for x in of if x]
                if not too_large(problem) and max(launches) <= MOST_LAUNCHES:
                    own.append((as_drawn, problem, of))
    texts = {
        text for own in cases.values() for *_, of in own for plan in of if plan for text in recipe_of(plan).sources
    }
    print(f"{time.monotonic() - start:.0f} s: {len(every)} drawn, {len(texts)} kernels to build", flush=True)
    build(sorted(texts), machine.arch, workers_for(len(texts)), lambda *_: None)
    print(f"{time.monotonic() - start:.0f} s: built", flush=True)
    for number, (names, own) in enumerate(cases.items()):
        left = options.seconds - (time.monotonic() - start)
        one_family(torch, names, own, time.monotonic() + left / (len(cases) - number), options.save)


def one_family(
    torch: Any, names: tuple[str, ...], own: list[tuple[bool, Problem, Any]], end: float, save: str | None
) -> None:
    """The line of one family: products as they were drawn and those expected to lose most, in turn, until the end."""
    sides: dict[bool, list[Timed]] = {True: [], False: []}
    order = random.Random(0).sample(own, len(own))
    for as_drawn, problem, (chosen, *others) in order:
        if time.monotonic() > end:
            break
        try:
            sides[as_drawn].append(timed(torch, problem, chosen, tuple(others)))
        except Exception as error:  # one product's failure is reported; the others are still worth their time
            print(
                f"FAILED {chosen.kernel} {problem}: {type(error).__name__} {str(error)[:200]}",
                file=sys.stderr,
                flush=True,
            )
    every = sides[True] + sides[False]
    if save:
        with open(save, "a", encoding="utf-8") as file:
            file.writelines(json.dumps({"without": names, **x._asdict()}) + "\n" for x in every)
    worst = max(every, key=lambda x: x.requested, default=None)
    parts = []
    for title, some in (("as drawn", sides[True]), ("far", sides[False])):
        losses = f"competing {summary([x.competing for x in some])}, of all {summary([x.requested for x in some])}"
        parts.append(f"{len(some):3} {title}: {losses}")
    wrong = sum(x.wrong for x in every)
    print(f"{'+'.join(names):22} {'; '.join(parts)}; {wrong} wrong; worst {worst and worst.what}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("families", nargs="*")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--draws", type=int, default=4000)
    parser.add_argument("--each", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=100.0)
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--save", help="a file to which a line of JSON is added for each timed product")
    parser.add_argument("--card", choices=KNOWN_CARDS)
    options = parser.parse_args()
    every = [x.name for x in FAMILIES if x is not COURSE]
    options.families = [tuple(name.split("+")) for name in options.families or every]
    for name in (name for names in options.families for name in names):
        if name not in BY_NAME:
            parser.error(f"{name} is not known; known are {', '.join(every)}")
    if options.card:
        expected(machine_of(options.card), options)
        return
    from tilewise.backends.cuda.device import describe

    measured(describe("cuda:0"), options)


if __name__ == "__main__":
    main()
