"""Shards (npz): whatever is taken can be loaded and learned from, or it is said why not."""

from __future__ import annotations

import io
import warnings
from typing import Any

import numpy as np
from harness import fuzz, on_disk
from scipy import sparse
from zips import mutator

from crfx import LinearCRF, Shards

MODULES = [
    "crfx.inputs.rows",
    "crfx.io.arrays",
    "crfx.io.npz",
    "crfx.io.shard_layout",
    "crfx.io.shards",
]
LENGTHS = np.array([3, 0, 2])
X = np.linspace(-2, 2, 15, dtype=np.float32).reshape(5, 3)
CSR = sparse.csr_matrix(np.where(X > 0, X, 0))
MOST_FEATURES = 1000


def _seed(**members: Any) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **members)
    return buffer.getvalue()


SEEDS = [
    _seed(X=X, y=["A", "B", "", "A", "é"], lengths=LENGTHS),
    _seed(
        X_data=CSR.data,
        X_indices=CSR.indices,
        X_indptr=CSR.indptr,
        X_shape=np.array(CSR.shape),
        y=np.array([1, 2, 2, 1, 1]),
        unknown=np.array([True, False, False, False, True]),
        lengths=LENGTHS,
        parents=np.array([-1, 0, 0, -1, 0]),
        edge_types=np.array([0, 1, 0, 1, 0]),
        sample_weight=np.array([1.0, 0.5, 2.0]),
    ),
]


def ask(path: str) -> Any:
    """Load all of it, and learn a little from it."""
    shards = Shards(path)
    loaded = shards.load()
    if "y" not in loaded or loaded["X"].shape[1] > MOST_FEATURES:
        return loaded
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one iteration is too few, and numbers may be odd
        crf = LinearCRF(max_iter=1, n_jobs=1).fit(shards.X, shards.y)
        return crf.predict(shards.X)


TARGET = on_disk(ask, ".npz")

if __name__ == "__main__":
    import atheris

    fuzz(
        TARGET,
        SEEDS,
        MODULES,
        mutator=mutator(lambda raw, size: atheris.Mutate(raw, size), SEEDS),
        max_len=1 << 13,
    )
