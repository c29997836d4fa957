"""A model: structure, potentials and labels; gives the scores of a batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt

from crfx.batch import Batch
from crfx.features.matrix import take_rows
from crfx.inference.problem import Problem
from crfx.model.sum import add_scores, wider
from crfx.potentials.base import AdditiveFunction, Function, Potential
from crfx.potentials.numbers import with_constant
from crfx.potentials.transitions import Tables
from crfx.scores import FloatArray, Scores, Sharing, joined
from crfx.structures import Chain, Forest, Mask
from crfx.structures.mask import masked

EdgeFamily = Literal["table", "linear", "trees", "context"] | None


@dataclass(eq=False)
class Model:
    """Scores of parts as sums over rounds, plus those of a base model where there is one.

    ``edge`` holds a table (or one per type) for "table", and the boosted weights (types, features +
    1, entries) for "linear".  It is None where ``edge_functions`` (one per type) score the edges:
    those of "trees", and the linear ones of parametric models.  With "context" there are no edges
    beside ``node``: that is a function of features and of the labels before, and scores both.

    ``mask`` is what constraints forbid; of a base model's nothing is left.
    """

    order: int
    n_labels: int
    node: Potential
    edge_family: EdgeFamily = None
    edge: Tables | None = None
    edge_functions: Sequence[Function] | None = None
    ends: Tables | None = None
    n_types: int | None = None
    is_forest: bool = False
    base: Model | None = None
    mask: Mask | None = None

    def structure(self, batch: Batch) -> Chain | Forest:
        """Return a forest if the batch has parents, else a chain."""
        return Chain(self.order) if batch.parents is None else Forest()

    @property
    def own_sharing(self) -> Sharing:
        """The way in which edges share tables, the base model aside."""
        if self.edge_family is None:
            return "none"
        if self.edge_family != "table":
            return "each"
        return "shared" if self.n_types is None else "typed"

    @property
    def sharing(self) -> Sharing:
        """The way in which edges share tables."""
        sharing = self.own_sharing
        if self.base is not None:
            sharing = wider(sharing, self.base.sharing)
        has_pairs = self.mask is not None and self.mask.pair is not None
        return wider(sharing, "shared") if has_pairs else sharing

    @property
    def has_edges(self) -> bool:
        """Whether labels depend on each other, in the model or in its base."""
        return self.edge_family is not None or (self.base is not None and self.base.has_edges)

    @property
    def layers(self) -> list[Model]:
        """The model and those underneath, itself first; scores are their sums."""
        return [self, *([] if self.base is None else self.base.layers)]

    def set_base(self, base: Model) -> None:
        """Let the scores of another model stand below, without its constraints."""
        if base.has_edges and base.order != self.order:
            raise ValueError(
                f"init_model has edges of order {base.order}, which cannot be added to those of "
                f"order={self.order}"
            )
        self.base = base if base.mask is None else replace(base, mask=None)
        if self.sharing == "each" and self.own_sharing == "typed":
            raise ValueError("tables per edge type cannot stand on a base with a table per edge")

    @property
    def table(self) -> tuple[int, ...]:
        """Shape of one edge table."""
        return (self.n_labels,) * (self.order + 1)

    def problem(self, batch: Batch, n_rounds: int | None = None) -> Problem:
        """Return the batch with its scores; ``batch.X`` holds the features."""
        structure = self.structure(batch)
        scores = self.scores(batch, structure, n_rounds)
        return Problem(batch, scores, structure, self.sharing)

    def scores(
        self, batch: Batch, structure: Chain | Forest, n_rounds: int | None = None
    ) -> Scores:
        """Return scores after ``n_rounds`` rounds, by default all; a base model counts whole.

        Of features that stay on disk one chunk is in memory at a time.
        """
        parts = [self._loaded_scores(part, structure, n_rounds) for part in batch.loaded()]
        return joined(parts, self.sharing)

    def _loaded_scores(
        self, batch: Batch, structure: Chain | Forest, n_rounds: int | None
    ) -> Scores:
        scores = self._own_scores(batch, structure, n_rounds)
        if self.base is not None:
            under = self.base.scores(replace(batch, allowed=None), structure)
            scores = add_scores(scores, self.own_sharing, under, self.base.sharing, batch)
        return self.masked(scores, batch)

    def masked(self, scores: Scores, batch: Batch) -> Scores:
        """Return scores with -inf for what the constraints, or the batch, do not allow."""
        is_forest = batch.parents is not None
        return masked(scores, self.mask, batch.allowed, self.order, is_forest=is_forest)

    def _own_scores(self, batch: Batch, structure: Chain | Forest, n_rounds: int | None) -> Scores:
        parts = self.node.parts(batch, structure, n_rounds)
        if self.edge_family in ("linear", "trees"):
            parts["edge"] = self._edge_scores(batch, structure, n_rounds)
        elif self.edge is not None:
            parts |= self.edge.at_round(n_rounds)
        if self.ends is not None:
            parts |= self.ends.at_round(n_rounds)
        if batch.parents is not None:
            parts.pop("end", None)
        return Scores(**parts)

    def _edge_scores(
        self, batch: Batch, structure: Chain | Forest, n_rounds: int | None
    ) -> FloatArray:
        """Return (rows, K, ..., K) from the features of the positions at which edges end."""
        rows = structure.edge_rows(batch)
        edge = np.zeros((batch.n_rows, int(np.prod(self.table))), dtype=np.float32)
        for kind in range(self.n_types or 1):
            rows_of_type = (
                rows if batch.edge_types is None else rows[batch.edge_types[rows] == kind]
            )
            if len(rows_of_type):
                X = take_rows(batch.X, rows_of_type)
                edge[rows_of_type] = self._edge_values(X, len(rows_of_type), kind, n_rounds)
        return edge.reshape(batch.n_rows, *self.table)

    def _edge_values(
        self, X: Any, n_rows: int, kind: int, n_rounds: int | None
    ) -> npt.NDArray[np.float32]:
        if self.edge_family == "linear":
            X = with_constant(X)
        if self.edge_functions is not None:
            values: npt.NDArray[np.float32] = self.edge_functions[kind].scores(X, n_rows, n_rounds)
            return values
        assert self.edge is not None
        weights = self.edge.at_round(n_rounds)["weights"][kind]
        return np.asarray(X @ weights, dtype=np.float32)

    @property
    def can_be_cut(self) -> bool:
        """Whether the first rounds can be had without the later ones."""
        return all(part is None or part.by_round for part in (self.edge, self.ends))

    def use_threads(self, n_jobs: int) -> None:
        """Let functions score on so many threads from now on."""
        for function in self.functions:
            function.use_threads(n_jobs)
        if self.base is not None:
            self.base.use_threads(n_jobs)

    def check_structure(self, batch: Batch) -> None:
        """Raise ValueError unless the batch hangs together as those did that trained the model."""
        self.structure(batch).check(batch)
        if self.base is not None:
            self.base.check_structure(batch)
        if self.edge_family is None and self.mask is None:  # positions are independent
            return
        if batch.parents is not None and self.order != 1:
            raise ValueError(
                f"parents are given, but the model has order {self.order}: forests have order 1"
            )
        if (batch.parents is not None) != self.is_forest:
            raise ValueError(
                "the model was trained on forests: pass parents"
                if self.is_forest
                else "parents are given, but the model was trained on chains"
            )
        if self.edge_family is None:
            return
        if (batch.edge_types is None) != (self.n_types is None):
            raise ValueError("pass edge_types exactly if the model was fitted with them")
        if batch.edge_types is not None and self.n_types is not None:
            rows = self.structure(batch).edge_rows(batch)
            bad = rows[(batch.edge_types[rows] < 0) | (batch.edge_types[rows] >= self.n_types)]
            if bad.size:
                raise batch.bad_row(
                    bad[0], f"edge type {batch.edge_types[bad[0]]} was not seen in training"
                )

    @property
    def n_rounds(self) -> int:
        """Rounds of a boosted model, a base model aside."""
        return self.growing[0].n_rounds

    def rounds_alone(self) -> Iterator[Model]:
        """Return every round as a model, without base and constraints; needs `can_be_cut`.

        Scores that are added up in this order, on top of those before the first round, are those
        that training had, to the bit.
        """
        functions = zip(*(function.rounds_alone() for function in self.growing), strict=True)
        edges, ends = (
            repeat(None) if part is None else part.rounds_alone() for part in (self.edge, self.ends)
        )
        for (node, *others), edge, end in zip(functions, edges, ends, strict=False):
            yield replace(
                self,
                node=node,
                edge=edge,
                edge_functions=others if self.edge_functions is not None else None,
                ends=end,
                base=None,
                mask=None,
            )

    def keep(self, n_rounds: int) -> None:
        """Drop the rounds after the first ``n_rounds``."""
        for part in (*self.growing, self.edge, self.ends):
            if part is not None:
                part.keep(n_rounds)

    @property
    def functions(self) -> list[Potential]:
        """All functions of the features: of nodes, then of edges by type."""
        return [self.node, *(self.edge_functions or ())]

    @property
    def growing(self) -> list[AdditiveFunction]:
        """The functions of a boosted model."""
        return cast("list[AdditiveFunction]", self.functions)
