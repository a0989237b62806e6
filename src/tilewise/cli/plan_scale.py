"""`tilewise plan --memory`, `--workers` and `--closure`: products and closures larger than one memory."""

from __future__ import annotations

from dataclasses import replace

from tilewise.cli.output import print_json, print_rows, print_table, show
from tilewise.core.machine import Machine
from tilewise.core.problem import Problem
from tilewise.planning.choose import make_plan
from tilewise.scale.budget import budget
from tilewise.system.quantities import seconds, size


def plan_memory(problem: Problem, machine: Machine, memory: str, as_json: bool) -> None:
    """Print the schedule within a memory budget: on this CPU from files, on a card from the host's memory."""
    room, problem = budget(memory, "--memory"), replace(problem, unrounded=True)
    if machine.kind == "cpu":
        from tilewise.scale.host import host_level, host_schedule

        schedule = host_schedule(problem, host_level(problem), room, name="--memory")
    else:
        from tilewise.scale.card import schedule_for

        schedule = schedule_for(problem, machine, room)
    result = problem.semiring.over(problem.dtype).result
    rows = [("problem", f"{problem.shape} {problem.dtype} {problem.semiring} -> {result}"), *schedule.summary()]
    show({"problem": problem.to_json(), "schedule": schedule.to_json()}, rows, as_json)


def plan_spread(
    problem: Problem, machine: Machine, workers: int, memory: str | None, bandwidth: str, as_json: bool
) -> None:
    """Print the 2-D and 2.5-D algorithms over many workers, each of them a `machine`."""
    from tilewise.scale.workers import Workers, plan_workers

    side = [max(1, min(8192, extent)) for extent in (problem.m, problem.k, problem.n)]
    sample = replace(problem, m=side[0], k=side[1], n=side[2])
    steps = sample.steps / make_plan(sample, machine).predicted
    machines = Workers(workers, steps, budget(bandwidth, "--bandwidth"), budget(memory, "--memory") if memory else 0)
    made = plan_workers(problem, machines)
    best = min(made, key=lambda spread: spread.predicted)
    if as_json:
        print_json({"problem": problem.to_json(), "spreads": [s.to_json() for s in made], "best": made.index(best)})
        return
    columns = ["", "tiles of P", "in, a worker", "sums added", "memory", "time", "of the floor"]
    title = (
        f"{problem.shape} {problem.dtype} {problem.semiring} over {workers:,} x {machine.name}, "
        f"{size(machines.bandwidth)}/s to each"
    )
    print_table(title, columns, [spread.row() for spread in made])
    print_rows([("best", f"{best.row()[0]} {best.row()[1]}: {seconds(best.predicted)}, floor {seconds(best.floor)}")])


def plan_closure(problem: Problem, memory: str | None, as_json: bool) -> None:
    """Print the rounds of a closure whose matrix stays in a file."""
    from tilewise.compose.graph.rounds import ENGINE_BYTES, algebra_for, choose_rounds, measured_steps
    from tilewise.scale.files import resident
    from tilewise.system.memory import usual_budget

    algebra = algebra_for(problem.semiring, problem.dtype)
    room = budget(memory, "--memory") if memory else usual_budget()
    steps = measured_steps(algebra)
    rounds = choose_rounds(problem.m, algebra.partial.itemsize, room, resident()[0] + ENGINE_BYTES, steps)
    show(rounds.to_json(), rounds.summary(), as_json)
