"""Memory that a worker keeps while it trains, and gives back afterwards."""

import subprocess
import sys

import pytest

SIZE = 64 * 2**20
ASKED = f"""
from pathlib import Path
import numpy as np
from crfx.distributed.worker import kept_memory

def held():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon"))

before = held()
with kept_memory():
    array = np.ones({SIZE}, np.uint8)
    del array
    print(held() - before)
print(held() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="is about glibc")
def test_kept_memory_is_released():
    """The test runs in a separate process, since this one may already hold spare memory."""
    asked = [sys.executable, "-c", ASKED]
    output = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    kept, left = map(int, output.split())
    assert kept > SIZE // 2
    assert left < SIZE // 2
