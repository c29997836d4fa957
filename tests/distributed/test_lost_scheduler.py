"""The scheduler, and with it the cluster, is killed: training goes on from disk on another one."""

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress

import pytest

from crfx import GBCRF
from crfx.distributed import cluster
from crfx.testing import make_task

pytestmark = pytest.mark.xdist_group("cluster")

ADDRESS = re.compile(rb"Scheduler at:\s+(tcp://\S+)")


def started(word, *arguments):
    """A process of Dask's command line, by itself."""
    return subprocess.Popen(
        [sys.executable, "-m", f"distributed.cli.dask_{word}", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


@pytest.fixture
def machines():
    """A scheduler and two workers, each a process of its own, and their address."""
    distributed = pytest.importorskip("distributed", reason="needs crfx[dask]")
    dask = pytest.importorskip("dask")
    scheduler = started("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
    address = next(
        found.group(1).decode() for line in scheduler.stderr if (found := ADDRESS.search(line))
    )
    common = (address, "--nthreads", "1", "--no-dashboard", "--no-nanny", "--death-timeout", "5")
    workers = [started("worker", *common) for _ in range(2)]
    client = distributed.Client(address)
    client.wait_for_workers(2)
    with dask.config.set({"distributed.comm.timeouts.connect": "3s"}):  # to the dead
        yield client, scheduler
    for process in (scheduler, *workers):
        process.kill()
        process.wait()
        process.stderr.close()
    with suppress(TimeoutError):  # there is nobody to say goodbye to
        client.close(timeout=2)


def kill_scheduler(pid, after):
    """A callback that ends the scheduler after so many rounds."""

    def callback(progress):
        if progress.n_rounds == after:
            time.sleep(1)  # the client has time to fetch what was kept
            os.kill(pid, signal.SIGKILL)
            time.sleep(1)

    return callback


@pytest.mark.filterwarnings("ignore")
def test_training_is_taken_up_from_disk(machines, client, tmp_path):
    first, scheduler = machines
    task, path = make_task(n_instances=60), tmp_path / "run.crfx"
    some = sorted(client.nthreads())[:2]
    with (
        cluster(first, checkpoint=path, seconds=0),
        pytest.raises(RuntimeError, match=r"run\.crfx: the same call with resume=True"),
    ):
        GBCRF(12, random_state=0).fit(*task, callbacks=[kill_scheduler(scheduler.pid, 8)])
    assert path.exists()
    with cluster(client, workers=some, checkpoint=path, resume=True):
        crf = GBCRF(12, random_state=0).fit(*task)
    with cluster(client, workers=some):
        undisturbed = GBCRF(12, random_state=0).fit(*task)
    assert (crf.transitions_ == undisturbed.transitions_).all()
    assert crf.history_["objective"] == undisturbed.history_["objective"]
