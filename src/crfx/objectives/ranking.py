"""Objectives over the permutations of documents (Volkovs, Larochelle and Zemel 2011, section 6).

A permutation y of a query's m documents has energy -sum_i alpha_{y_i} f_i, where f are the scores,
y_i is the rank of document i and alpha_r = log 2 / log(1 + r); its loss is 1 - NDCG@cut.  Both are
sums over (document, rank).  So sums of exp(score), exp(score + weight * loss) and exp(-loss / T)
over all permutations are permanents, and the core adds them up over subsets of documents: 2^m m
products in place of m! m, exact up to ``MOST_SUMMED`` documents.  The loss-scaled objective does
not factorise; up to ``MOST_LISTED`` documents all its permutations are listed.  Larger queries are
sampled: sequential importance sampling, which reports its effective number of samples.

Curvature: h_i = sum_j |Cov(alpha_{y_i}, alpha_{y_j})| under the distribution whose log partition
function the objective has (loss-scaled: Cov of loss * (alpha - its mean over the truths)).  The
Hessian is that covariance matrix, and diag(h) dominates it.  Expected loss has no such bound: its
Hessian is E (loss - its mean) (alpha_{y_i} - ...) (alpha_{y_j} - ...), of any sign.  It is given
the model's h times the standard deviation of the loss, a scale and no more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from crfx import _core
from crfx.batch import Batch
from crfx.errors import BadInstance
from crfx.scores import Array64, IntArray
from crfx.threads import thread_count

RankingObjectiveName = Literal["kl", "likelihood", "loss_augmented", "loss_scaled", "expected_loss"]
OBJECTIVES: tuple[RankingObjectiveName, ...] = get_args(RankingObjectiveName)

MOST_SUMMED: int = _core.MOST_SUMMED
MOST_LISTED: int = _core.MOST_LISTED
MOST_DOCUMENTS: int = _core.MOST_DOCUMENTS
LARGEST_SCORE = 1e9
"""Limit of a document's score and of ``loss_weight``: float64 cannot order larger ones."""


@dataclass(frozen=True, eq=False)
class RankingEvaluation:
    """Value (queries,), gradient and, if requested, curvature in the scores (documents,).

    ``effective`` (queries,) is the effective number of samples, 0 where nothing was sampled.
    """

    value: Array64
    gradient: Array64
    curvature: Array64 | None
    effective: Array64


@dataclass(frozen=True)
class RankingObjective:
    """An objective with its options; options of other objectives have no effect.

    Parameters
    ----------
    name : one of `OBJECTIVES`
    temperature : float
        T of KL's target, which is proportional to exp(-loss / T).
    loss_weight : float
        Weight of the loss in the loss-augmented energy.
    truths : "mean" or "sum"
        How likelihoods combine the permutations of loss 0 (Eq. 10 is the sum).
    cut : int, optional
        The loss is 1 - NDCG@cut; None: whole lists.
    n_samples : int
        Permutations drawn for a query that is too large.
    """

    name: RankingObjectiveName = "kl"
    temperature: float = 1.0
    loss_weight: float = 1.0
    truths: Literal["mean", "sum"] = "mean"
    cut: int | None = None
    n_samples: int = 500

    def __post_init__(self) -> None:
        if self.name not in OBJECTIVES:
            choices = ", ".join(map(repr, OBJECTIVES))
            raise ValueError(f"objective is {self.name!r}: choose one of {choices}")
        if not 0 < self.temperature < np.inf:
            raise ValueError(f"temperature is {self.temperature!r}: it must be above 0")
        if not 0 <= self.loss_weight <= LARGEST_SCORE:
            raise ValueError(
                f"loss_weight is {self.loss_weight!r}: it must be 0 or more, at most "
                f"{LARGEST_SCORE:g}"
            )
        if self.truths not in ("mean", "sum"):
            raise ValueError(f"truths is {self.truths!r}: choose 'mean' or 'sum'")
        if self.cut is not None and self.cut < 1:
            raise ValueError(f"cut is {self.cut!r}: it must be 1 or more, or None for whole lists")
        if self.n_samples < 1:
            raise ValueError(f"n_samples is {self.n_samples!r}: it must be 1 or more")

    @property
    def curvature_kind(self) -> Literal["bound", "none"]:
        """ "bound" if the curvature dominates the Hessian, "none" if it is only a scale."""
        return "none" if self.name == "expected_loss" else "bound"

    @property
    def most_exact(self) -> int:
        """The largest number of documents of a query that is summed exactly."""
        return MOST_LISTED if self.name == "loss_scaled" else MOST_SUMMED

    def evaluate(
        self,
        scores: npt.ArrayLike,
        gains: npt.ArrayLike,
        offsets: npt.ArrayLike,
        *,
        curvature: bool = False,
        seed: int = 0,
        first: int = 0,
        sample_all: bool = False,
        n_jobs: int | None = None,
    ) -> RankingEvaluation:
        """Evaluate at the scores (documents,) of queries that begin at ``offsets``.

        ``gains`` (documents,) are what NDCG adds up.  Samples depend on ``seed`` and the number of
        the query, counted from ``first`` on; with ``sample_all`` small queries are sampled too, to
        see what that costs.  O(2^m m) per query of m documents, with curvature O(2^m m^2); sampled
        O(n_samples m^2).
        """
        batch = Batch(np.asarray(offsets))
        values = _numbers("scores", scores, batch)
        worth = _numbers("gains", gains, batch)
        if (negative := worth < 0).any():
            raise batch.bad_row(np.argmax(negative), "its gain is below 0", "query")
        if (beyond := np.abs(values) > LARGEST_SCORE).any():
            reason = f"its score is beyond {LARGEST_SCORE:g}, where orders cannot be told apart"
            raise batch.bad_row(np.argmax(beyond), reason, "query")
        self._check_sizes(batch.lengths)
        # The core counts queries from 0 on: empty queries come before them.
        is_sampled = sample_all or batch.lengths.max(initial=0) > self.most_exact
        skipped = first if is_sampled else 0
        result = RankingEvaluation(
            np.empty(skipped + batch.n_instances),
            np.empty(batch.n_rows),
            np.empty(batch.n_rows) if curvature else None,
            np.empty(skipped + batch.n_instances),
        )
        _core.ranking_objective(
            values,
            worth,
            np.concatenate([np.zeros(skipped, np.int64), batch.offsets], dtype=np.int64),
            objective=self.name,
            temperature=float(self.temperature),
            loss_weight=float(self.loss_weight),
            sum_over_truths=self.truths == "sum" and self.name in ("likelihood", "loss_augmented"),
            cut=int(self.cut or 0),
            n_samples=int(self.n_samples),
            sample_all=bool(sample_all),
            seed=int(seed),
            value=result.value,
            gradient=result.gradient,
            curvature=result.curvature,
            effective=result.effective,
            n_threads=thread_count(n_jobs),
        )
        return replace(result, value=result.value[skipped:], effective=result.effective[skipped:])

    def _check_sizes(self, lengths: IntArray) -> None:
        too_large = np.flatnonzero(lengths > MOST_DOCUMENTS)
        if too_large.size:
            query = int(too_large[0])
            reason = (
                f"it has {lengths[query]} documents: at most {MOST_DOCUMENTS} can be ordered at a "
                "time; take subsets"
            )
            raise BadInstance(query, reason, unit="query")


def _numbers(name: str, values: npt.ArrayLike, batch: Batch) -> Array64:
    """Return (documents,) numbers; raise ValueError if one is not finite."""
    array = np.ascontiguousarray(values, np.float64)
    if array.shape != (batch.n_rows,):
        raise ValueError(
            f"{name} have shape {array.shape}: pass one per document, {batch.n_rows} in all"
        )
    if not np.isfinite(array).all():
        row = int(np.argmin(np.isfinite(array)))
        raise batch.bad_row(row, f"{name} hold {array[row]}, which is not finite", "query")
    return array
