"""How the threads of the core wait for work: asleep."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

_NAME = "OMP_WAIT_POLICY"


@contextmanager
def sleeping_threads() -> Iterator[None]:
    """Load an OpenMP runtime under this: its idle threads sleep, unless the user says otherwise.

    A runtime reads the variable once, when it is loaded.  The default is to spin for a while, which
    takes the cores from XGBoost's threads between our calls.  XGBoost brings a runtime of its own,
    for which spinning pays: hence the variable is there only while ours is loaded.
    """
    if _NAME in os.environ:
        yield
        return
    os.environ[_NAME] = "passive"
    try:
        yield
    finally:
        del os.environ[_NAME]
