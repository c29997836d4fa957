"""Threads: how many to use, and BLAS on one thread while ours compute.

Idle threads of BLAS spin, which slows the threads of the core (decision 0008).
"""

from __future__ import annotations

from functools import cache
from threading import Lock
from typing import Any, Self

import numpy as np
from threadpoolctl import ThreadpoolController

from crfx import _core

MOST_THREADS = 4096


def thread_count(n_jobs: int | None) -> int:
    """Return the number of threads: None and -1 mean all cores, -2 all but one, as in joblib."""
    if n_jobs is None:
        return _core.available_threads()
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int | np.integer) or n_jobs == 0:
        raise ValueError(f"n_jobs is {n_jobs!r}: pass a number of threads, or None for all cores")
    if n_jobs > MOST_THREADS:
        raise ValueError(f"n_jobs is {n_jobs}: pass at most {MOST_THREADS} threads")
    return int(n_jobs) if n_jobs > 0 else max(1, _core.available_threads() + 1 + int(n_jobs))


class OneBlasThread:
    """A context in which BLAS uses one thread.

    The number of BLAS threads belongs to the process.  So contexts that overlap are counted: the
    first one lowers the number, and the last one to end restores it.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._n_inside = 0
        self._limit: Any = None

    def __enter__(self) -> Self:
        with self._lock:
            if not self._n_inside:
                self._limit = _thread_pools().limit(limits=1, user_api="blas")
            self._n_inside += 1
        return self

    def __exit__(self, *raised: object) -> None:
        with self._lock:
            self._n_inside -= 1
            if not self._n_inside:
                self._limit.restore_original_limits()


@cache
def _thread_pools() -> Any:
    """Return the pools, searched for once: that takes milliseconds."""
    return ThreadpoolController()


_OURS = OneBlasThread()


def one_blas_thread() -> OneBlasThread:
    """Return the context of this process."""
    return _OURS
