"""Dask clusters as the place where estimators train and predict."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from crfx.distributed.availability import SchedulerLost, available_workers
from crfx.distributed.prediction import lazily_predicted, predicted
from crfx.distributed.shares import ARGUMENTS, instances_of, is_collection
from crfx.distributed.training import Record, Run, target_of
from crfx.estimators.argument_kinds import Flag, Number, Whole
from crfx.estimators.base import check_fitted
from crfx.estimators.placement import at
from crfx.messages import shown

_SECONDS = Number("be 0 or more", lambda seconds: seconds >= 0)
_LOCK = "crfx"
"""Lock for one training at a time: two could wait for each other's workers for ever."""


@contextmanager
def cluster(
    client: Any,
    *,
    workers: Sequence[str] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    resume: bool = False,
    every: int = 1,
    seconds: float = 60.0,
    wait: float = 60.0,
) -> Iterator[Cluster]:
    """Run ``fit`` and predictions of all estimators in the block on a cluster.

    Parameters
    ----------
    client : dask.distributed.Client
        The client of the cluster.  Its workers need the same version of crfx.
    workers : list of addresses, optional
        Workers to use; by default all.
    checkpoint : path, optional
        A file on this machine that keeps the model during training.  Without it the model is kept
        in the memory of this process only.  The file is removed when training succeeds.
    resume : bool
        Resume from an existing checkpoint.  After an interruption the same call gives the same
        model as an uninterrupted training.
    every, seconds : int, float
        Keep the model every ``every`` rounds (iterations, epochs), but not more often than every
        ``seconds``.
    wait : float
        Seconds to wait for a lost worker to come back, before training continues with the others.

    Notes
    -----
    Every worker trains on consecutive instances: lists are divided, partitions of Dask and shards
    go to workers whole, and workers hold them in memory.  Callbacks run on the worker with the
    first instances; after a loss they start again as they were passed.  The same number of workers
    gives the same model, bit by bit, even if workers are lost and come back.  With ``workers``, a
    worker that comes back has another address and is not used.

    Examples
    --------
    >>> from dask.distributed import Client
    >>> import crfx.distributed
    >>> from crfx import GBCRF
    >>> from crfx.testing import make_task
    >>> X, y = make_task()
    >>> with Client(n_workers=1, processes=False, dashboard_address=":0") as client:
    ...     with crfx.distributed.cluster(client):
    ...         crf = GBCRF(5).fit(X, y)
    ...         labels = crf.predict(X)
    >>> labels[0].tolist()
    ['L0', 'L0', 'L0', 'L1', 'L2', 'L2']
    """
    if not hasattr(client, "scatter"):
        raise ValueError(f"client is {shown(client)}: pass a dask.distributed.Client, Client(...)")
    if client.status == "closed":
        raise ValueError("the client is closed")
    Whole(1).check("every", every)
    _SECONDS.check("seconds", seconds)
    _SECONDS.check("wait", wait)
    Flag().check("resume", resume)
    options = {
        "workers": _checked_addresses(workers),
        "checkpoint": checkpoint,
        "resume": resume,
        "every": int(every),
        "seconds": float(seconds),
        "wait": float(wait),
    }
    place = Cluster(client, options)
    with at(place):
        yield place


def _checked_addresses(workers: Any) -> list[str] | None:
    if workers is None:
        return None
    is_list = isinstance(workers, list | tuple | set) and len(workers) > 0
    if not is_list or not all(isinstance(address, str) for address in workers):
        raise ValueError(f"workers is {shown(workers)}: pass a list of addresses, or None for all")
    if len(set(workers)) < len(workers):
        raise ValueError(f"workers is {shown(workers)}: it has an address twice")
    return list(workers)


class Cluster:
    """A place that runs methods of estimators on the workers of a client.

    ``options`` are the arguments of `cluster`; ``last_run`` has figures of the last training.
    """

    def __init__(self, client: Any, options: dict[str, Any]) -> None:
        self.client, self.options = client, options
        self.last_run: Record | None = None

    def run(self, estimator: Any, method: str, arguments: dict[str, Any]) -> Any:
        """Call a method on the cluster, see `crfx.estimators.placement.Place`."""
        if method == "fit":
            return self._fit(estimator, arguments)
        if method == "partial_fit":
            raise ValueError(
                "partial_fit sweeps over a few instances where it is called: use fit on a cluster, "
                "or leave the block"
            )
        check_fitted(estimator)
        if is_collection(arguments["X"]):
            return lazily_predicted(estimator, method, arguments)
        described, common = _divided(arguments)
        data = instances_of(described, self.client, stays=True)
        self._check_workers()
        workers, wait = self.options["workers"], self.options["wait"]
        return predicted(self.client, workers, wait, estimator, method, data, common)

    def _fit(self, estimator: Any, arguments: dict[str, Any]) -> Any:
        from distributed import Lock

        described, common = _divided(arguments)
        eval_set = _named(estimator, common.pop("eval_set", None))
        common["init_model"] = _loaded(common.get("init_model"))
        watched = None if eval_set is None else instances_of(eval_set, self.client)
        self._check_workers()
        data = instances_of(described, self.client)
        run = Run(self.client, estimator, data, watched, common, **self.options)
        with self.client.as_current():
            lock = Lock(_LOCK)
        lock.acquire()
        try:
            fitted = run.fit()
        except SchedulerLost:
            lock.refresh_leases = False  # the lock is lost too, and would be renewed for ever
            raise
        except BaseException:
            with suppress(OSError):
                lock.release()
            raise
        lock.release()
        self.last_run = run.record
        arguments = estimator.get_params(deep=False)
        vars(estimator).clear()
        vars(estimator).update(vars(fitted) | arguments)
        return estimator

    def _check_workers(self) -> None:
        """Raise ValueError if there is no worker at one of the chosen addresses."""
        there = available_workers(self.client, None)
        if unknown := [each for each in self.options["workers"] or () if each not in there]:
            raise ValueError(
                f"workers has {unknown[0]!r}, but the cluster has {', '.join(there) or 'none'}; "
                "one that was started anew has another address"
            )


def _divided(arguments: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the arguments that describe instances, and the others."""
    described = {name: value for name, value in arguments.items() if name in ARGUMENTS}
    return described, {name: value for name, value in arguments.items() if name not in ARGUMENTS}


def _named(estimator: Any, eval_set: Any) -> dict[str, Any] | None:
    """Return the parts of an ``eval_set`` by name."""
    if eval_set is None or isinstance(eval_set, dict):
        return eval_set
    if isinstance(eval_set, list) and len(eval_set) == 1:
        return _named(estimator, eval_set[0])
    target = target_of(estimator)
    names = ("X", target, "group") if target == "relevance" else ("X", target)
    if not isinstance(eval_set, list | tuple) or not 2 <= len(eval_set) <= len(names):
        raise ValueError(f"eval_set is not ({', '.join(names)}), nor a dict of these")
    return dict(zip(names, eval_set, strict=False))


def _loaded(init_model: Any) -> Any:
    """Load a model file, which lies on the disk of the client."""
    if isinstance(init_model, str | os.PathLike):
        from crfx.estimators.registry import load

        return load(init_model)
    return init_model
