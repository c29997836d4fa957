"""Threads that wait spin briefly, unless the user says how they wait; BLAS gets one thread."""

import os
import subprocess
import sys

import pytest
from threadpoolctl import ThreadpoolController

from crfx.threads import OneBlasThread

BLAS = ThreadpoolController().select(user_api="blas")
SHOW = "import os, crfx; print(os.environ.get('GOMP_SPINCOUNT'))"


@pytest.mark.parametrize(
    ("said", "spin"),
    [({}, "3000"), ({"GOMP_SPINCOUNT": "7"}, "7"), ({"OMP_WAIT_POLICY": "active"}, "None")],
)
def test_import_sets_spin_time_unless_configured(said, spin):
    names = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")
    clean = {name: value for name, value in os.environ.items() if name not in names}
    shown = subprocess.run(
        [sys.executable, "-c", SHOW], env=clean | said, capture_output=True, text=True, check=True
    )
    assert shown.stdout.strip() == spin


def n_blas_threads():
    return [pool["num_threads"] for pool in BLAS.info()]


def test_blas_threads_are_restored_after_last_user():
    """The second one finds one thread, and must not take that for what the process had."""
    before = n_blas_threads()
    if not before:
        pytest.skip("NumPy has no BLAS whose threads can be counted")
    with BLAS.limit(limits=2):
        first = second = OneBlasThread()
        first.__enter__()
        assert set(n_blas_threads()) == {1}
        second.__enter__()
        first.__exit__(None, None, None)
        assert set(n_blas_threads()) == {1}
        second.__exit__(None, None, None)
        assert set(n_blas_threads()) == {2}
        with first, first:
            assert set(n_blas_threads()) == {1}
        assert set(n_blas_threads()) == {2}
    assert n_blas_threads() == before
