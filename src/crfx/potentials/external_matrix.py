"""Bins of features that stay on disk: XGBoost's matrix in external memory, and its cache."""

from __future__ import annotations

import errno
import os
import re
import shutil
import socket
import tempfile
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scipy import sparse

from crfx.features.matrix import Matrix

if TYPE_CHECKING:
    import xgboost

_BYTES_PER_ROW, _BYTES_PER_VALUE, _BYTES_PER_ENTRY, _BYTES_PER_BIN = 16, 8, 24, 16
"""More than a row, a dense value, an entry of a sparse matrix, and a bin or feature of every chunk
take in the cache."""


def external_matrix(
    X: Matrix, accepted: Callable[[Any], Any], bins: xgboost.QuantileDMatrix, n_jobs: int
) -> xgboost.ExtMemQuantileDMatrix:
    """Return the bins of all rows, in a file.

    It has 8 bytes per row and 8 for every bin of every chunk.  Beside these a dense value takes 2.1
    bytes where there are up to 256 bins (4.3 where some are missing), up to 5.3 with more bins, and
    an entry of a sparse matrix 13 to 15.  So in large chunks a value takes 2.6 bytes where there
    are 20 dense features, 6.1 of 2 and 10.1 of one, and an entry 101 where a row has 0.1 of them.

    One chunk of X is in memory at a time, as ``accepted`` returns it.  The file lies in the folder
    of temporary files (the environment variable TMPDIR) and is removed with the matrix; the file of
    a killed process is removed when the next process of this machine needs one.
    """
    import xgboost

    folder = new_bins_folder()
    n_bins = bins.num_nonmissing()  # the points where bins begin are its only rows

    class Chunks(xgboost.DataIter):
        """Chunks for XGBoost."""

        def __init__(self) -> None:
            self.left: list[int] = []
            super().__init__(cache_prefix=f"{folder}/bins")

        def reset(self) -> None:
            self.left = [number for number, rows in enumerate(X.lengths) if rows]

        def next(self, input_data: Callable[..., Any]) -> bool:
            if not self.left:
                return False
            chunk = accepted(X.chunk(self.left.pop(0)))
            _check_room(folder, chunk, n_bins)
            input_data(data=chunk)
            return True

    try:
        matrix = xgboost.ExtMemQuantileDMatrix(
            Chunks(), max_bin=bins.max_bin, ref=bins, nthread=n_jobs, enable_categorical=True
        )
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    weakref.finalize(matrix, shutil.rmtree, folder, ignore_errors=True)
    return matrix


def _check_room(folder: str, chunk: Any, n_bins: int) -> None:
    """Raise OSError if the disk has no room for a chunk: XGBoost would end the process."""
    n_rows, n_features = chunk.shape
    needed = _BYTES_PER_ROW * n_rows + _BYTES_PER_BIN * (n_bins + n_features)
    if sparse.issparse(chunk):
        needed += _BYTES_PER_ENTRY * chunk.nnz
    else:
        needed += _BYTES_PER_VALUE * n_rows * n_features
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise OSError(
            errno.ENOSPC,
            f"{free >> 20} MiB are left, too few for the bins of features that stay on disk: let "
            "TMPDIR name a folder with more room",
            folder,
        )


_NAME = re.compile(r"crfx-bins-(?P<process>\d+)-(?P<place>.+)-[^-]+")


def new_bins_folder() -> str:
    """Return a new folder for temporary files, which the caller removes.

    Killed processes could not remove theirs, so first the folders of processes of this machine that
    have ended are removed.
    """
    parent, place = Path(tempfile.gettempdir()), _place()
    if os.name == "posix":  # asking whether a process lives would end it on Windows
        with suppress(OSError):  # what cannot be listed stays, as do the folders of others
            for folder in list(parent.iterdir()):
                match = _NAME.fullmatch(folder.name)
                if match and match["place"] == place and not _lives(int(match["process"])):
                    shutil.rmtree(folder, ignore_errors=True)
    return tempfile.mkdtemp(prefix=f"crfx-bins-{os.getpid()}-{place}-", dir=parent)


def _place() -> str:
    """Return where process numbers are unique: this machine, and on Linux this container."""
    space = 0
    with suppress(OSError):
        space = os.stat("/proc/self/ns/pid").st_ino
    return f"{space}-{socket.gethostname()}"


def _lives(process: int) -> bool:
    """Return whether a process of this number exists."""
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # it belongs to another user
        pass
    return True
