"""A graph as NetworkX hands it over; nothing is imported before a function runs here."""

from __future__ import annotations

from typing import Any


class Nodes:
    """A graph on its way through: what NetworkX handed over, marked as ours."""

    __networkx_backend__ = "tilewise"

    def __init__(self, graph: Any) -> None:
        self.graph = graph

    def is_directed(self) -> bool:
        return self.graph.is_directed()

    def is_multigraph(self) -> bool:
        return self.graph.is_multigraph()
