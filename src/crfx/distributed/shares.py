"""Division of instances over workers: whole instances, in their order.

Instances are in memory, in shards, or held by Dask as bags of instances or as arrays and data
frames of rows.  A share is a function that returns the arguments of a method, with its own
arguments.  Workers call it, so that they read files themselves and Dask moves what it holds.
"""

from __future__ import annotations

import hashlib
import itertools
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crfx.features.matrix import unwrapped
from crfx.io.shards import ShardLabels, Shards, is_sharded

SIZES = ("lengths", "group")
"""Names of the argument with the number of rows of each instance, for stacked rows."""
BY_ROW = ("X", "y", "relevance", "parents", "edge_types", "allowed")
BY_INSTANCE = (*SIZES, "sample_weight")
NEEDED = ("X", "y", "relevance")
ARGUMENTS = (*BY_ROW, *BY_INSTANCE)
"""All arguments that describe instances; the others are the same for all workers."""


class Share(NamedTuple):
    """``load(*data)`` returns arguments by name; ``data`` may hold futures of Dask.

    ``first`` is the number of the first instance among all.
    """

    load: Callable[..., dict[str, Any]]
    data: list[Any]
    first: int = 0

    def arguments(self) -> dict[str, Any]:
        """Load them."""
        return self.load(*self.data)


def instances_of(arguments: dict[str, Any], client: Any, *, stays: bool = False) -> Instances:
    """Return the instances that the arguments of a method describe; ``stays`` as in `Files`.

    ``shares(n_workers)`` divides them among at most so many workers; ``fingerprint()`` returns the
    same text for the same instances, as far as that is quickly known.
    """
    present = {name: value for name, value in arguments.items() if value is not None}
    if is_sharded(arguments.get("X")):
        return Files(present, ranks="relevance" in arguments, stays=stays)
    if any(is_collection(value) for value in present.values()):
        return Collections(present, client)
    return InMemory({name: _listed(value, once=True) for name, value in arguments.items()})


def _digest(content: Any) -> str:
    return hashlib.sha256(pickle.dumps(content)).hexdigest()[:32]


def borders(sizes: npt.NDArray[Any], n_parts: int) -> npt.NDArray[np.int64]:
    """Return (parts + 1,) borders of consecutive items, so that parts are of about equal size.

    No part is empty, so there are at most as many parts as items.

    >>> borders(np.array([5, 1, 1, 1, 4]), 3).tolist()
    [0, 1, 4, 5]
    """
    n_parts = max(1, min(n_parts, len(sizes)))
    ends = np.cumsum(np.maximum(sizes, 1))
    wanted = ends[-1] * np.arange(1, n_parts) / n_parts if len(ends) else np.zeros(0)
    cuts = np.searchsorted(ends, wanted, side="left") + 1
    for k in range(len(cuts)):  # at least one item on either side
        least = cuts[k - 1] + 1 if k else 1
        cuts[k] = min(max(cuts[k], least), len(sizes) - (len(cuts) - k))
    return np.concatenate([[0], cuts, [len(sizes)]]).astype(np.int64)


# In memory ----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class InMemory:
    """Arguments of a method as the user passed them: lists, or stacked rows and their lengths."""

    arguments: dict[str, Any]

    def fingerprint(self) -> str:
        """Return a hash of labels, sizes and the shape of X; features are not read."""
        others = {name: value for name, value in self.arguments.items() if name != "X"}
        X = self.arguments.get("X")
        shape = getattr(X, "shape", None) or [_length(instance) for instance in X or ()]
        return _digest((shape, others))

    def shares(self, n_workers: int) -> list[Share]:
        """Return slices of the arguments.

        If arguments do not match, one worker gets all of them and raises the same error as without
        a cluster.
        """
        everything = [Share(dict, [self.arguments])]
        arguments = {name: value for name, value in self.arguments.items() if value is not None}
        if any(name in NEEDED and name not in arguments for name in self.arguments):
            return everything
        sizes_name = next((name for name in SIZES if name in arguments), None)
        if sizes_name is None:
            arguments["X"] = unwrapped(arguments["X"])
            sizes = _lengths_of_instances(arguments["X"])
        else:
            sizes = _whole_numbers(arguments[sizes_name], least=1 if sizes_name == "group" else 0)
        if sizes is None:
            return everything
        if sizes_name is None:
            arguments = {name: _listed(value) for name, value in arguments.items()}
        rows = np.concatenate([[0], np.cumsum(sizes)])
        by_instance = {name for name in arguments if sizes_name is None or name in BY_INSTANCE}
        for name, value in arguments.items():
            if _length(value) != (len(sizes) if name in by_instance else rows[-1]):
                return everything
        shares = []
        for begin, end in itertools.pairwise(borders(sizes, n_workers)):
            instance_slice, row_slice = slice(begin, end), slice(rows[begin], rows[end])
            part = {
                name: packed(_cut(value, instance_slice if name in by_instance else row_slice))
                for name, value in arguments.items()
            }
            shares.append(Share(unpacked, [part], int(begin)))
        return shares


def _lengths_of_instances(X: Any) -> npt.NDArray[np.int64] | None:
    """Return the length of every instance in a list, or None if X is no such list."""
    if isinstance(X, str) or not hasattr(X, "__iter__") or len(getattr(X, "shape", ())) == 2:
        return None
    lengths = [_length(instance) for instance in X]
    return None if None in lengths else np.array(lengths, np.int64)


def _listed(values: Any, *, once: bool = False) -> Any:
    """Return other iterables than lists and arrays as lists, which can be sliced.

    ``once``: only iterators and others without a length.
    """
    stays = isinstance(values, list | np.ndarray) or not hasattr(values, "__iter__")
    stays = stays or (once and (hasattr(values, "__len__") or hasattr(values, "shape")))
    return values if stays else list(values)


def _length(values: Any) -> int | None:
    """Return the number of rows or entries, None if it is not known."""
    if shape := getattr(values, "shape", None):
        return int(shape[0])
    return len(values) if hasattr(values, "__len__") and shape is None else None


def _whole_numbers(sizes: Any, least: int) -> npt.NDArray[np.int64] | None:
    """Return sizes as an array, or None if they are not such numbers."""
    try:
        array = np.asarray(sizes)
    except ValueError:  # lists of unequal lengths
        return None
    if array.ndim != 1 or array.dtype.kind not in "iu" or (array < least).any():
        return None
    return array.astype(np.int64)


def _cut(values: Any, rows: slice) -> Any:
    return values.iloc[rows] if hasattr(values, "iloc") else values[rows]


class Packed(NamedTuple):
    """Joined arrays of one kind: a million small arrays would be sent one by one."""

    joined: npt.NDArray[Any]
    lengths: npt.NDArray[np.int64]


def packed(values: Sequence[Any]) -> Any:
    """Return a list of arrays of one kind and width as `Packed`, anything else unchanged."""
    if not isinstance(values, list) or len(values) < 2:
        return values
    kinds = {
        (array.dtype, array.shape[1:]) if isinstance(array, np.ndarray) and array.ndim else None
        for array in values
    }
    if len(kinds) > 1 or None in kinds or values[0].dtype == object:
        return values
    return Packed(np.concatenate(values), np.array([len(array) for array in values], np.int64))


def unpacked(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return arguments with `Packed` arrays as lists again; views, not copies."""
    return {
        name: np.split(value.joined, np.cumsum(value.lengths)[:-1])
        if isinstance(value, Packed)
        else value
        for name, value in arguments.items()
    }


# In shards: each worker reads some of the files, whole --------------------------------------------


@dataclass(frozen=True, eq=False)
class Files:
    """Arguments of which X is `Shards.X`; workers must find the files under the same paths.

    ``ranks``: labels are relevance and lengths are group sizes.  ``stays``: features stay on disk,
    and workers read them a file at a time.
    """

    arguments: dict[str, Any]
    ranks: bool = False
    stays: bool = False

    def fingerprint(self) -> str:
        """Return a hash of the names and sizes of the files."""
        paths = self.arguments["X"].shards.paths
        for path in paths:
            if not path.is_file():
                raise ValueError(f"{path}: there is no such file")
        return _digest([(path.name, path.stat().st_size) for path in paths])

    def shares(self, n_workers: int) -> list[Share]:
        """Return consecutive files, of about the same number of rows."""
        others = dict(self.arguments)
        shards: Shards = others.pop("X").shards
        labels = [others.pop(name) for name in ("y", "relevance") if name in others]
        for y in labels:
            if not isinstance(y, ShardLabels):
                raise ValueError("X is of shards: pass their labels too, fit(shards.X, shards.y)")
            if y.shards.paths != shards.paths:
                raise ValueError("X and the labels are of different shards: pass those of the same")
        if others:
            raise ValueError(f"{next(iter(others))} is given beside shards, which have their own")
        shards = shards.absolute()  # workers may be in another folder
        sizes = [shards[number : number + 1].n_rows for number in range(len(shards))]
        return [
            Share(
                opened if self.stays else loaded,
                [shards[begin:end], bool(labels), self.ranks],
                shards[:begin].n_instances if begin else 0,
            )
            for begin, end in itertools.pairwise(borders(np.array(sizes), n_workers).tolist())
        ]


def loaded(shards: Shards, has_labels: bool, ranks: bool) -> dict[str, Any]:
    """Read everything that the files hold."""
    arguments = shards.load()
    if not has_labels:
        arguments.pop("y", None)
    names = {"y": "relevance", "lengths": "group"} if ranks else {}
    return {names.get(name, name): value for name, value in arguments.items()}


def opened(shards: Shards, has_labels: bool, ranks: bool) -> dict[str, Any]:
    """Return features that stay on disk, and labels."""
    label = {"relevance" if ranks else "y": shards.y} if has_labels else {}
    return {"X": shards.X, **label}


# Held by Dask: partitions hold whole instances, and match between X, y and the rest --------------


def is_collection(value: Any) -> bool:
    """Return whether a value is a collection of Dask."""
    return hasattr(value, "__dask_graph__") and hasattr(value, "to_delayed")


def holds_futures(value: Any) -> bool:
    """Return whether a value, or a list or dict of values, holds futures of Dask."""
    if isinstance(value, dict):
        return any(holds_futures(each) for each in value.values())
    if isinstance(value, list):
        return bool(value) and holds_futures(value[0])
    return hasattr(value, "key") and hasattr(value, "client")


def partitions(value: Any) -> list[Any]:
    """Return one delayed value per partition of rows or instances, with all columns."""
    if hasattr(value, "chunks") and value.ndim == 2 and len(value.chunks[1]) > 1:
        value = value.rechunk({1: -1})
    return list(np.ravel(np.array(value.to_delayed(), dtype=object)))


@dataclass(frozen=True, eq=False)
class Collections:
    """Arguments of which some are collections of Dask, and the client that computes them."""

    arguments: dict[str, Any]
    client: Any

    def fingerprint(self) -> str:
        """Return a hash of the numbers of partitions, since nothing is computed for it."""
        collections = (value for value in self.arguments.values() if is_collection(value))
        return _digest([len(partitions(value)) for value in collections])

    def shares(self, n_workers: int) -> list[Share]:
        """Return consecutive partitions, of about the same number of rows."""
        pieces = {n: partitions(v) for n, v in self.arguments.items() if is_collection(v)}
        rest = {name: value for name, value in self.arguments.items() if name not in pieces}
        if "X" not in pieces:
            raise ValueError(f"{next(iter(pieces))} is a collection of Dask, but X is none")
        n_parts = len(pieces["X"])
        for name, parts in pieces.items():
            if len(parts) != n_parts:
                raise ValueError(f"{name} has {len(parts)} partitions, but X has {n_parts}")
        computed = {name: self.client.compute(parts) for name, parts in pieces.items()}
        counts = np.array(self.client.gather(self.client.map(n_rows, computed["X"], pure=False)))
        others = by_partition(rest, counts)
        shares = []
        for begin, end in itertools.pairwise(borders(counts, n_workers)):
            parts = others[begin:end]
            joined_rest = {name: _concatenated([part[name] for part in parts]) for name in rest}
            futures = {name: parts[begin:end] for name, parts in computed.items()}
            shares.append(Share(joined, [futures, joined_rest]))
        return shares


Instances = InMemory | Files | Collections


def by_partition(rest: dict[str, Any], counts: npt.NDArray[Any]) -> list[dict[str, Any]]:
    """Divide values in memory like X, whose partitions have ``counts`` rows or instances."""
    rows = np.concatenate([[0], np.cumsum(counts)])
    sizes_name = next((name for name in SIZES if name in rest), None)
    if sizes_name is None:
        for name, value in rest.items():
            if len(value) != rows[-1]:
                raise ValueError(f"{name} has {len(value)} instances but X has {rows[-1]}")
        instances = rows
    else:
        instances = _instance_borders(np.asarray(rest[sizes_name]), rows)
    return [
        {
            name: value[slice(*(instances if name in BY_INSTANCE else rows)[k : k + 2])]
            for name, value in rest.items()
        }
        for k in range(len(counts))
    ]


def _instance_borders(sizes: npt.NDArray[Any], rows: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return (partitions + 1,) the number of instances before each border of partitions."""
    begins = np.concatenate([[0], np.cumsum(sizes)])
    if not len(sizes) or begins[-1] != rows[-1]:
        raise ValueError(
            f"the sizes of instances add up to {int(sizes.sum())} but X has {int(rows[-1])} rows"
        )
    ended = np.searchsorted(begins, rows, side="right") - 1
    ended[0] = 0  # empty instances at the start belong to the first partition
    split = np.flatnonzero(begins[ended] != rows)
    if split.size:
        raise ValueError(
            f"partition {split[0] - 1} of X ends within instance {ended[split[0]]}: repartition, "
            "so that no instance is split"
        )
    return np.asarray(ended, np.int64)


def joined(pieces: dict[str, list[Any]], rest: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a share from its partitions."""
    return {name: _concatenated(parts) for name, parts in pieces.items()} | rest


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


def n_rows(part: Any) -> int:
    """Return the number of rows, or of instances, of a partition."""
    shape = getattr(part, "shape", None)
    return int(shape[0]) if shape else len(part)
