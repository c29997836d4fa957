"""A cluster of real processes, started once for all tests that want it; and what tests share."""

import sys
import warnings
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def client():
    """Of three workers, each a process with one thread, which come back when they are killed."""
    distributed = pytest.importorskip("distributed", reason="needs crfx[dask]")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what Dask itself does
        with (
            distributed.LocalCluster(
                n_workers=3, threads_per_worker=1, dashboard_address=":0", memory_limit=0
            ) as cluster,
            distributed.Client(cluster) as found,
        ):
            yield found
