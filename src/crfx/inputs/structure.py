"""How the rows of a batch hang together: as chains, or as forests with types of edges."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from crfx.batch import Batch
from crfx.features.matrix import first_infinite
from crfx.inputs.hints import NOT_SPLIT, has_entries
from crfx.inputs.rows import Rows, check_not_beside_shards, infinite_feature
from crfx.messages import shown
from crfx.scores import IntArray
from crfx.workers import agreed, current


def structured_batch(rows: Rows, parents: Any, edge_types: Any) -> Batch:
    """Return the batch of X with what goes with it; check that its numbers are finite."""
    if rows.batch is not None:
        check_not_beside_shards({"parents": parents, "edge_types": edge_types})
        return replace(rows.batch, X=rows.matrix)
    matrix, lengths = rows.matrix, rows.lengths
    batch = Batch.from_lengths(lengths, X=matrix)
    if batch.n_rows != matrix.shape[0]:
        raise ValueError(
            f"lengths add up to {batch.n_rows} but X has {matrix.shape[0]} rows; {NOT_SPLIT}"
        )
    if parents is not None or edge_types is not None:
        batch = replace(
            batch,
            parents=_stacked_rows("parents", parents, batch),
            edge_types=_stacked_rows("edge_types", edge_types, batch),
        )
    infinite = first_infinite(matrix)
    if infinite is not None:
        raise ValueError(f"{batch.place(infinite[0])}: {infinite_feature(infinite[1])}")
    return batch


def agreed_batch(rows: Rows, parents: Any, edge_types: Any) -> Batch:
    """Return the batch of this worker, whose structure is of the kind that all workers have."""
    batch, answers = agreed(
        lambda: structured_batch(rows, parents, edge_types),
        lambda batch: (batch.n_instances, _kind_of_structure(batch)),
    )
    if current().size == 1:
        return batch
    is_forest, is_typed = (_passed_to_all(name, answers) for name in ("parents", "edge_types"))
    return like_others(batch, is_forest=is_forest, is_typed=is_typed)


def like_others(batch: Batch, *, is_forest: bool, is_typed: bool) -> Batch:
    """Return a batch in which an empty one has the structure of the other workers."""
    if batch.n_instances:
        return batch
    nothing = np.zeros(0, np.int64)
    return replace(
        batch,
        parents=nothing if is_forest else None,
        edge_types=nothing if is_typed else None,
    )


def _kind_of_structure(batch: Batch) -> dict[str, bool]:
    return {
        "instances": batch.n_instances > 0,
        "parents": batch.parents is not None,
        "edge_types": batch.edge_types is not None,
    }


def _passed_to_all(name: str, answers: list[dict[str, bool]]) -> bool:
    """Return whether workers that have instances have an argument; raise unless all agree."""
    has = {rank: answer[name] for rank, answer in enumerate(answers) if answer["instances"]}
    if len(set(has.values())) > 1:
        present, missing = (next(rank for rank in has if has[rank] == own) for own in (True, False))
        raise ValueError(
            f"{name} are given at worker {present} and not at worker {missing}: pass them to all "
            "or to none"
        )
    return any(has.values())


def _stacked_rows(name: str, values: Any, batch: Batch) -> IntArray | None:
    """Return integers per row from one array, or from a list of arrays, one per instance."""
    if values is None:
        return None
    if not (isinstance(values, list | tuple) and len(values) and has_entries(values[0])):
        return values  # type: ignore[no-any-return]
    if len(values) != batch.n_instances:
        raise ValueError(f"{name} has {len(values)} instances but X has {batch.n_instances}")
    parts = []
    for instance, (entries, length) in enumerate(zip(values, batch.lengths, strict=True)):
        if not has_entries(entries) or isinstance(entries, set | dict):
            raise ValueError(f"instance {instance}: {name} holds {shown(entries)}, not a list")
        try:
            part = np.asarray(entries)
        except ValueError:
            raise ValueError(f"instance {instance}: {name} holds lists within a list") from None
        if part.size and part.dtype.kind not in "iu":  # joined with others it might pass
            raise ValueError(f"instance {instance}: {name} has dtype {part.dtype}: pass integers")
        if part.shape != (length,):
            raise ValueError(
                f"instance {instance}: {name} has {len(part)} entries, X has {length} rows"
            )
        parts.append(part)
    return np.concatenate([part.astype(np.int64) if not part.size else part for part in parts])
