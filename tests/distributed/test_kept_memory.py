"""Memory that a worker keeps while it trains, and gives back afterwards."""

import sys
from pathlib import Path

import numpy as np
import pytest

from crfx.distributed.kept_memory import kept_memory

SIZE = 64 * 2**20


def held():
    """Anonymous bytes of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon"))


@pytest.mark.skipif(sys.platform != "linux", reason="is about glibc")
def test_it_is_kept_and_given_back():
    before = held()
    with kept_memory():
        array = np.ones(SIZE, np.uint8)
        del array
        kept = held() - before
    assert kept > SIZE // 2
    assert held() - before < SIZE // 2
