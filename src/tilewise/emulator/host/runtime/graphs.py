"""CUDA graphs by stream capture: calls between begin and end are recorded, and replayed by every launch of the graph.

Work of all streams runs in the order of its calls, so a capture in one stream records the work of all."""

from __future__ import annotations

from collections.abc import Callable

from tilewise.emulator.host.runtime.c_memory import writable
from tilewise.emulator.host.runtime.session import Session, runtime

INVALID = 400  # cudaErrorInvalidResourceHandle
Work = list[Callable[[], object]]


def captured(s: Session, work: Callable[[], object]) -> bool:
    """Record the work if a capture is active; whether it is."""
    found: Work | None = s.state.get("capture")
    if found is None or s.cuda.running.geometry is not None:
        return False
    found.append(work)
    return True


def capturing(s: Session) -> bool:
    return s.state.get("capture") is not None


@runtime("__graph_begin")
def begin(s: Session) -> int:
    if capturing(s):
        return INVALID
    s.state["capture"] = []
    return 0


@runtime("__graph_end")
def end(s: Session, graph: int) -> int:
    found: Work | None = s.state.pop("capture", None)
    if found is None or not writable(s, graph, 8):
        return INVALID
    graphs: list[Work] = s.state.setdefault("graphs", [])
    graphs.append(found)
    s.memory.put(graph, len(graphs).to_bytes(8, "little"))
    return 0


@runtime("__graph_launch")
def launch_graph(s: Session, graph: int) -> int:
    graphs: list[Work] = s.state.setdefault("graphs", [])
    if not 0 < graph <= len(graphs):
        return INVALID
    for work in graphs[graph - 1]:
        work()
    return 0
