"""Collections of Dask as instances: bags of them, or arrays and data frames of rows.

Partitions hold whole instances, and those of X, of y and of the rest belong together one by one.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crfx.distributed.shares import BY_INSTANCE, SIZES, Share, borders, digest


def is_collection(value: Any) -> bool:
    """Whether Dask holds it."""
    return hasattr(value, "__dask_graph__") and hasattr(value, "to_delayed")


def partitions(value: Any) -> list[Any]:
    """One delayed value per partition, of rows or of instances; columns in one piece."""
    if hasattr(value, "chunks") and value.ndim == 2 and len(value.chunks[1]) > 1:
        value = value.rechunk({1: -1})
    return list(np.ravel(np.array(value.to_delayed(), dtype=object)))


@dataclass(frozen=True, eq=False)
class Collections:
    """Arguments of which some are collections, and the client that computes them."""

    arguments: dict[str, Any]
    client: Any

    def fingerprint(self) -> str:
        """Of numbers of partitions: nothing is computed for it."""
        held = (value for value in self.arguments.values() if is_collection(value))
        return digest([len(partitions(value)) for value in held])

    def shares(self, n_workers: int) -> list[Share]:
        """Consecutive partitions, of about the same number of rows."""
        held = {name: value for name, value in self.arguments.items() if is_collection(value)}
        rest = {
            name: value
            for name, value in self.arguments.items()
            if name not in held and value is not None
        }
        if "X" not in held:
            raise ValueError(f"{next(iter(held))} is a collection of Dask, but X is none")
        pieces = {name: partitions(value) for name, value in held.items()}
        n_parts = len(pieces["X"])
        for name, own in pieces.items():
            if len(own) != n_parts:
                raise ValueError(f"{name} has {len(own)} partitions, but X has {n_parts}")
        computed = {name: self.client.compute(own) for name, own in pieces.items()}
        counts = np.array(self.client.gather(self.client.map(length, computed["X"], pure=False)))
        others = self.others(rest, counts)
        cuts = borders(counts, n_workers)
        return [
            Share(joined, [{name: own[begin:end] for name, own in computed.items()}, other])
            for begin, end, other in zip(cuts[:-1], cuts[1:], _merged(others, cuts), strict=True)
        ]

    @staticmethod
    def others(rest: dict[str, Any], counts: npt.NDArray[Any]) -> list[dict[str, Any]]:
        """What is not held by Dask, by partition of X."""
        sizes = next((rest[name] for name in SIZES if name in rest), None)
        if sizes is None:
            ends = np.cumsum(counts)
            wrong = [name for name, value in rest.items() if len(value) != ends[-1]]
            if wrong:
                raise ValueError(
                    f"{wrong[0]} has {len(rest[wrong[0]])} instances but X has {ends[-1]}"
                )
            instances = ends
        else:
            instances = _instance_borders(np.asarray(sizes), counts)
        rows = np.cumsum(counts)
        found = []
        for k in range(len(counts)):
            i, r = (slice(cut[k - 1] if k else 0, cut[k]) for cut in (instances, rows))
            found.append(
                {
                    name: value[i if sizes is None or name in BY_INSTANCE else r]
                    for name, value in rest.items()
                }
            )
        return found


def _instance_borders(sizes: npt.NDArray[Any], counts: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """(partitions,) how many instances have ended with each partition of rows."""
    ends, rows = np.cumsum(sizes), np.cumsum(counts)
    if len(ends) == 0 or ends[-1] != rows[-1]:
        raise ValueError(
            f"the sizes of instances add up to {int(sizes.sum())} but X has {int(rows[-1])} rows"
        )
    begins = np.concatenate([[0], ends])
    found = np.searchsorted(begins, rows, side="right") - 1
    split = np.flatnonzero(begins[found] != rows)
    if split.size:
        raise ValueError(
            f"partition {split[0]} of X ends within instance {found[split[0]]}: repartition, so "
            "that no instance is split"
        )
    return np.asarray(found, np.int64)


def _merged(parts: list[dict[str, Any]], cuts: npt.NDArray[Any]) -> list[dict[str, Any]]:
    """Of every share: what its partitions have, joined."""
    return [
        {name: _concatenated([part[name] for part in parts[begin:end]]) for name in parts[0]}
        for begin, end in itertools.pairwise(cuts)
    ]


def joined(pieces: dict[str, list[Any]], others: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a share from its partitions."""
    return {name: _concatenated(own) for name, own in pieces.items()} | others


def _concatenated(parts: list[Any]) -> Any:
    first = parts[0]
    if hasattr(first, "iloc"):
        import pandas

        return pandas.concat(parts, ignore_index=True)
    if isinstance(first, np.ndarray):
        return np.concatenate(parts)
    if hasattr(first, "tocsr"):
        from scipy import sparse

        return sparse.vstack(parts, format="csr")
    return [instance for part in parts for instance in part]


def length(part: Any) -> int:
    """Rows, or instances."""
    shape = getattr(part, "shape", None)
    return int(shape[0]) if shape else len(part)
