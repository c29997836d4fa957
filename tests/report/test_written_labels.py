"""True and found labels meet in the same words."""

import numpy as np
import pytest
from scipy import sparse

from crfx import LinearCRF
from crfx.features import Template
from crfx.io.conll import Conll
from crfx.io.reading import Reading
from crfx.report.written_labels import WrittenLabels, as_instances, judged_instances
from crfx.testing import make_task

TOLERANCE = 1e-5
X = [[["w=Ada"], ["w=Lovelace"], ["w=left"]], [["w=Rome"], ["w=fell"]], [["w=Bo"], ["w=left"]]]
IOB1 = [["I-PER", "I-PER", "O"], ["I-LOC", "O"], ["I-PER", "O"]]


def fitted(as_bio):
    crf = LinearCRF(constraints="bioes", n_jobs=1).fit(X, IOB1)
    if as_bio:
        crf.reading_ = Reading(Conll(("word",)), Template("word[0]", ["word"]), as_bio=True)
    return crf


def test_labels_that_are_written_alike_add_up():
    crf = fitted(as_bio=True)
    written = WrittenLabels(crf)
    assert written.names == ["B-PER", "I-PER", "O", "B-LOC"]
    marginals = crf.predict_marginals(X)[0]
    at = {label: column for column, label in enumerate(crf.classes_.tolist())}
    folded = written.marginals(marginals)
    np.testing.assert_allclose(folded.sum(axis=1), 1, atol=TOLERANCE)
    expected = marginals[:, at["B-PER"]] + marginals[:, at["S-PER"]]
    np.testing.assert_allclose(folded[:, 0], expected, atol=TOLERANCE)


@pytest.mark.parametrize("as_bio", [True, False])
def test_iob1_truth_is_compared_in_written_scheme(as_bio):
    crf = fitted(as_bio)
    instances, labels = as_instances(crf, iter(X), IOB1, None, None, None)  # a generator, read once
    first, second, third = judged_instances(crf, instances, labels, WrittenLabels(crf))
    last, only = ("I-PER", "B-LOC") if as_bio else ("E-PER", "S-LOC")
    assert first.true == first.predicted == ["B-PER", last, "O"]
    assert second.true == second.predicted == [only, "O"]
    assert len(third.predicted) == 2
    assert (first.probabilities == first.marginals.max(axis=1)).all()


def test_data_comes_as_score_takes_it():
    X, y = make_task(0, n_instances=5)
    parents = [np.arange(len(x)) - 1 for x in X]
    crf = LinearCRF(max_iter=3, n_jobs=1).fit(X, y, parents=parents)
    lengths = [len(x) for x in X]
    for stacked in (np.concatenate(X), sparse.coo_matrix(np.concatenate(X))):
        parted, labels = as_instances(crf, stacked, np.concatenate(y), lengths, parents, None)
        result = [part.toarray() if sparse.issparse(part) else part for part in parted["X"]]
        assert [part.tolist() for part in result] == [x.tolist() for x in X]
        assert labels == [list(tags) for tags in y]
        assert [up.tolist() for up in parted["parents"]] == [up.tolist() for up in parents]
        assert len(judged_instances(crf, parted, labels, WrittenLabels(crf))) == len(X)
    assert as_instances(crf, X, y, None, None, None)[0]["parents"] is None
