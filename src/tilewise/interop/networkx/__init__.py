"""NetworkX with `backend="tilewise"`: all-pairs problems as one closure of the whole graph.

`nodes` and `matrix` (a graph, and as weights), `lengths` (lengths and paths), `measures` (eccentricities, averages,
centralities), `reach` (reachability), `readiness` (whether kernels are built), `backend` (what NetworkX calls). Where
every edge counts 1: `balls` (how many nodes are how far), `hops` (measures of it), `searches` (lengths and paths).
What a matrix of float64 does not hold is left to NetworkX.
"""

from tilewise.interop.networkx.backend import Backend, backend

__all__ = ["Backend", "backend"]
