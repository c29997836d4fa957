"""LETOR files: what is read can be written, and read again to the same."""

from __future__ import annotations

import os

import numpy as np
from harness import fuzz, on_disk

from crfx.io import letor

MODULES = ["crfx.io.letor"]
SEEDS = [
    b"2 qid:1 1:0.5 2:0 #docid = a\n0 qid:1 1:1e-3\n1 qid:2 2:-1\n",
    b"0.5 qid:-7 3:1\r\n\n# comment\n1 qid:-7\n",
    b"1 qid:9999999999 1:3.4e38 46:0.1",
]


def there_and_back(path: str) -> None:
    """Read, write, read."""
    queries = letor.read(path, comments=True)
    if queries.X.shape[1] > 1000:  # dense, and written in full
        return
    letor.write(path, queries)
    again = letor.read(path, comments=True, n_features=queries.X.shape[1])
    os.truncate(path, 0)
    np.testing.assert_array_equal(again.X, queries.X)
    np.testing.assert_array_equal(again.relevance, queries.relevance)
    np.testing.assert_array_equal(again.group, queries.group)


TARGET = on_disk(there_and_back)

if __name__ == "__main__":
    fuzz(TARGET, SEEDS, MODULES)
