"""What does it cost to train with one worker of a cluster, instead of none?"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from benchmarks.clusters.processes import workers
from benchmarks.clusters.tasks import ocr

REPEATS = 2
MOST = 1.2


def measure() -> dict[str, Any]:
    """Return the fastest of several runs in turns: in this process, and in a worker."""
    from crfx import GBCRF, LinearCRF
    from crfx.distributed import cluster

    task = ocr().train
    made: dict[str, Callable[[], Any]] = {
        "GBCRF, 60 rounds": lambda: GBCRF(60, random_state=0),
        "LinearCRF, 300 iterations": lambda: LinearCRF(max_iter=300, tol=0.0),
    }
    rows = []
    with workers(1) as client:
        for name, make in made.items():
            here = there = float("inf")
            for _ in range(REPEATS):
                here = min(here, _seconds(make().set_params(n_jobs=1), task))
                with cluster(client):
                    there = min(there, _seconds(make(), task))
            rows.append({"name": name, "here": here, "there": there, "ratio": there / here})
            print(rows[-1], flush=True)
    return {"rows": rows}


def _seconds(crf: Any, task: dict[str, Any]) -> float:
    begin = time.perf_counter()
    crf.fit(**task)
    return time.perf_counter() - begin
