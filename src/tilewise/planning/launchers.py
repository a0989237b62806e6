"""Launchers of plans and recipes on a card, cached."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from tilewise.core.plan import Plan
from tilewise.core.recipe import Recipe


@lru_cache(maxsize=4096)
def launcher_of(plan: Plan, device: str, scales: Any = None, spans: tuple[tuple[int, int], ...] = ()) -> Any:
    """The launcher of a plan on a card. `spans`: the bytes that M, N and P occupy, to detect overlaps with P."""
    from tilewise.planning.precompile import laid_out

    return laid_out(plan, device, scales, dict(zip("MNP", spans, strict=False)))


@lru_cache(maxsize=1024)
def recipe_launcher(recipe: Recipe, device: str) -> Any:
    """The launcher of a recipe without a plan."""
    from tilewise.backends.cuda.launcher import Launcher

    return Launcher(recipe, device)


def run_plan(plan: Plan, device: str, stream: Any, **addresses: int) -> None:
    """Queue a plan's product of matrices in its problem's layouts, by their addresses: M, N, P, arg."""
    from tilewise.backends.cuda.scratch import scratch

    launcher, handle = launcher_of(plan, device), int(stream.handle)
    with scratch(launcher.scratch_bytes, "", device, handle) as held:
        launcher(handle, scratch=held, **addresses)
