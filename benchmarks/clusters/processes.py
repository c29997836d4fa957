"""Workers in processes of this machine, and their memory."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def workers(number: int) -> Iterator[Any]:
    """Yield a client of ``number`` workers with one thread each, with all modules loaded.

    Workers that are killed are restarted, also after the quarter of a minute in which Dask would
    otherwise give them up.
    """
    import dask
    from distributed import Client, LocalCluster

    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # of workers that are killed
    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "1h"}),
        LocalCluster(
            n_workers=number, threads_per_worker=1, dashboard_address=":0", memory_limit=0
        ) as local,
        Client(local) as client,
    ):
        client.run(_warmed)
        yield client


def _warmed() -> None:
    import xgboost  # noqa: F401

    import crfx.distributed.worker  # noqa: F401
    from crfx import GBCRF
    from crfx.testing import make_task

    GBCRF(1, n_jobs=1).fit(*make_task())


class MemoryWatch:
    """The most memory that this process and all its children have held together, in bytes.

    Proportional set size: what processes share counts once.
    """

    def __init__(self) -> None:
        self.peak = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> MemoryWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        import psutil

        me = psutil.Process()
        while not self._stop.wait(0.2):
            held = 0
            for process in [me, *me.children(recursive=True)]:
                held += _share(process.pid)
            self.peak = max(self.peak, held)


def _share(pid: int) -> int:
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8")
    except OSError:  # it has ended
        return 0
    line = next((line for line in text.splitlines() if line.startswith("Pss:")), "Pss: 0")
    return int(line.split()[1]) * 1024
