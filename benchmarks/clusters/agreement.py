"""Do 1, 2 and 3 workers train the same model as a process without workers?"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.clusters.processes import workers
from benchmarks.clusters.tasks import Task, noise, ocr, ranking

WORKERS = (1, 2, 3)
SAME_LABELS, SAME_OBJECTIVE, SAME_PARAMETERS = 0.999, 1e-3, 1e-4


@dataclass(frozen=True)
class Subject:
    """An estimator, what it learns, and whether workers are to find the same model: sweeps that
    are averaged do not, nor does what ends before it has converged, where rounding says when.
    """

    make: Callable[[], Any]
    task: Callable[[], Task]
    is_exact: bool = True


def _continuous() -> Task:
    train, test = noise(60_000, 20, 9), noise(20_000, 20, 9, seed=5)
    return Task(train, {name: test[name] for name in ("X", "lengths")})


def subjects() -> dict[str, Subject]:
    """Return the subjects by name."""
    from crfx import GBCRF, HiddenUnitCRF, LinearCRF, RankingCRF, TreeCRF

    return {
        "GBCRF, OCR": Subject(lambda: GBCRF(20, random_state=0), ocr),
        "GBCRF, 20 continuous features": Subject(lambda: GBCRF(20, random_state=0), _continuous),
        "GBCRF, half of the words a round": Subject(
            lambda: GBCRF(20, subsample=0.5, random_state=0), lambda: ocr(2000)
        ),
        "TreeCRF, OCR": Subject(lambda: TreeCRF(10, random_state=0), lambda: ocr(1000)),
        "LinearCRF, L-BFGS, 30 iterations": Subject(
            lambda: LinearCRF(max_iter=30, tol=0.0), lambda: ocr(1000)
        ),
        "LinearCRF, L-BFGS, to the end": Subject(
            lambda: LinearCRF(max_iter=2000, tol=1e-11), lambda: ocr(1000)
        ),
        "LinearCRF, L-BFGS, ended by tol=1e-5": Subject(
            lambda: LinearCRF(tol=1e-5), lambda: ocr(1000), is_exact=False
        ),
        "HiddenUnitCRF, L-BFGS, OCR": Subject(
            lambda: HiddenUnitCRF(n_hidden=30, trainer="lbfgs", max_iter=30, random_state=0),
            lambda: ocr(500),
        ),
        "RankingCRF, trees, MQ2008": Subject(
            lambda: RankingCRF(scorer="trees", n_estimators=20, random_state=0), ranking
        ),
        "LinearCRF, SGD, OCR": Subject(
            lambda: LinearCRF(trainer="sgd", sweeps=20, random_state=0), ocr, is_exact=False
        ),
        "HiddenUnitCRF, large margin, OCR": Subject(
            lambda: HiddenUnitCRF(
                n_hidden=50, trainer="large_margin", sweeps=20, step=0.03, random_state=0
            ),
            lambda: ocr(2000),
            is_exact=False,
        ),
        "RankingCRF, linear, MQ2008": Subject(
            lambda: RankingCRF(scorer="linear", random_state=0), ranking, is_exact=False
        ),
    }


def measure() -> dict[str, Any]:
    """Train every subject without workers, then with 1, 2 and 3."""
    from crfx.distributed import cluster

    made = {name: (subject, subject.task()) for name, subject in subjects().items()}
    alone = {name: _fitted(subject, task) for name, (subject, task) in made.items()}
    rows: list[dict[str, Any]] = []
    for number in WORKERS:
        with workers(number) as client:
            for name, (subject, task) in made.items():
                with cluster(client) as place:
                    crf, seconds = _fitted(subject, task, n_jobs=None)
                compared = _compared(crf, alone[name][0], task)
                rows.append(
                    {
                        "name": name,
                        "workers": number,
                        "is_exact": subject.is_exact,
                        "seconds": seconds,
                        "seconds_alone": alone[name][1],
                        **told_bytes(place.last_run.bytes_by_round),
                        "n_labels": len(getattr(crf, "classes_", [0])),
                        "is_table": getattr(crf, "edges", None) == "table",
                        **compared,
                    }
                )
                print(rows[-1], flush=True)
    return {"rows": rows}


def told_bytes(by_round: list[int]) -> dict[str, float]:
    """Bytes before the second round, bins and names among them, and in every round from then on."""
    return {"bytes_first": by_round[0], "bytes_per_round": float(np.mean(np.diff(by_round)))}


def _fitted(subject: Subject, task: Task, n_jobs: int | None = 1) -> tuple[Any, float]:
    crf = subject.make().set_params(n_jobs=n_jobs)
    begin = time.perf_counter()
    crf.fit(**task.train)
    return crf, time.perf_counter() - begin


def _compared(crf: Any, alone: Any, task: Task) -> dict[str, Any]:
    ours, theirs = (np.concatenate(_answers(each, task)) for each in (crf, alone))
    last, expected = crf.history_["objective"][-1], alone.history_["objective"][-1]
    differences = {
        "same": float(np.mean(ours == theirs)),
        "objective": abs(last - expected) / abs(expected),
    }
    if hasattr(crf, "coef_") and hasattr(crf, "classes_"):
        differences["parameters"] = float(
            max(
                np.abs(crf.coef_ - alone.coef_).max(),
                np.abs(crf.transitions_ - alone.transitions_).max(),
            )
        )
    return differences


def _answers(crf: Any, task: Task) -> Any:
    """Labels of positions, or of queries the order of documents."""
    crf.set_params(n_jobs=1)
    if hasattr(crf, "rank"):
        return crf.rank(**task.test)
    labels = crf.predict(**task.test)
    return labels if isinstance(labels, list) else [labels]
