"""`tilewise warm`: every kernel of a dtype, built before a call needs one."""

from __future__ import annotations

from typing import Any

import click

from tilewise.cli.output import json_option, print_json, print_table, progress


@click.command("warm")
@click.option("--dtype", "dtypes", help="bf16,fp16,fp32,tf32,fp64 or NumPy's names; those five where it is left out.")
@click.option("--semiring", default="plus_times", show_default=True, help="By name.")
@click.option("--arch", help="Build for a card that is not here: sm_75, sm_80, sm_86, sm_89, sm_90a, sm_100, sm_120.")
@click.option("--device", default="cuda", show_default=True, help="The card to build for.")
@click.option("--groups", is_flag=True, help="The kernels of tw.grouped_matmul, too.")
@click.option("--layers", is_flag=True, help="Those of a model's layers, too: with a bias, and accelerate()'s loss.")
@click.option("--workers", type=click.IntRange(1), help="Threads; all cores where it is left out.")
@json_option
def command(dtypes: str | None, semiring: str, as_json: bool, **how: Any) -> None:
    """Build every kernel that products of a dtype may need, with all cores, into the cache.

    After it no product of any shape, layout and strides waits for a compiler; with TILEWISE_COMPILE=never one that
    would is an error, for servers.
    """
    from tilewise.planning.precompile import warm
    from tilewise.system.quantities import seconds, size

    bar, task = progress(None, "warm")

    def shown(kind: str, done: int, total: int) -> None:
        bar.update(task, description=f"warm {kind}", completed=done, total=total)

    with bar:
        made = warm(semiring, dtypes, progress=shown, **how)
    if as_json:
        print_json({"version": 1, "semiring": semiring, "warmed": [one.to_json() for one in made]})
        return
    cells = [[one.kind, str(one.kernels), str(one.built), size(one.bytes), seconds(one.seconds)] for one in made]
    print_table(f"{semiring} on {made[0].arch}", ["", "kernels", "built now", "machine code", "took"], cells)
