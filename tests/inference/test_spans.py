"""Probabilities of spans against a list of all labellings, for any scores and labels."""

from dataclasses import replace

import numpy as np
import pytest

from crfx.inference.problem import prepare
from crfx.inference.sampling import drawn
from crfx.inference.spans import Span, SpanTags, probable_spans
from crfx.inference.sum_product import summed
from crfx.metrics import spans
from crfx.scores import Scores
from crfx.testing import enumerate_instances, make_problem
from tests.pairwise import pairwise

EXACT = 1e-9
LABELS = {
    "iob": ["B-X", "I-X", "I-Y", "O"],
    "bioes": ["B-X", "E-X", "I-X", "S-X"],
    "bare": ["B", "I", "O"],
}


def summed_spans(enumerated, classes):
    """{(start, stop, type): probability} by definition."""
    result = {}
    for codes, p in zip(enumerated.labels, enumerated.probabilities, strict=True):
        for first, last, kind in spans(classes[codes]):
            result[first, last + 1, kind] = result.get((first, last + 1, kind), 0.0) + p
    return result


@pytest.mark.parametrize(
    ("labels", "order", "sharing", "scale", "forbid"),
    [
        (labels, order, sharing, *scores)
        for labels, order, sharing, scores in pairwise(
            list(LABELS),
            [1, 2, 3],
            ["none", "shared", "typed", "each"],
            [(1.0, 0.0), (8.0, 0.3), (60.0, 0.0)],
        )
    ],
)
def test_spans_have_the_probability_of_enumeration(labels, order, sharing, scale, forbid):
    classes = np.array(LABELS[labels])
    raw = make_problem(
        order,
        lengths=(0, 1, 2, 3, 5),
        n_labels=len(classes),
        order=order,
        sharing=sharing,
        scale=scale,
        forbid=forbid,
    )
    problem, tags = prepare(**raw.arguments()), SpanTags.of(classes)
    every = [
        summed_spans(enumerated, classes) for enumerated in enumerate_instances(**raw.arguments())
    ]
    least = 1e-3
    result = probable_spans(problem, tags, None, least, 1)
    assert [[span[:3] for span in predicted] for predicted in result] == [
        sorted(span for span, p in enumerated.items() if p >= least) for enumerated in every
    ]
    for predicted, wanted in zip(result, every, strict=True):
        for span in predicted:
            assert span.probability == pytest.approx(wanted[span[:3]], abs=EXACT)
    codes = np.random.default_rng(0).integers(len(classes), size=problem.batch.n_rows)
    for k, predicted in enumerate(probable_spans(problem, tags, codes, None, 1)):
        rows = problem.batch.slice_of(k)
        assert {span[:3] for span in predicted} == {
            (first, last + 1, kind) for first, last, kind in spans(classes[codes[rows]])
        }
        for span in predicted:
            wanted = every[k].get(span[:3], 0.0)
            assert span.probability == pytest.approx(wanted, abs=EXACT)


def test_span_probabilities_are_not_products():
    """The companion: the oracle tells the exact probability from a product of marginals."""
    classes = np.array(LABELS["iob"])
    raw = make_problem(3, lengths=(3,), n_labels=4, scale=2.0)
    problem = prepare(**raw.arguments())
    (enumerated,) = enumerate_instances(**raw.arguments())
    p, wanted = summed(problem, None, None).node, summed_spans(enumerated, classes)
    assert abs(p[0, 0] * p[1, 1] * (1 - p[2, 1]) - wanted[0, 2, "X"]) > 1000 * EXACT


def test_spans_sort_by_place():
    classes = np.array(["B-X", "B-Y", "O"])
    problem = prepare(np.zeros((2, 3)), None, [0, 2])
    result = probable_spans(problem, SpanTags.of(classes), None, 0.1)
    third = pytest.approx(1 / 3, abs=EXACT)
    assert result == [
        [
            Span(0, 1, "X", third),
            Span(0, 1, "Y", third),
            Span(1, 2, "X", third),
            Span(1, 2, "Y", third),
        ]
    ]


def test_short_chains_are_drawn_by_chances_of_their_own():
    problem = prepare(np.zeros((5, 2)), np.zeros((2, 2, 2)), [0, 2, 5], order=2)
    bound = replace(problem, scores=replace(problem.scores, pairs=np.zeros((2, 2))))
    draws = drawn(bound, 50, 0, 1)
    assert (draws[:, 0] != draws[:, 2]).any()
    assert (draws[:, 1] != draws[:, 3]).any()


def test_pairs_that_score_raise():
    for pairs in (np.zeros((2, 3)), np.ones((2, 2)), np.full((2, 2), np.nan)):
        with pytest.raises(ValueError, match="of 0 and -inf alone"):
            Scores(np.zeros((1, 2)), pairs=pairs)
