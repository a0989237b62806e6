"""NetworkX with `backend="tilewise"`: all-pairs problems as one closure of the whole graph.

`backend` (what NetworkX calls), `graph` and `matrix` (a graph, and as weights), `lengths` (lengths and paths by
closure), `measures` (eccentricities, averages, centralities), `readiness` (whether kernels are compiled),
`brandes_products`. In plain Python: `hops` (how many nodes are how far), `searches`, `dijkstra`, `brandes`, `reach`
(reachability). What a matrix of float64 cannot hold is left to NetworkX.
"""

from tilewise.interop.networkx.backend import Backend, backend

__all__ = ["Backend", "backend"]
