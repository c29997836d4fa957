"""Workers killed at random: does every run end, and in the same model?"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.clusters.processes import workers
from benchmarks.clusters.tasks import ocr

KILLS, WORKERS = 20, 3


def measure() -> dict[str, Any]:
    """Half of the kills in boosting, half in L-BFGS; one kill a run, of any worker, at any time."""
    from crfx import GBCRF, LinearCRF
    from crfx.distributed import cluster

    task = ocr(600).train
    made: dict[str, Callable[[], Any]] = {
        "GBCRF": lambda: GBCRF(30, subsample=0.7, random_state=0),
        "LinearCRF": lambda: LinearCRF(max_iter=150, tol=0.0),
    }
    chance = random.Random(0)
    rows = []
    with workers(WORKERS) as client, cluster(client, seconds=0.0, every=2) as place:
        for name, make in made.items():
            undisturbed, lasts = make().fit(**task), np.inf
            for _ in range(2):  # by now everything is warm
                begin = time.perf_counter()
                make().fit(**task)
                lasts = min(lasts, time.perf_counter() - begin)
            kills = 0
            while kills < KILLS // len(made):
                client.wait_for_workers(WORKERS)
                number, after = chance.randrange(WORKERS), chance.uniform(0.05, 0.9) * lasts
                victim = client.run(os.getpid)[sorted(client.nthreads())[number]]
                killer = threading.Timer(after, os.kill, (victim, signal.SIGKILL))
                killer.start()
                begin = time.perf_counter()
                crf = make().fit(**task)
                seconds = time.perf_counter() - begin
                killer.join()
                if not place.last_run.n_losses:  # it came too late
                    time.sleep(3)  # until Dask has noticed
                    continue
                kills += 1
                rows.append(
                    {
                        "name": name,
                        "worker": number,
                        "after": after,
                        "undisturbed": lasts,
                        "seconds": seconds,
                        "losses": place.last_run.n_losses,
                        "identical": _identical(crf, undisturbed),
                    }
                )
                print(rows[-1], flush=True)
    return {"rows": rows, "workers": WORKERS}


def _identical(one: Any, other: Any) -> bool:
    """Return whether models have equal bits: trees or weights, tables, objective of every round."""
    if not np.array_equal(one.transitions_, other.transitions_):
        return False
    same = one.history_["objective"] == other.history_["objective"]
    if hasattr(one, "coef_"):
        return bool(same and np.array_equal(one.coef_, other.coef_))
    return bool(same and one.model_.node.raw == other.model_.node.raw)
