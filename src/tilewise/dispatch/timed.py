"""A timed product of host arrays, for the commands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewise.core.machine import Times
from tilewise.core.options import Options
from tilewise.core.plan import Plan
from tilewise.dispatch.bind import bind
from tilewise.dispatch.execute import execute, machine_of
from tilewise.planning.choose import make_plan

SHORT = 2.0  # seconds: a first product on a CPU compiles and starts threads; after a shorter one a second is timed


@dataclass(frozen=True)
class TimedProduct:
    """A product with what ran and how long it took."""

    product: np.ndarray[Any, np.dtype[Any]]
    plan: Plan
    times: Times

    @property
    def gflops(self) -> float:
        """Billions of operations a second, a step counting as two."""
        return 2 * self.plan.problem.steps / self.times.kernel / 1e9 if self.times.kernel else 0.0

    def to_json(self) -> dict[str, Any]:
        return {
            "plan": self.plan.to_json(),
            "seconds": {"copy_in": self.times.copy_in, "kernel": self.times.kernel, "copy_out": self.times.copy_out},
            "gflops": self.gflops,
        }


def timed_matmul(M: np.ndarray[Any, np.dtype[Any]], N: np.ndarray[Any, np.dtype[Any]], **keywords: Any) -> TimedProduct:
    """`matmul` of host arrays, timed. Keywords are those of `tw.matmul`, with device="cpu" by default."""
    o = Options.of({"device": "cpu", **keywords})
    call = bind(M, N, o)
    product = call.library.empty(call.shape.product, call.problem.result, "cpu")
    done = execute(call, product, o.kernel, o.tile)
    plan = done.plan
    if plan.machine.kind == "cpu":
        if done.plan.engine == "cpu" and done.times.kernel < SHORT:
            done = execute(call, product, o.kernel, o.tile)
        # calls are planned without rates, and what is printed has a floor
        plan = make_plan(plan.problem, machine_of("cpu", measured=True), o.kernel, o.tile)
    return TimedProduct(product.memory, plan, done.times)
