"""Takes scores, gives exact sums and maxima; comes after `structures`, before `testing`.

Useful on its own, under any model that gives scores:

>>> import numpy as np
>>> from crfx.inference import max_product, sum_product
>>> node = np.array([[0.0, 1.0], [0.5, 0.0], [0.0, 2.0]])   # three positions, two labels
>>> edge = np.array([[1.0, 0.0], [0.0, 1.0]])                # equal neighbours are likely
>>> offsets = [0, 3]                                         # one chain
>>> result = sum_product(node, edge, offsets)
>>> result.node.round(2)
array([[0.25, 0.75],
       [0.34, 0.66],
       [0.12, 0.88]])
>>> max_product(node, edge, offsets).labels.tolist()
[1, 1, 1]
"""

from crfx.inference.expectation import expectation
from crfx.inference.max_product import max_product
from crfx.inference.results import Expectation, MaxProduct, SumProduct
from crfx.inference.sampling import sample
from crfx.inference.spans import Span
from crfx.inference.sum_product import sum_product

__all__ = [
    "Expectation",
    "MaxProduct",
    "Span",
    "SumProduct",
    "expectation",
    "max_product",
    "sample",
    "sum_product",
]
