"""The measurements of `tilewise tune` on a card.

For each product of a suite, the configs that the cost model expects to be near the best are timed, interleaved. The
fastest is entered into the card's table, with the time of the model's own choice, which shows the gain.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

from tilewise.bench.card_shapes import CASES
from tilewise.bench.suites import Shape
from tilewise.bench.timing import Work, on_card
from tilewise.bench.torch_products import ProductCase, is_cold, prepared, torch_for
from tilewise.core.machine import Machine
from tilewise.core.plan import Plan
from tilewise.core.problem import Problem
from tilewise.core.tuning import WORTH, TunedClass, TunedTable
from tilewise.kernels.recipes import recipe_of
from tilewise.kernels.registry import family_of
from tilewise.planning.choose import make_plan
from tilewise.planning.launchers import run_plan

AT_MOST = 6  # configs timed for one product
NEAR = 1.3  # configs expected to be slower than the best by more than this factor are not timed

TunedProduct = tuple[ProductCase, str]  # with its dtype


def suite(dtypes: tuple[str, ...], shapes: tuple[Shape, ...] = ()) -> list[TunedProduct]:
    """The products to measure: those of `bench shapes`, or the shapes given."""
    return list(itertools.product(map(ProductCase, shapes) if shapes else CASES, dtypes))


def tune(
    products: list[TunedProduct], machine: Machine, table: TunedTable, rounds: int, enough: Callable[[], bool]
) -> Iterator[tuple[TunedProduct, str, TunedClass | None, TunedTable]]:
    """(product, class, its new entry or None where the table had one, the table now), until `enough`."""
    untuned = replace(machine, tuned=None)
    for product in products:
        if enough():
            return
        problem, M, N, P = _operands(product)
        kernel = make_plan(problem, untuned).kernel
        family = family_of(kernel)
        key = family.tuning_class(problem)
        if key is None:
            continue
        if key in table.entries:
            yield product, key, None, table
            continue
        entry = _measured(product, problem, untuned, kernel, (M, N, P), rounds)
        table = TunedTable(table.card, {**table.entries, key: entry})
        yield product, key, entry, table


def _measured(
    product: TunedProduct, problem: Problem, machine: Machine, kernel: str, tensors: tuple[Any, Any, Any], rounds: int
) -> TunedClass:
    from cuda.core import Stream

    torch = torch_for("tilewise tune")
    plans = _candidates(problem, machine, kernel)
    compile_all(list(plans.values()), machine.arch)
    stream = Stream.from_handle(torch.cuda.current_stream().cuda_stream)
    M, N, P = (x.data_ptr() for x in tensors)
    works: dict[str, Work] = {
        spec: partial(run_plan, plan, "cuda:0", stream, M=M, N=N, P=P) for spec, plan in plans.items()
    }
    seconds = on_card(torch, works, rounds, cold=is_cold(*tensors))
    first, best = next(iter(plans)), min(seconds, key=lambda spec: seconds[spec])
    if seconds[first] < WORTH * seconds[best]:
        best = first
    return TunedClass(product[0].shape, best, seconds[best], first, seconds[first])


def _candidates(problem: Problem, machine: Machine, kernel: str) -> dict[str, Plan]:
    """The plans to time, by the names of their configs, the model's choice first."""
    family = family_of(kernel)
    timed = [(family.seconds(config, problem, machine), config) for config in family.configurations(problem, machine)]
    timed.sort(key=lambda pair: pair[0])
    near = [config for seconds, config in timed if seconds <= NEAR * timed[0][0]][:AT_MOST]
    return {config.spec(): family.pinned(problem, machine, config) for config in near}


def compile_all(plans: list[Plan], arch: str) -> None:
    """All kernels of the plans, in parallel, before anything is timed."""
    from tilewise.backends.cuda.compile import compile_source

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        texts = {text for plan in plans for text in recipe_of(plan).sources}
        list(pool.map(lambda text: compile_source(text, arch), texts))


def _operands(product: TunedProduct) -> tuple[Problem, Any, Any, Any]:
    from tilewise.api import plan

    _, M, N, P = prepared("tilewise tune", *product)
    return plan(M, N).problem, M, N, P
