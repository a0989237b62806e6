"""What a kernel family is worth: products for which it is chosen, beside the plans that would be chosen without it.

    python tests/support/without_family.py [FAMILY ...] [--seed 1] [--seconds 100] [--save FILE]
    python tests/support/without_family.py [FAMILY ...] --card a100        with no card: expected times alone
    python tests/support/without_family.py [FAMILY ...] --timed FILE       with no card: of times that were saved
    python tests/support/without_family.py FAMILY --configs 'c.cluster > 1'

FAMILY: a name of the registry; names joined by + are removed together; all but the course's where none is given.
Products are drawn and timed as by `tilewise tune --calibrate`. A line for each FAMILY: (time without / time with) of
the plan that is expected to be the next, and of the fastest other one. The last line is all products: by how much the
chosen plan's time is above the fastest one's. --save keeps every time, so that any removal can be judged later.
--configs removes those configurations `c` of a FAMILY with tables, for products `p`, of which the expression is true.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import count, islice
from operator import itemgetter
from typing import Any, NamedTuple

from tilewise.bench.calibrate import measured, problem_of
from tilewise.core.machine import KNOWN_CARDS, Machine
from tilewise.core.plan import Plan
from tilewise.core.tuning import table_for
from tilewise.errors import TilewiseError
from tilewise.kernels.by_configs import Tabled, timed
from tilewise.kernels.calibration import calibrated
from tilewise.kernels.choosing import _cost, ranked_plans
from tilewise.kernels.registry import BY_NAME, COURSE, FAMILIES

FAR = 1000.0  # a time many times as long, or no other family, counts as this many


class Product(NamedTuple):
    """A drawn product, with the expected and the measured seconds of each family that takes it."""

    number: int
    what: str
    expected: dict[str, float]
    seconds: dict[str, float]

    def chosen(self, without: tuple[str, ...] = ()) -> str | None:
        return min((x for x in self.expected if x not in without), key=self.expected.__getitem__, default=None)

    def fastest(self, without: tuple[str, ...] = ()) -> str | None:
        return min((x for x in self.seconds if x not in without), key=self.seconds.__getitem__, default=None)

    def loss(self, other: str | None) -> float:
        """Seconds of another family over those of the chosen one."""
        chosen = self.chosen()
        return min(FAR, self.seconds[other] / self.seconds[chosen]) if other and chosen else FAR


def machine_of(card: str) -> Machine:
    made = KNOWN_CARDS[card]
    return replace(made, arch="sm_90a", tuned=table_for("NVIDIA H200")) if card == "h200" else made


def product_of(number: int, timed: Iterable[tuple[Plan, float]]) -> Product:
    every = list(timed)
    p = every[0][0].problem
    layouts = "".join("NT"[abs(x.row) < abs(x.col)] for x in (p.layout_m, p.layout_n))
    what = f"{p.shape} {layouts} {p.dtype.name} {p.precision} {p.semiring.name}"
    expected = {plan.family: _cost(plan) for plan, _ in every}
    return Product(number, what, expected, {plan.family: seconds for plan, seconds in every})


def expected(machine: Machine, seed: str) -> Iterable[Product]:
    """With expected times for times."""
    for number in count(1):
        try:
            plans = [x for x in ranked_plans(problem_of(seed, number), machine) if not x.real]
        except TilewiseError:  # the semiring does not have the dtype
            continue
        if plans:
            yield product_of(number, [(x, _cost(x)) for x in plans])


def altered(family: Any, gone: Callable[[Any, Any], bool], machine: Machine, seed: str) -> Iterator[tuple[Plan, Plan]]:
    """The plans of drawn products for which a configuration is chosen that goes, and what is expected next."""
    for number in count(1):
        try:
            plans = [x for x in ranked_plans(problem_of(seed, number), machine) if not x.real]
        except TilewiseError:  # the semiring does not have the dtype
            continue
        chosen = plans[0] if plans and plans[0].family == family.name else None
        if chosen is None or chosen.problem.epilogue or not gone(chosen.config, p := chosen.problem):
            continue
        others, tables = plans[1:], family.tables(p, machine)
        if left := [(seconds, config) for config, seconds in timed(tables) if not gone(config, p)]:
            others.append(calibrated(family.planned(p, machine, None, None, *min(left, key=itemgetter(0)))))
        if others:
            yield chosen, min(others, key=_cost)


def seconds_of(plans: tuple[Plan, Plan]) -> list[float]:
    """On a card."""
    import torch

    from tilewise.bench.calibrate import ROUNDS, Operands
    from tilewise.bench.timing import replayed

    operands = Operands(torch, plans[0].problem)
    with torch.no_grad():
        return list(replayed(torch, {str(i): operands.work(plan) for i, plan in enumerate(plans)}, ROUNDS).values())


def mean(losses: list[float]) -> float:
    return math.exp(sum(map(math.log, losses)) / len(losses)) if losses else 1.0


def summary(losses: list[float]) -> str:
    return f"{mean(losses):.3f} worst {max(losses, default=1.0):.2f}"


def report(families: Iterable[tuple[str, ...]], every: list[Product]) -> None:
    for names in families:
        own = [x for x in every if x.chosen() in names]
        to_next, to_best = ([x.loss(of(x, names)) for x in own] for of in (Product.chosen, Product.fastest))
        print(f"{'+'.join(names):22} {len(own):5} chosen: next {summary(to_next)}; fastest other {summary(to_best)}")
    losses = [1 / x.loss(x.fastest()) for x in every]
    print(f"{len(every)} products: the chosen plan takes {summary(losses)} of the fastest one's time")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("families", nargs="*")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--draws", type=int, default=4000, help="with --card")
    parser.add_argument("--seconds", type=float, default=100.0)
    parser.add_argument("--save", help="a file to which a line of JSON is added for each timed product")
    parser.add_argument("--card", choices=KNOWN_CARDS)
    parser.add_argument("--timed", help="a file of --save, reported again")
    parser.add_argument("--configs", help="an expression of c and p: the configurations that are removed")
    parser.add_argument("--products", type=int, default=50, help="with --configs")
    options = parser.parse_args()
    known = [x.name for x in FAMILIES if x is not COURSE]
    families = [tuple(name.split("+")) for name in options.families or known]
    for name in (name for names in families for name in names):
        if name not in BY_NAME:
            parser.error(f"{name} is not known; known are {', '.join(known)}")
    if options.configs:
        if not isinstance(BY_NAME[families[0][0]], Tabled):
            parser.error(f"--configs: the cost model of {families[0][0]} is no set of tables")
        machine, gone = machine_of(options.card or "h200"), eval(f"lambda c, p: {options.configs}")
        pairs = list(islice(altered(BY_NAME[families[0][0]], gone, machine, options.seed), options.products))
        every_time = [[_cost(plan) for plan in pair] if options.card else seconds_of(pair) for pair in pairs]
        losses = [other / chosen for chosen, other in every_time]
        print(f"{len(losses)} products: without {summary(losses)}; {sum(x > 1.075 for x in losses)} above 1.075")
        return
    if options.timed:
        with open(options.timed, encoding="utf-8") as file:
            every = [Product(**json.loads(line)) for line in file]
    elif options.card:
        every = list(islice(expected(machine_of(options.card), options.seed), options.draws))
    else:
        from tilewise.backends.cuda.device import describe

        timed = measured(options.seconds, options.seed, describe("cuda:0"))
        every = [product_of(number, plans) for number, plans in timed]
    if options.save:
        with open(options.save, "a", encoding="utf-8") as file:
            file.writelines(json.dumps(x._asdict()) + "\n" for x in every)
    report(families, every)


if __name__ == "__main__":
    main()
