"""Parameters of a model with hidden units, moved to one with more labels."""

from __future__ import annotations

import numpy as np

from crfx.estimators.model_parameters import parameter_arrays
from crfx.model.continuing import widened
from crfx.model.model import Model
from crfx.potentials.hidden_unit import HiddenUnitFunction
from crfx.scores import IntArray


def places_in(model: Model, old: Model, codes: IntArray) -> IntArray:
    """(parameters,) where those of a model with hidden units are in one with fewer labels, of which
    k is label ``codes[k]`` now; -1 for new ones.
    """
    node, before = model.node, old.node
    assert isinstance(node, HiddenUnitFunction)
    assert isinstance(before, HiddenUnitFunction)
    found, begin = [node.shape.places_in(before.shape, codes)], before.shape.size
    for table in parameter_arrays(old)[1:]:
        n_axes = table.ndim if table.ndim == 1 else old.order + 1
        numbers = 1 + begin + np.arange(table.size).reshape(table.shape)
        found.append(widened(numbers, n_axes, codes, model.n_labels).reshape(-1) - 1)
        begin += table.size
    return np.concatenate(found)
