"""Samples: labellings drawn from the model."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from crfx import _core
from crfx.inference.native import native_problem
from crfx.inference.problem import Problem, prepare
from crfx.threads import thread_count

SEED_RANGE = 2**64
MOST_DRAWN = 2**32
"""Labels in all draws of one call together: 16 GiB."""
SHORT_CHAINS = 0x9E3779B97F4A7C15
"""XOR with a seed gives the seed of chains too short for an edge."""


def sample(
    node: npt.ArrayLike,
    edge: npt.ArrayLike | None,
    offsets: npt.ArrayLike,
    *,
    parents: npt.ArrayLike | None = None,
    edge_types: npt.ArrayLike | None = None,
    start: npt.ArrayLike | None = None,
    end: npt.ArrayLike | None = None,
    order: int = 1,
    n: int = 1,
    seed: int = 0,
    n_jobs: int | None = None,
) -> npt.NDArray[np.int32]:
    """Draw independent labellings of every instance.

    A draw depends on the seed, its number, its row and the scores alone: not on threads, and more
    draws do not change the first ones.  The time is that of one sum-product, then O(K) per draw and
    position (O(K^(order + 1)) if long instances have a table per row, which is made anew each
    time).

    Parameters
    ----------
    node, edge, offsets, parents, edge_types, start, end, order
        As in `sum_product`.
    n : int, default 1
        The number of labellings.
    seed : int, default 0
    n_jobs : int, optional
        Threads; None: all cores.

    Returns
    -------
    (n, rows) array of int32

    Examples
    --------
    >>> import numpy as np
    >>> sample(np.array([[0.0, -np.inf], [-np.inf, 0.0]]), None, [0, 2], n=2).tolist()
    [[0, 1], [0, 1]]
    """
    problem = prepare(node, edge, offsets, parents, edge_types, start, end, order)
    return drawn(problem, *checked_draws(n, seed), n_jobs)


def checked_draws(n: int, seed: int) -> tuple[int, int]:
    """Return the number of draws and the seed, or raise ValueError."""
    for name, value, limit in (("n", n, 2**31), ("seed", seed, SEED_RANGE)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            raise ValueError(f"{name} is {value!r}: pass a whole number")
        if not 0 <= value < limit:
            raise ValueError(f"{name} is {value}: it must lie between 0 and {limit - 1}")
    return int(n), int(seed)


def drawn(problem: Problem, n: int, seed: int, n_jobs: int | None = None) -> npt.NDArray[np.int32]:
    """Return (n, rows) labellings drawn from a prepared problem."""
    if n * problem.batch.n_rows > MOST_DRAWN:
        raise ValueError(
            f"n is {n}: with {problem.batch.n_rows} rows that is {n * problem.batch.n_rows:.3g} "
            f"labels, and at most {MOST_DRAWN:.3g} fit; draw fewer at a time, with other seeds"
        )
    labels = np.empty((n, problem.batch.n_rows), np.int32)
    pieces = problem.pieces()
    if pieces is None:
        _core.sample(native_problem(problem), labels, seed, thread_count(n_jobs))
    for piece in pieces or ():  # each numbers its rows from 0: another seed gives other chances
        piece_seed = seed ^ SHORT_CHAINS if piece.is_short else seed
        labels[:, piece.rows] = drawn(piece.problem, n, piece_seed, n_jobs)
    return labels
