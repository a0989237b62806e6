"""`wgmma_half` for the planner: conditions, configurations, and the choice."""

from __future__ import annotations

from tilewise.core.machine import Machine
from tilewise.core.problem import Problem
from tilewise.kernels.by_configs import Table, chosen, fastest, preferring_measured, tables_for, timed, tuned_class
from tilewise.kernels.capabilities import Condition
from tilewise.kernels.family import Searched
from tilewise.kernels.shared.layouts import AS_IT_IS
from tilewise.kernels.wgmma_gemm.wgmma_half import batched, cluster_split_k, grouped, single, table
from tilewise.kernels.wgmma_gemm.wgmma_half.routes import route
from tilewise.kernels.wgmma_gemm.wgmma_half.tiles import TensorConfig, fixed_parts
from tilewise.system.machine_code import Formula

KERNEL = "wgmma_half"
IDEA = "tiles stream in by the copy engine, warpgroups multiply them on tensor cores"


def _stores_unrounded(p: Problem) -> bool:
    lead = p.layout_p.leading_dimension(p.m, p.n)
    return not p.unrounded or not (lead is None or lead % 2 or any(stride % 2 for stride in p.layout_p.stack))


def _groups(p: Problem) -> bool:
    by_rows = p.groups is not None and p.groups.along == "rows"
    able = not p.unrounded and grouped.can_take(p, by_rows, p.dtype_m != p.dtype, p.dtype_n != p.dtype)
    return p.groups is None or able


UNROUNDED = Condition(_stores_unrounded, "keeps unrounded sums in rows that start on 8 bytes")
GROUPS = Condition(_groups, "rounds groups, and takes those along k of operands whose rows are contiguous")


def tuning_class(problem: Problem) -> str:
    """The key of the product's class in tuned tables."""
    p = problem
    routes = route(p.layout_m, p.m, p.k, p.dtype, p.dtype), route(p.layout_n, p.k, p.n, p.dtype, p.dtype)
    return tuned_class(KERNEL, p, routes == (AS_IT_IS, AS_IT_IS))


def configs(problem: Problem, machine: Machine) -> list[TensorConfig]:
    """Every configuration."""
    return [config for config, _ in timed(tables(problem, machine))]


SINGLE = Formula(single.expected, table.given_of, passes=table.passes)
STACK = Formula(batched.expected, batched.given_of, passes=batched.passes)


def takes_symmetric(p: Problem) -> bool:
    """Whether the upper tiles may be all that is computed: not where a row's bits must not depend on its place."""
    return p.symmetric and not p.unrounded and p.reproducible is None


def searched(p: Problem, machine: Machine) -> list[Searched]:
    """The configurations of single products, of stacks, or of groups."""
    if p.groups:
        return grouped.searched(p, machine)
    figures, inside, made = table.figures_of(p, machine), cluster_split_k.EXPECTED, list[Searched]()
    for places, rows in (table.table(), *([table.symmetric_table()] if takes_symmetric(p) else [])):

        def config(number: int, problem: Problem, places: tuple[table.Place, ...] = places) -> TensorConfig:
            return table.config_of(places[number], problem, machine)

        made.append(Searched(SINGLE if p.members == 1 else STACK, rows, figures, config))
    if p.members == 1:
        rows = cluster_split_k.table(machine.units)[1]
        made.append(
            Searched(inside, rows, figures, lambda number, p: cluster_split_k.config_of(number, p, machine.units))
        )
    return made


def tables(p: Problem, machine: Machine) -> list[Table]:
    return tables_for(searched(p, machine), p)


def best_config(problem: Problem, machine: Machine) -> tuple[float, TensorConfig]:
    """The least expected seconds, and their configuration; a tuned table decides between those that are close."""
    if problem.ordered:
        return chosen(tables(problem, machine), problem, fixed_parts(problem, machine.units))
    known = preferring_measured(KERNEL, tuning_class, problem, machine, lambda: tables(problem, machine))
    return known or fastest(tables(problem, machine), problem.largest)
