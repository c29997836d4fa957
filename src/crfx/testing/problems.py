"""Random problems for tests: seeded makers, and hypothesis strategies over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from crfx.scores import FloatArray, IntArray, Sharing

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

Shape = Literal["chain", "path", "star", "random"]
"""A chain, or a forest: its path in shuffled order, a hub with leaves, or any trees."""

N_TYPES = 2


@dataclass(frozen=True, eq=False)
class RawProblem:
    """The arguments of an inference function, unchecked: ``sum_product(**problem.arguments())``."""

    node: FloatArray
    edge: FloatArray | None
    offsets: IntArray
    parents: IntArray | None = None
    edge_types: IntArray | None = None
    start: FloatArray | None = None
    end: FloatArray | None = None
    order: int = 1

    def arguments(self) -> dict[str, Any]:
        """Return all arguments by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def with_arrays(self, **arrays: Any) -> RawProblem:
        """Return a copy with some arguments exchanged."""
        return replace(self, **arrays)

    def __repr__(self) -> str:
        """Print as the call that rebuilds it, for hypothesis's reports."""
        parts = ", ".join(f"{name}={value!r}" for name, value in self.arguments().items())
        return f"RawProblem({parts})"


def make_problem(
    seed: int,
    *,
    lengths: Sequence[int] = (4,),
    n_labels: int = 3,
    order: int = 1,
    shape: Shape = "chain",
    sharing: Sharing = "shared",
    ends: bool = True,
    scale: float = 1.0,
    forbid: float = 0.0,
    gap: float = 0.0,
    dtype: npt.DTypeLike = np.float64,
) -> RawProblem:
    """Make a problem with Gaussian scores; the same arguments give the same problem.

    Parameters
    ----------
    seed : int
    lengths : list of int, default (4,)
        The lengths of the instances.
    n_labels : int, default 3
    order : int, default 1
        The number of predecessors that a label depends on; forests have order 1.
    shape : "chain", "path", "star" or "random", default "chain"
        Chains, or forests of this shape.
    sharing : "none", "shared", "typed" or "each", default "shared"
        The edges that share a table.
    ends : bool, default True
        Add start scores, and end scores to chains.
    scale : float, default 1.0
        The standard deviation of scores.
    forbid : float, default 0.0
        The share of node and edge scores set to -inf; a labelling drawn beforehand stays allowed.
    gap : float, default 0.0
        Subtracted from a third of the node and edge scores, to test arithmetic of limited range.
    dtype : default float64

    Returns
    -------
    RawProblem

    Examples
    --------
    >>> from crfx.inference import sum_product
    >>> problem = make_problem(0, lengths=(2, 3))
    >>> sum_product(**problem.arguments()).node.shape
    (5, 3)
    """
    random = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    rows = int(offsets[-1])
    parents, types = None, None
    if shape != "chain":
        parts = [make_parents(random, length, shape) for length in lengths]
        parents = np.concatenate([np.zeros(0, dtype=np.int64), *parts])
    if sharing == "typed":
        types = random.integers(N_TYPES, size=rows).astype(np.int32)
    front = {"none": (), "shared": (), "typed": (N_TYPES,), "each": (rows,)}[sharing]
    edge = random.normal(scale=scale, size=(*front, *(n_labels,) * (order + 1)))
    start, end = random.normal(scale=scale, size=(2, n_labels))
    problem = RawProblem(
        node=random.normal(scale=scale, size=(rows, n_labels)),
        edge=None if sharing == "none" else edge,
        offsets=offsets,
        parents=parents,
        edge_types=types,
        start=start if ends else None,
        end=end if ends and parents is None else None,
        order=order,
    )
    problem = _lower(problem, random, gap) if gap else problem
    return _cast(_forbid(problem, random, forbid), np.dtype(dtype))


def make_parents(random: np.random.Generator, length: int, shape: Shape) -> IntArray:
    """Return the parents of one instance, in no particular order.

    Parameters
    ----------
    random : numpy.random.Generator
    length : int
    shape : "path", "star" or "random"
        A "random" forest may have several roots.

    Returns
    -------
    (length,) array of int64
        Counted within the instance; -1 at a root.

    Examples
    --------
    >>> make_parents(np.random.default_rng(0), 3, "star").tolist().count(-1)
    1
    """
    if shape == "star":
        parents = np.where(np.arange(length) == 0, -1, 0)
    elif shape == "path":
        parents = np.arange(length) - 1
    else:
        parents = np.array([random.integers(-1, max(t, 1)) if t else -1 for t in range(length)])
    # Shuffle: node i moves to place[i], and so do those that name it as their parent.
    place = random.permutation(length)
    shuffled = np.full(length, -1, dtype=np.int64)
    for node, parent in enumerate(parents.tolist()):
        shuffled[place[node]] = -1 if parent < 0 else place[parent]
    return shuffled


def problems(
    *,
    shapes: Sequence[Shape] = ("chain", "path", "star", "random"),
    orders: Sequence[int] = (1, 2, 3),
    sharings: Sequence[Sharing] = ("none", "shared", "typed", "each"),
    max_instances: int = 3,
    max_length: int = 4,
    max_labels: int = 3,
    scales: Sequence[float] = (0.0, 1.0, 8.0),
    forbids: Sequence[float] = (0.0, 0.3),
    gaps: Sequence[float] = (0.0,),
    dtypes: Sequence[npt.DTypeLike] = (np.float64, np.float32),
) -> SearchStrategy[RawProblem]:
    """Return a hypothesis strategy over `make_problem`; it includes empty instances.

    It needs the package ``hypothesis``.  Numbers come from a drawn seed, so that only the shape
    shrinks.

    Parameters
    ----------
    shapes, orders, sharings, scales, forbids, gaps, dtypes : lists
        Values to choose from, for arguments of `make_problem`.
    max_instances, max_length, max_labels : int
        The largest sizes.

    Returns
    -------
    hypothesis.strategies.SearchStrategy of RawProblem

    Examples
    --------
    >>> from hypothesis import given  # doctest: +SKIP
    >>> @given(problems(max_length=3))  # doctest: +SKIP
    ... def test_inference(problem): ...
    """
    from hypothesis import strategies as st

    @st.composite
    def drawn(draw: Any) -> RawProblem:
        shape = draw(st.sampled_from(shapes))
        lengths = st.lists(st.integers(0, max_length), min_size=1, max_size=max_instances)
        return make_problem(
            draw(st.integers(0, 2**32 - 1)),
            lengths=draw(lengths),
            n_labels=draw(st.integers(1, max_labels)),
            order=draw(st.sampled_from(orders)) if shape == "chain" else 1,
            shape=shape,
            sharing=draw(st.sampled_from(sharings)),
            ends=draw(st.booleans()),
            scale=draw(st.sampled_from(scales)),
            forbid=draw(st.sampled_from(forbids)),
            gap=draw(st.sampled_from(gaps)),
            dtype=draw(st.sampled_from(dtypes)),
        )

    return drawn()


def _lower(problem: RawProblem, random: np.random.Generator, gap: float) -> RawProblem:
    def lowered(table: FloatArray) -> FloatArray:
        return table - gap * (random.random(table.shape) < 1 / 3)

    edge = problem.edge
    return problem.with_arrays(
        node=lowered(problem.node), edge=None if edge is None else lowered(edge)
    )


def _forbid(problem: RawProblem, random: np.random.Generator, share: float) -> RawProblem:
    """Set scores to -inf, but none that a labelling drawn here uses."""
    rows, n_labels = problem.node.shape
    witness = np.asarray(random.integers(n_labels, size=rows))
    node, edge = problem.node.copy(), problem.edge
    forbidden = random.random(node.shape) < share
    forbidden[np.arange(rows), witness] = False
    node[forbidden] = -np.inf
    if edge is not None:
        forbidden = random.random(edge.shape) < share
        for index in _used_entries(problem, witness):
            forbidden[index] = False
        edge = np.where(forbidden, -np.inf, edge)
    return problem.with_arrays(node=node, edge=edge)


def _used_entries(problem: RawProblem, labels: IntArray) -> list[tuple[int, ...]]:
    """Return the indices into ``edge`` that a labelling uses."""
    assert problem.edge is not None
    entries = []
    for first, last in zip(problem.offsets[:-1], problem.offsets[1:], strict=True):
        for row in range(first, last):
            before = range(row - problem.order, row)
            if problem.parents is not None:
                before = range(first + problem.parents[row], first + problem.parents[row] + 1)
            if before.start < first:
                continue
            front: tuple[int, ...] = ()
            if problem.edge.ndim > problem.order + 1:
                front = (row if problem.edge_types is None else int(problem.edge_types[row]),)
            entries.append((*front, *(int(labels[r]) for r in before), int(labels[row])))
    return entries


def _cast(problem: RawProblem, dtype: np.dtype[Any]) -> RawProblem:
    names = ("node", "edge", "start", "end")
    tables = {name: getattr(problem, name) for name in names}
    return problem.with_arrays(
        **{name: None if t is None else t.astype(dtype) for name, t in tables.items()}
    )
