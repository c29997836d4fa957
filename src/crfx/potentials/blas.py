"""BLAS on one thread while we multiply: its idle ones spin in the way of ours."""

from __future__ import annotations

from functools import cache
from threading import Lock
from typing import Any, Self

from threadpoolctl import ThreadpoolController


class OneBlasThread:
    """A context in which BLAS uses one thread.

    The number of its threads belongs to the process.  So those who multiply at the same time are
    counted: the first one lowers it, and the last one to leave gives back what was there.
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
    """Looked for once: that takes milliseconds."""
    return ThreadpoolController()


_OURS = OneBlasThread()


def one_blas_thread() -> OneBlasThread:
    """The one of this process."""
    return _OURS
