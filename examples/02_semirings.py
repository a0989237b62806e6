"""Other algebras: shortest hops, most likely paths, and your own."""

import numpy as np

import tilewise as tw

inf = np.inf
edges = np.array([[0, 4, inf, 9], [4, 0, 2, inf], [inf, 2, 0, 3], [9, inf, 3, 0]])
two_hops = tw.matmul(edges, edges, semiring="min_plus")
assert two_hops[0, 2] == 6  # 0 → 1 → 2
print("shortest with at most two hops:\n", two_hops)

chances = np.array([[0.9, 0.5], [0.2, 0.8]])
best_chance = tw.Semiring("best_chance", add=tw.maximum, mul=lambda x, y: x * y, zero=0)
print("best chance of two steps:\n", tw.matmul(chances, chances, semiring=best_chance))

knows = edges < 5
print("who knows whom over one other:\n", tw.matmul(knows, knows, semiring="lor_land").astype(int))
