"""Bins of features that stay on disk: XGBoost's matrix in external memory, and its cache."""

from __future__ import annotations

import errno
import shutil
import tempfile
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from scipy import sparse

from crfx.features.sharded_matrix import ShardedMatrix

if TYPE_CHECKING:
    import xgboost

_BYTES_PER_VALUE, _BYTES_PER_ENTRY = 8, 24
"""More than a dense value, and an entry of a sparse matrix, takes in the cache."""


def external_matrix(
    X: ShardedMatrix, accepted: Callable[[Any], Any], bins: xgboost.QuantileDMatrix, n_jobs: int
) -> xgboost.ExtMemQuantileDMatrix:
    """The bins of all rows, in a file of 2 to 4 bytes per value where there are up to 256 bins.

    One chunk of X is in memory at a time, as ``accepted`` makes it.  The file lies in the folder
    for temporary files (the environment variable TMPDIR says which), and goes with the matrix.
    """
    import xgboost

    folder = tempfile.mkdtemp(prefix="crfx-")

    class Chunks(xgboost.DataIter):
        """Hands over a chunk when it is asked for one."""

        def __init__(self) -> None:
            self.left: list[int] = []
            super().__init__(cache_prefix=f"{folder}/bins")

        def reset(self) -> None:
            self.left = [number for number, rows in enumerate(X.lengths) if rows]

        def next(self, input_data: Callable[..., Any]) -> bool:
            if not self.left:
                return False
            chunk = accepted(X.chunk(self.left.pop(0)))
            _check_room(folder, chunk)
            input_data(data=chunk)
            return True

    try:
        found = xgboost.ExtMemQuantileDMatrix(
            Chunks(), max_bin=bins.max_bin, ref=bins, nthread=n_jobs, enable_categorical=True
        )
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    weakref.finalize(found, shutil.rmtree, folder, ignore_errors=True)
    return found


def _check_room(folder: str, chunk: Any) -> None:
    """Raise OSError where the disk has no room for a chunk: XGBoost would end the process."""
    is_sparse = sparse.issparse(chunk)
    n_values = chunk.nnz if is_sparse else chunk.shape[0] * chunk.shape[1]
    needed = n_values * (_BYTES_PER_ENTRY if is_sparse else _BYTES_PER_VALUE)
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise OSError(
            errno.ENOSPC,
            f"{free >> 20} MiB are left, too few for the bins of features that stay on disk: let "
            "TMPDIR name a folder with more room",
            folder,
        )
