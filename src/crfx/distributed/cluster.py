"""The workers of a Dask cluster as the place where estimators train and predict."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

from crfx.distributed.availability import SchedulerLost, available_workers
from crfx.distributed.prediction import lazily_predicted, predicted
from crfx.distributed.shares import ARGUMENTS, instances_of, is_collection
from crfx.distributed.training import ClusterOptions, Record, Run, target_of
from crfx.estimators.base import check_fitted
from crfx.estimators.placement import at
from crfx.messages import shown

_LOCK = "crfx"
"""Held by one training at a time: two that wait for each other's workers would wait for ever."""


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
    """Let ``fit`` and predictions of all estimators run on a cluster, as long as it lasts.

    Parameters
    ----------
    client : dask.distributed.Client
        Of the cluster.  Its workers need crfx, of the same version.
    workers : list of addresses, optional
        Of the workers to use; None: all.
    checkpoint : path, optional
        A file on this machine in which the model is kept while it is trained, beside the memory of
        this process: it outlives both.  Removed when training ends well.
    resume : bool
        Go on with a checkpoint that is there: the same call, after everything was lost, ends in
        the same model as if nothing had been.
    every, seconds : int, float
        The model is kept every so many rounds (iterations, sweeps), not more often than that.
    wait : float
        Seconds to wait for a worker that was lost to come back, before training goes on with those
        that are left.

    Notes
    -----
    Every worker trains on consecutive instances of its own: lists are shared out, partitions of
    Dask and shards go to workers whole, and are held in their memory.  Callbacks run on the worker
    that has the first instances; after a loss they begin as they were passed.  The same number of
    workers gives the same model, bit by bit, whoever is lost in between; with ``workers``, one that
    comes back has another address, and is not used.

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
    if isinstance(every, bool) or not isinstance(every, int | np.integer) or every < 1:
        raise ValueError(f"every is {shown(every)}: it must be a whole number of 1 or more")
    for name, value in (("seconds", seconds), ("wait", wait)):
        is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
        if not is_number or not value >= 0:
            raise ValueError(f"{name} is {shown(value)}: it must be 0 or more")
    if not isinstance(resume, bool | np.bool_):
        raise ValueError(f"resume is {shown(resume)}: it must be True or False")
    own = _checked_addresses(workers)
    options = ClusterOptions(own, checkpoint, resume, int(every), float(seconds), float(wait))
    found = Cluster(client, options)
    with at(found):
        yield found


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
    """Runs methods of estimators on the workers of a client.

    ``last_run`` is the training that ended last.
    """

    def __init__(self, client: Any, options: ClusterOptions) -> None:
        self.client, self.options = client, options
        self.last_run: Record | None = None

    def run(self, estimator: Any, method: str, arguments: dict[str, Any]) -> Any:
        """Call a method there, see `crfx.estimators.placement.Place`."""
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
        own, common = _parted(arguments)
        data = instances_of(own, self.client, stays=True)
        self._check_workers()
        options = self.options
        return predicted(
            self.client, options.workers, options.wait, estimator, method, data, common
        )

    def _fit(self, estimator: Any, arguments: dict[str, Any]) -> Any:
        from distributed import Lock

        own, common = _parted(arguments)
        eval_set = _named(estimator, common.pop("eval_set", None))
        common["init_model"] = _loaded(common.get("init_model"))
        watched = None if eval_set is None else instances_of(eval_set, self.client)
        self._check_workers()
        data = instances_of(own, self.client)
        run = Run(self.client, self.options, estimator, data, watched, common)
        with self.client.as_current():
            lock = Lock(_LOCK)
        lock.acquire()
        try:
            fitted = run.fit()
        except SchedulerLost:
            lock.refresh_leases = False  # it is gone too, and would be asked for ever
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
        """Raise ValueError where an address that was passed is of no worker."""
        there = available_workers(self.client, None)
        if unknown := [own for own in self.options.workers or () if own not in there]:
            raise ValueError(
                f"workers has {unknown[0]!r}, but the cluster has {', '.join(there) or 'none'}; "
                "one that was started anew has another address"
            )


def _parted(arguments: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what describes instances, and the rest."""
    own = {name: value for name, value in arguments.items() if name in ARGUMENTS}
    return own, {name: value for name, value in arguments.items() if name not in ARGUMENTS}


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
    """Load a model file here: it lies on the disk of the client."""
    if isinstance(init_model, str | os.PathLike):
        from crfx.estimators.registry import load

        return load(init_model)
    return init_model
