"""`tilewise plan --semiring min_count`: values with fields, the operations of a step and their issue limit."""

from __future__ import annotations

import sys
from typing import Any

from tilewise.algebra.dtypes import dtype_named
from tilewise.algebra.program_cuda import slots
from tilewise.algebra.structured import StructuredAlgebra
from tilewise.algebra.structured_builtin import structured_named
from tilewise.cli.output import show
from tilewise.core.machine import Machine
from tilewise.core.problem import parse_shape
from tilewise.errors import UsageError
from tilewise.system.quantities import seconds


def plan_structured(shape: str, dtype: str, semiring: str, machine: Machine, source: bool, as_json: bool) -> None:
    """`dtype`: one for all fields, or a comma-separated list of one for each."""
    ring = structured_named(semiring)
    names = dtype.split(",") if "," in dtype else [dtype] * len(ring.fields)
    if len(names) != len(ring.fields):
        raise UsageError(
            f"--dtype {dtype} has {len(names)} dtypes, and {ring} has the fields {', '.join(ring.fields)}: one for each"
        )
    algebra = ring.over([dtype_named(name) for name in names])
    extents = parse_shape(shape)
    if machine.kind == "cpu":
        if source:
            raise UsageError("--source shows a kernel's text: name a card, for example --device h200")
        facts = _on_the_cpu(algebra)
    else:
        from tilewise.kernels.simt_gemm.tiled.structured import render, structured_plan

        plan = structured_plan(algebra, machine, *extents)
        if source:
            sys.stdout.write(render(algebra, plan.tile))
            return
        facts = {
            "kernel": "cuda:plain, structures as elements", "tile": f"{plan.tile.rows} x {plan.tile.cols}",
            "slots": slots(algebra), "limit": plan.limit, "limit_is": f"{slots(algebra):g} issue slots a step",
        }  # fmt: skip
    m, k, n = extents
    floor = m * k * n / facts["limit"]
    fields = dict(zip(ring.fields, names, strict=True))
    document = {"shape": shape, "semiring": ring.name, "fields": fields, "machine": machine.name, "floor": floor}
    rows = [
        ("problem", f"{shape} {ring} over {', '.join(f'{name} {kind}' for name, kind in fields.items())}"),
        ("device", machine.name),
        ("kernel", facts["kernel"]),
        ("tile", f"{facts['tile']} of P, all fields of its cells in registers"),
        ("step", f"{algebra.step.operations} operations"),
        ("issue limit", f"{facts['limit'] / 1e9:,.4g} G steps/s ({facts['limit_is']})"),
        ("floor", f"{seconds(floor)} at that limit"),
    ]
    show(document | facts, rows, as_json)


def _on_the_cpu(algebra: StructuredAlgebra) -> dict[str, Any]:
    from tilewise.backends.cpu.kernels.structured.run import cells_of, limit
    from tilewise.backends.cpu.runtime.pool import num_threads

    cells = cells_of(algebra)
    return {
        "kernel": "cpu:structured", "tile": f"{cells.MR} x {cells.NR}", "limit": limit(algebra),
        "limit_is": f"the step alone on registers, measured now on {num_threads()} threads",
    }  # fmt: skip
