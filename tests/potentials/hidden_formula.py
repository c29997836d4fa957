"""Scores of hidden units by their formulas, in float64."""

import numpy as np


def plain_scores(shape, values, X):
    """Return (rows, labels) for weights of a `HiddenShape`."""
    parts = shape.split(np.asarray(values, np.float64))
    X = np.asarray(X, np.float64)
    inputs = X @ parts["weights"] + parts["bias"]
    both = inputs[:, :, None] + parts["to_label"]
    if shape.activation == "softplus":
        found = np.logaddexp(0, both).sum(axis=1)
    elif shape.activation == "relu":
        found = np.maximum(0, both).sum(axis=1)
    else:
        units = np.tanh(inputs) if shape.activation == "tanh" else 1 / (1 + np.exp(-inputs))
        found = units @ parts["to_label"]
    found = found + parts["constant"]
    return found + X @ parts["skip"] if shape.skip else found
