"""Scores of hidden units by their formulas, in float64."""

import numpy as np


def plain_scores(shape, values, X):
    """Return (rows, labels) for weights of a `HiddenShape`."""
    parts = shape.split(np.asarray(values, np.float64))
    X = np.asarray(X, np.float64)
    inputs = X @ parts["weights"] + parts["bias"]
    both = inputs[:, :, None] + parts["to_label"]
    if shape.activation == "softplus":
        scores = np.logaddexp(0, both).sum(axis=1)
    elif shape.activation == "relu":
        scores = np.maximum(0, both).sum(axis=1)
    else:
        units = np.tanh(inputs) if shape.activation == "tanh" else 1 / (1 + np.exp(-inputs))
        scores = units @ parts["to_label"]
    scores = scores + parts["constant"]
    return scores + X @ parts["skip"] if shape.skip else scores
