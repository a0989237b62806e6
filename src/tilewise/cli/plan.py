"""`tilewise plan`: the plan of a product, without running it, for a card that need not be present."""

from __future__ import annotations

import sys
from dataclasses import replace

import click

from tilewise.cli.output import json_option, show
from tilewise.core.machine import KNOWN_CARDS, Machine
from tilewise.core.problem import Groups, Problem, parse_shape, problem_of_shape, row_major
from tilewise.errors import UsageError


@click.command("plan")
@click.option("--shape", required=True, help="MxKxN, for example 4097x4097x4097.")
@click.option("--dtype", default="float32", show_default=True, help="For values with fields one each: float32,int32.")
@click.option("--semiring", default="plus_times", show_default=True)
@click.option("--device", default="auto", show_default=True, help="auto, cpu, cuda, or a card by name: h200, a100, …")
@click.option("--kernel", help="Pin a rung of the ladder.")
@click.option("--tile", type=int, help="Pin TILE_WIDTH, 1 to 32.")
@click.option("--precision", default="high", show_default=True)
@click.option("--reproducible", help="The same bits for any batch or on every machine: batch, everywhere.")
@click.option("--memory", help="Stream within this much memory of the device, or of each worker: 16GB.")
@click.option("--workers", type=int, help="Spread over this many machines: bytes, memory and time of each.")
@click.option("--bandwidth", default="10GB", show_default=True, help="Bytes a second that one worker receives.")
@click.option("--closure", is_flag=True, help="Plan the closure of a graph of M nodes in a file instead.")
@click.option("--members", type=int, help="A stack of this many such products.")
@click.option("--groups", type=int, help="M's rows in this many groups with an N each, as in tw.grouped_matmul.")
@click.option("--source", is_flag=True, help="Print the CUDA C that would run, whole and self-contained.")
@json_option
def command(
    shape: str, dtype: str, semiring: str, device: str, kernel: str | None, tile: int | None, precision: str,
    reproducible: str | None, memory: str | None, workers: int | None, bandwidth: str, closure: bool,
    members: int | None, groups: int | None,
    source: bool, as_json: bool,
) -> None:  # fmt: skip
    """Kernel, tile, grid, phases, shared memory, traffic with and without tiles, floor, and why."""
    from tilewise.algebra.builtin import is_structured_name
    from tilewise.algebra.dtypes import FLOAT8, dtype_named
    from tilewise.planning.choose import make_plan

    if is_structured_name(semiring):
        from tilewise.cli.plan_structured import plan_structured

        plan_structured(shape, dtype, semiring, _machine(device, bool(kernel or source)), source, as_json)
        return
    machine = _machine(device, bool(kernel or source))
    float8 = FLOAT8.get(dtype)  # multiplied as float32 on a CPU
    number = float8 if float8 and machine.kind == "cuda" else dtype_named("float32" if float8 else dtype)
    problem = problem_of_shape(*parse_shape(shape), number, semiring, precision=precision, reproducible=reproducible)
    for name, count in (("--members", members), ("--groups", groups), ("--workers", workers)):
        if count is not None and count < 1:
            raise UsageError(f"{name} {count} must be 1 or more")
    if closure or workers or memory is not None:
        if reproducible:
            raise UsageError("--reproducible is for products in memory: leave --closure, --workers and --memory out")
        from tilewise.cli.plan_scale import plan_closure, plan_memory, plan_spread

        if closure:
            plan_closure(problem, memory, as_json)
        elif workers:
            plan_spread(problem, machine, workers, memory, bandwidth, as_json)
        else:
            assert memory is not None
            plan_memory(problem, machine, memory, as_json)
        return
    plan = make_plan(_batched(problem, members, groups, machine), machine, kernel, tile)
    if source:
        if plan.engine != "cuda":
            raise UsageError("--source shows a kernel's text: name a card, for example --device h200")
        from tilewise.kernels.keys import text_of
        from tilewise.kernels.recipes import recipe_of

        sys.stdout.write("\n".join(map(text_of, recipe_of(plan).sources)))
        return
    show(plan.to_json(), plan.rows(), as_json)


def _machine(device: str, for_card: bool) -> Machine:
    """The device by name; `auto`: the best present, or an H200 if a card's plan is needed (`for_card`)."""
    from tilewise.arrays.card import card_count
    from tilewise.backends.cpu.limits import host_machine

    if device.lower() in KNOWN_CARDS:
        return _tuned(KNOWN_CARDS[device.lower()])
    if device == "cpu" or (device == "auto" and not card_count() and not for_card):
        return host_machine(measured=True)
    if device == "auto" and not card_count():
        return _tuned(KNOWN_CARDS["h200"])  # a plan needs no card
    if device != "auto" and device.partition(":")[0] != "cuda":
        known = ", ".join(KNOWN_CARDS)
        raise UsageError(f"--device {device!r} is not known: auto, cpu, cuda, cuda:1, or a card by name: {known}")
    from tilewise.backends.cuda.device import describe, full_name

    return describe(full_name("cuda" if device == "auto" else device))


def _tuned(machine: Machine) -> Machine:
    """The card with its tuned table."""
    from tilewise.core.tuning import table_for
    from tilewise.system.cache import cache_folder

    return replace(machine, tuned=table_for(machine.name, cache_folder()))


def _batched(problem: Problem, members: int | None, groups: int | None, machine: Machine) -> Problem:
    """The problem as a stack of contiguous members, or with rows in groups of unknown sizes."""
    if members is not None and groups is not None:
        raise UsageError("--members and --groups exclude each other: rows in groups are one matrix")
    p = problem
    if groups is not None:
        if machine.kind != "cuda":
            raise UsageError(
                "--groups plans for a card, for example --device h200: the host multiplies groups one by one"
            )
        return replace(p, layout_n=row_major(p.k, p.n, (groups,)), groups=Groups(groups))
    if members is None:
        return p
    stack = (members,)
    sides = {"layout_m": (p.m, p.k), "layout_n": (p.k, p.n), "layout_p": (p.m, p.n)}
    return replace(p, stack=stack, **{name: row_major(*side, stack) for name, side in sides.items()})  # type: ignore[arg-type]
