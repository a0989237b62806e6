"""The graph type of this backend; it imports nothing else, so a call that the backend declines stays cheap."""

from __future__ import annotations

from typing import Any


class NxGraph:
    """A NetworkX graph wrapped without conversion: functions read `graph` directly."""

    __networkx_backend__ = "tilewise"

    def __init__(self, graph: Any) -> None:
        self.graph = graph

    def is_directed(self) -> bool:
        return self.graph.is_directed()

    def is_multigraph(self) -> bool:
        return self.graph.is_multigraph()
