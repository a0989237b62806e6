"""Edit distance as a product over min_plus: to every part of a text at once, and the number of optimal alignments.

A character of the pattern is deleted, kept or replaced: a matrix of costs from a position in the text to the next.
Between two characters anything may be inserted. Cell (i, j) of the product is the cost from the pattern to text[i:j].
"""

from functools import reduce

import numpy as np

import tilewise as tw

pattern, text = "kitten", "a sitting kitchen mitten"
places = np.arange(len(text) + 1)
inserted = np.where(places >= places[:, None], places - places[:, None], np.inf).astype(float)  # from i on to j


def replaced(letter):
    """1 to delete the letter, 0 or 1 to match or replace the next one of the text."""
    costs = np.full_like(inserted, np.inf)
    np.fill_diagonal(costs, 1)
    costs[places[:-1], places[1:]] = [float(letter != other) for other in text]
    return costs


factors = [inserted] + [matrix for letter in pattern for matrix in (replaced(letter), inserted)]
distance = tw.chain(factors, semiring="min_plus")


def by_hand(a, b):
    """The usual table."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (x != y))
    return row[-1]


for i, j in ((0, len(text)), (2, 9), (10, 17), (18, 24), (5, 5)):
    assert distance[i, j] == by_hand(pattern, text[i:j])
i, j = divmod(int(np.argmin(distance)), len(places))
print(f"nearest to {pattern!r}: {text[i:j]!r}, {distance[i, j]:.0f} away")
print(f"to {text[2:9]!r}: {distance[2, 9]:.0f} away")

counted = [(costs, np.isfinite(costs).astype(np.int64)) for costs in factors]  # each step is one alignment
length, count = reduce(lambda M, N: tw.matmul(M, N, semiring=tw.min_count), counted)
assert (length == distance).all()
print(f"to {text[10:17]!r}: {distance[10, 17]:.0f} away, by {count[10, 17]} optimal alignments")
