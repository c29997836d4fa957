"""A cluster of real processes, started once for all tests that want it; and what tests share."""

import logging
import sys
import warnings
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="package")
def client():
    """Of three workers, each a process with one thread, which come back when they are killed: also
    one that is killed again a quarter of a minute later, which Dask else gives up.

    Its threads must be gone when other tests run, and tell of no errors meanwhile: Python 3.11
    cannot format tracebacks in two threads at a time, and pytest does.
    """
    distributed = pytest.importorskip("distributed", reason="needs crfx[dask]")
    dask = pytest.importorskip("dask")
    logging.getLogger("distributed").setLevel(logging.CRITICAL + 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what Dask itself does
        with (
            dask.config.set({"distributed.deploy.lost-worker-timeout": "1h"}),
            distributed.LocalCluster(
                n_workers=3, threads_per_worker=1, dashboard_address=":0", memory_limit=0
            ) as cluster,
            distributed.Client(cluster) as connected,
        ):
            yield connected
