"""Pairwise choices from a product of parameters, for parametrised tests."""

from itertools import combinations, product
from typing import Any


def pairwise(*parameters: list[Any]) -> list[tuple[Any, ...]]:
    """Return rows of the product that have every pair of values of two parameters at least once.

    Greedy and deterministic: the row with the most new pairs is next.
    """
    indices = [range(len(values)) for values in parameters]
    missing = {
        (i, a, j, b)
        for i, j in combinations(range(len(parameters)), 2)
        for a, b in product(indices[i], indices[j])
    }
    rows, candidates = [], list(product(*indices))

    def pairs(row: tuple[int, ...]) -> set[tuple[int, int, int, int]]:
        return {(i, row[i], j, row[j]) for i, j in combinations(range(len(row)), 2)}

    while missing:
        best = max(candidates, key=lambda row: len(pairs(row) & missing))
        missing -= pairs(best)
        rows.append(tuple(values[k] for values, k in zip(parameters, best, strict=True)))
    return rows
