"""Dynamic parallelism: kernels launched by kernels run after the grid that launches them.

CUDA may start a child at any time between its launch and its parent's end, so this is one of the orders that a correct
program must allow. `cudaDeviceSynchronize` in a kernel, which CUDA 12 removed, is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tilewise.emulator.host.lower.launch import argument_offsets
from tilewise.emulator.host.runtime.session import Session

MAX_LAUNCHES = 200_000  # by kernels, in one program


@dataclass
class Child:
    site: Any
    grid: bytes
    block: bytes
    shared: int
    arguments: bytes


def queue(s: Session, site: Any, grid: int, block: int, shared: int, arguments: int) -> None:
    """Queue a copy of the launch."""
    children: list[Child] = s.state.setdefault("children", [])
    s.state["launched by kernels"] = s.state.get("launched by kernels", 0) + 1
    if s.state["launched by kernels"] > MAX_LAUNCHES:
        s.finish(4, "limit", f"line {site.node.line}: kernels launched more than {MAX_LAUNCHES} kernels")
    children.append(copied_launch(s, site, grid, block, shared, arguments))


def copied_launch(s: Session, site: Any, grid: int, block: int, shared: int, arguments: int) -> Child:
    view, size = s.memory.view, argument_offsets(s.program, site.parameters)[1]
    bytes_ = view(grid, 12).tobytes(), view(block, 12).tobytes(), view(arguments, max(1, size)).tobytes()
    return Child(site, bytes_[0], bytes_[1], shared, bytes_[2])


def run_queue(s: Session, launch: Callable[..., None]) -> None:
    """Run the queued launches in order, and those that they queue."""
    children: list[Child] = s.state.setdefault("children", [])
    while children:
        _begin(s, children.pop(0), launch)


def run_now(s: Session, child: Child, launch: Callable[..., None]) -> None:
    """Run a copied launch, and those that it queues."""
    _begin(s, child, launch)
    run_queue(s, launch)


def _begin(s: Session, child: Child, launch: Callable[..., None]) -> None:
    space = _space(s, len(child.arguments))
    for at, data in ((space, child.grid), (space + 16, child.block), (space + 32, child.arguments)):
        s.memory.put(at, data)
    launch(s, child.site, space, space + 16, child.shared, space + 32)


def _space(s: Session, size: int) -> int:
    spaces: dict[int, int] = s.state.setdefault("room for a launch", {})
    if size not in spaces:
        spaces[size] = s.memory.static(32 + size, "", False)
    return spaces[size]
