"""`tilewise demo`: a first run: product, check, phases, speed."""

from __future__ import annotations

import time
from typing import Any

import click
import numpy as np

from tilewise.cli.output import console, json_option, print_json, print_rows, remark
from tilewise.system.quantities import counted

SHAPE = (1000, 500, 700)


@click.command("demo")
@click.option("--device", default="auto", show_default=True, help="auto (the best present), cpu, cuda.")
@json_option
def command(device: str, as_json: bool) -> int:
    """Multiply on the best device present, check the product, show the phases, print time and speed-up."""
    from tilewise.cli.job import best_device, check_product, make_operands
    from tilewise.dispatch.timed import timed_matmul
    from tilewise.system.quantities import seconds

    chosen = best_device(device)
    M, N = make_operands(SHAPE, "float32", 0)
    timed_matmul(M, N, device=chosen)  # the first call compiles the kernel and starts the card
    report = timed_matmul(M, N, device=chosen)
    checked = check_product(M, N, report)
    loop = loop_seconds(M, N)
    plan, times = report.plan, report.times
    speed_up = checked.cpu_seconds / times.kernel if plan.engine == "cuda" else loop / times.kernel
    over = "the reference engine on this CPU" if plan.engine == "cuda" else "a plain Python loop"
    if as_json:
        print_json(
            report.to_json()
            | {"check": {"relative_error": checked.error, "passed": checked.passed}, "speed_up": speed_up, "over": over}
        )
        return 0 if checked.passed else 1
    out = console()
    if plan.engine != "cuda":
        remark("no card here, so the CPU multiplies: the same idea, tiles that fit its fast memory")
    out.print("[bold]1. What a block does[/bold]: 3x3 matrices, TILE_WIDTH 2, block (x 0, y 0); · is the fill\n")
    out.print(phases_of_a_small_product(), markup=False)
    out.print("[bold]2. The same at full size[/bold]\n")
    p, where = plan.problem, plan.machine.name if plan.engine == "cuda" else "CPU"
    rows = [
        (
            "problem",
            f"{p.shape} {p.dtype}: grid {plan.grid_text}, {counted(plan.phases, 'phase')} each",
        ),
        ("device", f"{where} ({plan.engine}:{plan.kernel}; {plan.cut})"),
        ("loads", f"{plan.loads_without_tiles:,} without tiles, {plan.loads_with_tiles:,} with: ÷ {plan.reuse:.1f}"),
        ("check", f"{'ok' if checked.passed else 'WRONG'}: relative error {checked.error:.1e} against float64"),
    ]
    if plan.engine == "cuda":
        rows.append(("copies", f"{seconds(times.copy_in)} in, {seconds(times.copy_out)} out"))
    rows.append(("time", f"{seconds(times.kernel)}, {report.gflops:,.1f} GFLOP/s"))
    rows.append(("speed-up", f"{speed_up:,.0f} times {over}"))
    print_rows(rows)
    out.print(
        "\nNext: [bold]tilewise plan --shape 4097x4097x4097 --device h200[/bold], or examples/00_first_product.py"
    )
    return 0 if checked.passed else 1


def phases_of_a_small_product() -> str:
    """The first block of the 3×3 product of `tilewise trace` at TILE_WIDTH 2, from the reference engine's own tiles."""
    from tilewise.algebra.builtin import SEMIRINGS
    from tilewise.algebra.dtypes import DTYPES
    from tilewise.backends.reference.phases import filled
    from tilewise.emulator.check.binding import operands

    algebra = SEMIRINGS["plus_times"].over(DTYPES["int64"])
    M, N = operands((3, 3, 3), np.int64, 1, None)
    sums = np.zeros((2, 2), int)
    table = []
    for phase in range(2):
        ks = slice(2 * phase, 2 * phase + 2)
        Mds = filled(M[:2, ks], (2, 2), 0, algebra)
        Nds = filled(N[ks, :2], (2, 2), 0, algebra)
        for i in range(2):
            sums += Mds[:, i, None] * Nds[None, i]
        for row in range(2):
            tile_m = _cells(Mds[row], M[:2, ks].shape[1])
            tile_n = _cells(Nds[row], 2 if row < N[ks, :2].shape[0] else 0)
            total = " ".join(f"{value:3d}" for value in sums[row])
            title = f"phase {phase}" if row == 0 else ""
            table.append(f"  {title:<9} Mds | {tile_m} |   Nds | {tile_n} |   sums | {total} |")
        table.append("            ---- barrier: load ---- barrier: use ----")
    return "\n".join(table) + "\n"


def _cells(row: Any, valid: int) -> str:
    return " ".join(f"{value:2d}" if col < valid else " ·" for col, value in enumerate(row))


def loop_seconds(M: Any, N: Any) -> float:
    """What three nested Python loops would take, from a few cells of P."""
    rows, cols = M[:3].tolist(), N[:, :3].T.tolist()
    start = time.perf_counter()
    for row in rows:
        for col in cols:
            total = 0.0
            for x, y in zip(row, col, strict=True):
                total += x * y
    return (time.perf_counter() - start) / 9 * int(M.shape[0] * N.shape[1])
