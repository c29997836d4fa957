"""Probabilities of labellings: the k best, confidence, spans, edges and log-likelihood."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crfx.batch import Batch
from crfx.inference.feasibility import impossible_rows
from crfx.inference.max_product import best_lists
from crfx.inference.problem import Problem
from crfx.inference.spans import Span, SpanTags, probable_spans
from crfx.objectives.counts import labelling_scores
from crfx.objectives.truth import UNKNOWN
from crfx.prediction.predictor import Scored, stacked
from crfx.scores import FloatArray, IntArray


class Confidence(NamedTuple):
    """The probability of each label of a labelling, (length,), and of the whole."""

    labels: npt.NDArray[np.float64]
    labelling: float


def check_probability(value: Any, above: float | None = None) -> None:
    """Raise ValueError unless ``min_probability`` is a probability, or None."""
    if value is None:
        return
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= 1 or (above is not None and not value > above):
        least = "0" if above is None else "above 0"
        raise ValueError(f"min_probability is {value!r}: it must lie between {least} and 1")


def best_labellings(
    predictor: Scored, batch: Batch, k: int, n_rounds: int | None = None
) -> Iterator[list[tuple[IntArray, float]]]:
    """Yield for every instance up to ``k`` pairs (label codes, probability), best first."""
    for problem in predictor.problems(batch, n_rounds):
        lists = best_lists(problem, k, predictor.n_jobs)
        for best, log_z in zip(lists, predictor.sums(problem).log_z, strict=True):
            yield [(codes, float(np.exp(score - log_z))) for codes, score in best]


def confidences(
    predictor: Scored, batch: Batch, n_rounds: int | None = None
) -> Iterator[Confidence]:
    """Yield for every instance how probable the labelling is that the predictor gives."""
    for problem in predictor.problems(batch, n_rounds):
        codes, sums = predictor.labels_of(problem, n_rounds), predictor.sums(problem)
        labels = sums.node[np.arange(len(codes)), codes].astype(np.float64)
        whole = np.exp(labelling_scores(problem, codes) - sums.log_z)
        for instance, p in enumerate(whole):
            yield Confidence(labels[problem.batch.slice_of(instance)], float(p))


def spans_of(
    predictor: Scored,
    batch: Batch,
    tags: SpanTags,
    min_probability: float | None = None,
    n_rounds: int | None = None,
) -> list[list[Span]]:
    """Return the spans of the labelling of every chain, or all that are as probable."""
    if batch.parents is not None:
        raise ValueError("spans are of chains, but parents are given")
    spans: list[list[Span]] = []
    for problem in predictor.problems(batch, n_rounds, table_per_row=True):
        codes = None if min_probability is not None else predictor.labels_of(problem, n_rounds)
        spans += probable_spans(problem, tags, codes, min_probability, predictor.n_jobs)
    return spans


def edge_marginals(predictor: Scored, batch: Batch, n_rounds: int | None = None) -> FloatArray:
    """Return (rows, labels, ..., labels): the probability of every label tuple of an edge."""
    if predictor.model.sharing == "none":
        raise ValueError("the model has no edges: it was fitted with edges=None")

    def marginals() -> Iterator[FloatArray]:
        for problem in predictor.problems(batch, n_rounds):
            edge = predictor.sums(problem, "each").edge
            assert edge is not None
            yield edge

    return stacked(marginals())


def log_likelihoods(
    predictor: Scored,
    batch: Batch,
    codes: IntArray,
    is_strange: npt.NDArray[np.bool_],
    n_rounds: int | None = None,
) -> npt.NDArray[np.float64]:
    """Return (instances,) log p of label codes (rows,), summed over those that are `UNKNOWN`.

    It is -inf where constraints forbid the labels, and where a label ``is_strange`` to the model.
    """
    values, row = [], 0
    for problem in predictor.problems(batch, n_rounds):
        rows = slice(row, row := row + problem.batch.n_rows)
        values.append(_log_likelihood(predictor, problem, codes[rows], is_strange[rows]))
    return np.concatenate(values)


def _log_likelihood(
    predictor: Scored, problem: Problem, codes: IntArray, is_strange: npt.NDArray[np.bool_]
) -> npt.NDArray[np.float64]:
    batch, model = problem.batch, predictor.model
    is_impossible = np.zeros(batch.n_instances, bool)
    if model.mask is not None or batch.allowed is not None:
        bad = impossible_rows(
            batch, problem.structure, model.mask, codes, model.n_labels, predictor.n_jobs
        )
        is_impossible[batch.instance_of_row[bad]] = True
    is_impossible[batch.instance_of_row[is_strange]] = True
    codes = np.where(np.repeat(is_impossible, batch.lengths), UNKNOWN, codes)
    known = np.flatnonzero(codes != UNKNOWN)
    agreeing = problem.clamped(known, codes[known])
    values = predictor.sums(agreeing).log_z - predictor.sums(problem).log_z
    return np.asarray(np.where(is_impossible, -np.inf, values), dtype=np.float64)
