"""The scheduler, and with it the cluster, is killed: training goes on from disk on another one."""

import re
import subprocess
import sys

import pytest

from crfx import GBCRF
from crfx.distributed import cluster
from crfx.testing import make_task

pytestmark = pytest.mark.xdist_group("cluster")

ADDRESS = re.compile(rb"Scheduler at:\s+(tcp://\S+)")
CUT_OFF = """
import os, signal, sys, time
import dask
from distributed import Client
from crfx import GBCRF
from crfx.distributed import cluster
from crfx.testing import make_task

address, path, pid = sys.argv[1], sys.argv[2], int(sys.argv[3])

def kill_scheduler(progress):
    if progress.n_rounds == 8:
        time.sleep(1)  # the client has time to fetch what was kept
        os.kill(pid, signal.SIGKILL)
        time.sleep(1)

client = Client(address, timeout=10)  # so long it also waits for the dead
client.wait_for_workers(2)
dask.config.set({"distributed.comm.timeouts.connect": "3s"})  # to the dead
try:
    with cluster(client, checkpoint=path, seconds=0):
        GBCRF(12, random_state=0).fit(*make_task(n_instances=60), callbacks=[kill_scheduler])
except RuntimeError as error:
    print(error, flush=True)
os._exit(0)  # its client would look for the scheduler as long as it lives
"""


def started(word, *arguments):
    """A process of Dask's command line, by itself."""
    return subprocess.Popen(
        [sys.executable, "-m", f"distributed.cli.dask_{word}", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


@pytest.fixture
def machines():
    """A scheduler that has two workers, each a process of its own, and its address."""
    pytest.importorskip("distributed", reason="needs crfx[dask]")
    scheduler = started("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
    address = next(
        match.group(1).decode() for line in scheduler.stderr if (match := ADDRESS.search(line))
    )
    common = (address, "--nthreads", "1", "--no-dashboard", "--no-nanny", "--death-timeout", "5")
    workers = [started("worker", *common) for _ in range(2)]
    yield scheduler, address
    for process in (scheduler, *workers):
        process.kill()
        process.wait()
        process.stderr.close()


def test_training_resumes_after_losing_the_scheduler(machines, client, tmp_path):
    scheduler, address = machines
    path, task = tmp_path / "run.crfx", make_task(n_instances=60)
    asked = [sys.executable, "-W", "ignore", "-c", CUT_OFF, address, str(path), str(scheduler.pid)]
    output = subprocess.run(asked, capture_output=True, text=True, check=True, timeout=120).stdout
    assert "run.crfx: the same call with resume=True goes on from there" in output
    assert path.exists()
    some = sorted(client.nthreads())[:2]
    notes = tmp_path / "rounds"

    def note(progress):
        with notes.open("a") as file:
            print(progress.n_rounds, file=file)

    with cluster(client, workers=some, checkpoint=path, resume=True):
        crf = GBCRF(12, random_state=0).fit(*task, callbacks=[note])
    assert 1 < int(notes.read_text().split()[0]) <= 9  # not from the beginning
    with cluster(client, workers=some):
        undisturbed = GBCRF(12, random_state=0).fit(*task)
    assert crf.model_.node.raw == undisturbed.model_.node.raw
    assert (crf.transitions_ == undisturbed.transitions_).all()
    assert crf.history_["objective"] == undisturbed.history_["objective"]
