"""BLAS is back on its threads when the last of those who multiply has left."""

import pytest
from threadpoolctl import ThreadpoolController

from crfx.threads import OneBlasThread

POOLS = ThreadpoolController().select(user_api="blas")


def n_threads():
    return [pool["num_threads"] for pool in POOLS.info()]


def test_two_that_overlap():
    """The second one finds one thread, and must not take that for what the process had."""
    before = n_threads()
    if not before:
        pytest.skip("NumPy has no BLAS whose threads can be counted")
    with POOLS.limit(limits=2):
        ours = OneBlasThread()
        first, second = ours, ours
        first.__enter__()
        assert set(n_threads()) == {1}
        second.__enter__()
        first.__exit__(None, None, None)
        assert set(n_threads()) == {1}
        second.__exit__(None, None, None)
        assert set(n_threads()) == {2}
        with ours, ours:
            assert set(n_threads()) == {1}
        assert set(n_threads()) == {2}
    assert n_threads() == before
