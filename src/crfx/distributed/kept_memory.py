"""Memory that a worker keeps while it trains.

Dask has the C library of its workers give memory back at once.  Training allocates the same large
arrays in every round, and would fetch every page of them from the system anew: an iteration of
`LinearCRF` takes a fifth longer.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Numbers of the settings in glibc's malloc.h."""
KEPT = 2**30
"""Bytes that may be kept, and the size from which on arrays are not."""
USUAL = 2**17
"""What glibc has for both where nobody says otherwise."""


@contextmanager
def kept_memory() -> Iterator[None]:
    """Keep memory that is free, as long as it lasts; then give it back.  Of glibc alone."""
    library = ctypes.CDLL(None) if os.name == "posix" else None
    if library is None or not hasattr(library, "mallopt"):
        yield
        return
    library.mallopt(_TRIM_THRESHOLD, KEPT)
    library.mallopt(_MMAP_THRESHOLD, KEPT)
    try:
        yield
    finally:
        before = os.environ.get("MALLOC_TRIM_THRESHOLD_", "")
        library.mallopt(_TRIM_THRESHOLD, int(before) if before.isdigit() else USUAL)
        library.mallopt(_MMAP_THRESHOLD, USUAL)
        library.malloc_trim(0)
