"""Takes arrays, gives arrays, in C++; comes after `scores`, before `inference`.

The one door to the compiled module: everything else imports the core from here.
"""

from crfx._core._native import (
    Chains,
    FeatureNames,
    HiddenSweeps,
    InputError,
    Problem32,
    Problem64,
    Sweeps,
    SweepSteps,
    available_threads,
    event_curvature,
    expectation,
    hidden_gradient,
    hidden_scores,
    instruction_set,
    k_best,
    linear_gradient,
    linear_scores,
    max_product,
    observed_pairs,
    sample,
    softmax,
    sum_product,
)

__all__ = [
    "Chains",
    "FeatureNames",
    "HiddenSweeps",
    "InputError",
    "Problem32",
    "Problem64",
    "SweepSteps",
    "Sweeps",
    "available_threads",
    "event_curvature",
    "expectation",
    "hidden_gradient",
    "hidden_scores",
    "instruction_set",
    "k_best",
    "linear_gradient",
    "linear_scores",
    "max_product",
    "observed_pairs",
    "sample",
    "softmax",
    "sum_product",
]
