"""Predictions on a cluster: a fitted estimator is sent to the workers, and each takes a part."""

from __future__ import annotations

from typing import Any

import numpy as np

from crfx.distributed.dask_collections import is_collection, partitions
from crfx.distributed.shares import ARGUMENTS, Instances, Share

PARTS_PER_WORKER = 4
"""So that a slow worker, or one that is lost, delays the others little."""


def predicted(
    client: Any, estimator: Any, method: str, data: Instances, common: dict[str, Any], n: int
) -> Any:
    """What a method gives of all instances, in their order."""
    (model,) = client.scatter([estimator], hash=False)
    futures = []
    for share in data.shares(PARTS_PER_WORKER * n):
        given = client.scatter(share.given, hash=False)
        futures.append(client.submit(_call, model, method, share.load, given, common, pure=False))
    return _joined(client.gather(futures))


def _call(estimator: Any, method: str, load: Any, given: list[Any], common: dict[str, Any]) -> Any:
    from distributed import get_worker

    if estimator.n_jobs is None:
        estimator.set_params(n_jobs=get_worker().state.nthreads)
    return getattr(estimator, method)(**Share(load, given).load(*given), **common)


def _joined(parts: list[Any]) -> Any:
    if isinstance(parts[0], list):
        return [own for part in parts for own in part]
    return np.concatenate(parts)


def lazily_predicted(estimator: Any, method: str, arguments: dict[str, Any]) -> Any:
    """The same of a collection of Dask, as a collection: a bag of a bag, an array of rows.

    Nothing is computed before it is asked for.
    """
    import dask
    from dask import array, bag

    own = {name: arguments[name] for name in ARGUMENTS if arguments.get(name) is not None}
    common = {name: value for name, value in arguments.items() if name not in ARGUMENTS}
    held = {name: partitions(value) for name, value in own.items() if is_collection(value)}
    rest = {name: value for name, value in own.items() if name not in held}
    if rest:
        raise ValueError(
            f"{next(iter(rest))} is no collection of Dask, but X is: pass one, with the same "
            "partitions"
        )
    model = dask.delayed(estimator)
    call = dask.delayed(_of_partition, pure=True)
    pieces = [
        call(model, method, dict(zip(held, own_parts, strict=True)), common)
        for own_parts in zip(*held.values(), strict=True)
    ]
    if not hasattr(arguments["X"], "shape") and not hasattr(arguments["X"], "columns"):
        return bag.from_delayed(pieces)
    if method not in ("predict", "predict_marginals"):
        raise ValueError(f"{method} of rows that Dask holds: pass a bag of instances")
    is_labels = method == "predict"
    tail = () if is_labels else (len(estimator.classes_),)
    dtype = estimator.classes_.dtype if is_labels else np.float32
    return array.concatenate(
        [array.from_delayed(each, (np.nan, *tail), dtype) for each in pieces],
        allow_unknown_chunksizes=True,
    )


def _of_partition(
    estimator: Any, method: str, arguments: dict[str, Any], common: dict[str, Any]
) -> Any:
    return getattr(estimator, method)(**arguments, **common)
