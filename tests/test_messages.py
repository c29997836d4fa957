"""Warnings stand at a line of the user's, not at one of ours."""

import warnings

import pytest

from crfx import LinearCRF, scorers
from crfx.testing import make_task

X, Y = make_task()
STRANGE = [["Q", *labels[1:]] for labels in Y]
CRF = LinearCRF(max_iter=50, n_jobs=1).fit(X, Y)
WORDS = LinearCRF(max_iter=50, n_jobs=1).fit([[{"w": "a"}, {"w": "b"}]], [["u", "v"]])


@pytest.mark.parametrize(
    "ask",
    [
        lambda: LinearCRF(max_iter=1, n_jobs=1).fit(X, Y),
        lambda: CRF.score(X, STRANGE),
        lambda: CRF.log_likelihood(X, STRANGE),
        lambda: scorers.token_accuracy(CRF, X, STRANGE),
        lambda: WORDS.predict([[{"w": "c"}]]),
    ],
    ids=["max_iter", "score", "log_likelihood", "scorer", "words"],
)
def test_warnings_name_a_line_of_the_user(ask):
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        ask()
    assert [warning.filename for warning in warned] == [__file__]
