"""NetworkX with `backend="tilewise"`: all-pairs problems as one closure of the whole graph.

`backend` (NetworkX's entry point), `graph`, `matrix` (the wrapped graph, its weights), `lengths` (lengths and paths by
closure), `measures` (eccentricities, averages, centralities), `readiness` (whether kernels are compiled),
`brandes_products`. In plain Python: `hops` (numbers of nodes by distance), `searches`, `dijkstra`, `brandes`, `reach`
(reachability). Graphs whose weights do not fit a float64 matrix are left to NetworkX.
"""

from tilewise.interop.networkx.backend import Backend, backend

__all__ = ["Backend", "backend"]
