"""Predictions on a cluster: each worker gets the fitted estimator and labels some instances."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from concurrent.futures import CancelledError
from contextlib import suppress
from itertools import chain
from typing import Any

import numpy as np

from crfx.distributed.availability import (
    LOSSES,
    MOST_LOSSES,
    SECONDS_BETWEEN_LOOKS,
    SchedulerLost,
    available_workers,
    awaited,
    scheduler_answers,
)
from crfx.distributed.shares import (
    ARGUMENTS,
    Instances,
    Share,
    by_partition,
    is_collection,
    n_rows,
    partitions,
)
from crfx.errors import BadInstance, located

PARTS_PER_WORKER = 4
"""More than one, so that a slow worker delays the others little."""


def predicted(
    client: Any,
    workers: list[str] | None,
    wait: float,
    estimator: Any,
    method: str,
    data: Instances,
    common: dict[str, Any],
) -> Any:
    """Return the result of a method for all instances, in their order.

    The shares of a lost worker are sent to others.  ``workers`` may be used (None: all); if none is
    available, wait for them, ``wait`` seconds at most.
    """
    addresses = _awaited(client, workers, wait)
    shares = dict(enumerate(data.shares(PARTS_PER_WORKER * len(addresses))))
    results: dict[int, Any] = {}
    last: BaseException | None = None
    for _ in range(MOST_LOSSES):
        error = None  # of the method: it must not be mistaken for a loss
        try:
            futures = _submitted(client, addresses, estimator, method, shares, common)
            for number, future in futures.items():
                result, error = _result(future)
                if error is not None:
                    break
                if result is not _LOST:
                    results[number] = result
                    del shares[number]
        except LOSSES as loss:
            last = loss
            if not scheduler_answers(client):
                raise SchedulerLost from loss
            time.sleep(SECONDS_BETWEEN_LOOKS)  # until the scheduler knows which worker is gone
        if error is not None:
            raise error
        if not shares:
            parts = [results[number] for number in range(len(results))]
            return list(chain(*parts)) if isinstance(parts[0], list) else np.concatenate(parts)
        addresses = _awaited(client, workers, wait)
    message = f"workers were lost {MOST_LOSSES} times in a row while they predicted"
    raise RuntimeError(message) from last


def _awaited(client: Any, workers: list[str] | None, wait: float) -> list[str]:
    addresses = awaited(lambda: available_workers(client, workers), 1, wait)
    if not addresses:
        what = "the cluster has no workers" if workers is None else "all of workers were lost"
        raise RuntimeError(what)
    return addresses


def _submitted(
    client: Any,
    addresses: list[str],
    estimator: Any,
    method: str,
    shares: dict[int, Share],
    common: dict[str, Any],
) -> dict[int, Any]:
    """Return a future for every share."""
    # Not with broadcast=True: Dask would wait for ever if a worker died meanwhile.
    (model,) = client.scatter([estimator], hash=False, workers=addresses)
    return {
        number: client.submit(
            _call,
            model,
            method,
            share.load,
            share.first,
            client.scatter(share.data, hash=False, workers=addresses),
            common,
            workers=addresses,
            pure=False,
        )
        for number, share in shares.items()
    }


_LOST = object()


def _result(future: Any) -> tuple[Any, BaseException | None]:
    """Return the result for a share, ``_LOST`` if a worker was lost, and the error if it failed."""
    from distributed import KilledWorker, wait

    with suppress(CancelledError):
        wait([future])
    if future.status == "finished":
        return future.result(), None
    if future.status == "error" and not isinstance(future.exception(), KilledWorker):
        return None, future.exception()
    return _LOST, None


def _call(
    estimator: Any,
    method: str,
    load: Callable[..., dict[str, Any]],
    first: int,
    data: list[Any],
    common: dict[str, Any],
) -> Any:
    from distributed import get_worker

    if estimator.n_jobs is None:
        # A copy: workers may be threads of the user's own process.
        estimator = copy.copy(estimator).set_params(n_jobs=get_worker().state.nthreads)
    try:
        return getattr(estimator, method)(**load(*data), **common)
    except ValueError as error:
        bad = located(error)
        raise (bad.after(first) if isinstance(bad, BadInstance) else bad) from None


def lazily_predicted(estimator: Any, method: str, arguments: dict[str, Any]) -> Any:
    """Return the result for a collection of Dask as a collection: a bag for a bag, else an array.

    Nothing is computed yet.
    """
    import dask
    from dask import array, bag

    described = {name: arguments[name] for name in ARGUMENTS if arguments.get(name) is not None}
    common = {name: value for name, value in arguments.items() if name not in ARGUMENTS}
    held = {name: partitions(value) for name, value in described.items() if is_collection(value)}
    rest = {name: value for name, value in described.items() if name not in held}
    others: list[dict[str, Any]] = [{}] * len(held["X"])
    if rest:
        others = by_partition(rest, _row_counts(arguments["X"], held["X"]))
    model = dask.delayed(estimator)
    call = dask.delayed(_of_partition, pure=True)
    pieces = [
        call(model, method, dict(zip(held, parts, strict=True)), {**other, **common})
        for parts, other in zip(zip(*held.values(), strict=True), others, strict=True)
    ]
    if not hasattr(arguments["X"], "shape") and not hasattr(arguments["X"], "columns"):
        return bag.from_delayed(pieces)
    if method not in ("predict", "predict_marginals"):
        raise ValueError(f"{method} of rows that Dask holds: pass a bag of instances")
    classes = getattr(estimator, "classes_", None)
    tail = () if method == "predict" or classes is None else (len(classes),)
    dtype = np.float64 if classes is None else classes.dtype if not tail else np.float32
    return array.concatenate(
        [array.from_delayed(each, (np.nan, *tail), dtype) for each in pieces],
        allow_unknown_chunksizes=True,
    )


def _row_counts(X: Any, parts: list[Any]) -> Any:
    """Return (partitions,) rows, or instances of a bag; count them if Dask does not know."""
    import dask

    known = X.chunks[0] if hasattr(X, "chunks") else [np.nan]
    if not np.isnan(known).any():
        return np.array(known)
    return np.array(dask.compute(*[dask.delayed(n_rows)(part) for part in parts]))


def _of_partition(
    estimator: Any, method: str, arguments: dict[str, Any], common: dict[str, Any]
) -> Any:
    return getattr(estimator, method)(**arguments, **common)
