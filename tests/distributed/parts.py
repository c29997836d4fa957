"""Data shared out over workers that are threads of one process, and models that they train."""

import numpy as np
from sklearn.base import clone

from crfx.distributed.collective import together


def part_of(workers, values):
    """The part of a list, or of every list in a dict or tuple, that a worker has."""
    if values is None:
        return None
    if isinstance(values, dict):
        return {name: part_of(workers, entry) for name, entry in values.items()}
    if isinstance(values, tuple):
        return tuple(part_of(workers, entry) for entry in values)
    rows = np.array_split(np.arange(len(values)), workers.size)[workers.rank]
    if hasattr(values, "shape"):
        return values[rows]
    return [values[k] for k in rows]


def fitted(estimator, data, **more):
    """One worker alone."""
    return clone(estimator).fit(**data, **more)


def fitted_together(n_workers, estimator, data, **more):
    """The models of workers that have a part of every list in ``data``, and all of ``more``."""
    return together(
        n_workers, lambda workers: clone(estimator).fit(**part_of(workers, data), **more)
    )
