"""Small tasks of ranking, for tests of what trains on them."""

import numpy as np

from crfx.batch import Batch
from crfx.objectives.ranking import RankingObjective
from crfx.trainers.ranking_task import RankingTask
from crfx.trainers.subsets import Subsets


def make_ranking_task(lengths, objective="kl", *, size, n_subsets=2, weights=None):
    """Return a task whose queries all have two levels of relevance, and its random generator."""
    random = np.random.default_rng(0)
    batch = Batch.from_lengths(lengths)
    relevance = random.integers(3, size=batch.n_rows).astype(float)
    relevance[batch.offsets[:-1]], relevance[batch.offsets[:-1] + 1] = 0.0, 2.0
    task = RankingTask(
        RankingObjective(objective, temperature=0.3),
        Subsets(batch, relevance, size),
        relevance,
        np.ones(len(lengths)) if weights is None else weights,
        n_subsets,
        1,
    )
    return task, random
