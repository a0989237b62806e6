"""Edit distance as a product over min_plus: to every part of a text at once, and how many best ways there are.

A character of the word is dropped, kept or exchanged: a matrix of costs from a place in the text to the next. Between
two characters anything may be inserted. The product of all of them has, at (i, j), the cost from the word to text[i:j].
"""

from functools import reduce

import numpy as np

import tilewise as tw

word, text = "kitten", "a sitting kitchen mitten"
places = np.arange(len(text) + 1)
inserted = np.where(places >= places[:, None], places - places[:, None], np.inf).astype(float)  # from i on to j


def exchanged(letter):
    """1 to drop the letter and stay, 0 or 1 to meet the next one of the text."""
    costs = np.full_like(inserted, np.inf)
    np.fill_diagonal(costs, 1)
    costs[places[:-1], places[1:]] = [float(letter != other) for other in text]
    return costs


factors = [inserted] + [matrix for letter in word for matrix in (exchanged(letter), inserted)]
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
    assert distance[i, j] == by_hand(word, text[i:j])
i, j = divmod(int(np.argmin(distance)), len(places))
print(f"nearest to {word!r}: {text[i:j]!r}, {distance[i, j]:.0f} away")
print(f"to {text[2:9]!r}: {distance[2, 9]:.0f} away")

ways = [(costs, np.isfinite(costs).astype(np.int64)) for costs in factors]  # each step is one way
length, count = reduce(lambda M, N: tw.matmul(M, N, semiring=tw.min_count), ways)
assert (length == distance).all()
print(f"to {text[10:17]!r}: {distance[10, 17]:.0f} away, in {count[10, 17]} ways that are equally short")
