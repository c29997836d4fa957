"""Invalid inputs to the predictions of a fitted model."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas
from scipy import sparse
from sklearn.exceptions import NotFittedError

from crfx import GBCRF, LinearCRF
from listed.case import Case, Each, each
from listed.subjects import FLAT, LENGTHS, STACKED, X, Y, only_fitted, only_unfitted

AREA = "estimators, predicting"
NAN, INF = np.nan, np.inf
FRAMES = [pandas.DataFrame(x, columns=list("abc")) for x in X]
CHAINS = [list(range(-1, length - 1)) for length in LENGTHS]


def _ask(
    tried: str, ask: Callable[..., Any], message: str, error: Any = ValueError, names: Any = None,
    values: Each | None = None,
) -> Case:  # fmt: skip
    def attempt(crf: Any, folder: Path, *value: Any) -> Any:
        return ask(crf, *value)

    subjects = only_fitted() if names is None else only_fitted(names)
    return Case(AREA, tried, attempt, message, error, subjects, values)


def _unfitted(tried: str, *asks: Callable[[Any], Any]) -> Case:
    def attempt(crf: Any, folder: Path, ask: Callable[[Any], Any]) -> Any:
        return ask(crf)

    message = "is not fitted: call fit first"
    return Case(AREA, tried, attempt, message, NotFittedError, only_unfitted(), each(*asks))


def _on_frames(crf: Any, frames: Any) -> Any:
    return type(crf)().fit(FRAMES, Y).predict(frames)


def _with(**changes: Any) -> Callable[[Any], Any]:
    return lambda crf: copy.deepcopy(crf).set_params(**changes).predict(X)


ROUNDS = ["GBCRF", "TreeCRF"]
NO_ROUNDS = ["HiddenUnitCRF", "LinearCRF"]
CATEGORIES = [
    frame.assign(d=pandas.Categorical(["x"] * len(frame), ["x", "y"])) for frame in FRAMES
]

CASES = [
    _unfitted("to predict before fit", lambda crf: crf.predict(X),
              lambda crf: crf.predict_marginals(X), lambda crf: crf.predict_edge_marginals(X),
              lambda crf: crf.predict_kbest(X, 2), lambda crf: crf.sample(X)),
    _unfitted("to explain before fit", lambda crf: crf.explain(X[0]), lambda crf: crf.importance()),
    _unfitted("to judge before fit", lambda crf: crf.log_likelihood(X, Y),
              lambda crf: crf.score(X, Y)),
    _unfitted("attributes before fit", lambda crf: crf.transitions_,
              lambda crf: crf.n_features_in_),
    _ask("no list", lambda crf, value: crf.predict(value), "X is (None|1): pass a list",
         values=each(None, 1)),
    _ask("a text", lambda crf: crf.predict("abc"), "wrap a single instance in a list"),
    _ask("other features", lambda crf, value: crf.predict([value]),
         "X has [245] features, but crfx is expecting 3",
         values=each(X[0][:, :2], np.ones((2, 4)), sparse.csr_matrix((2, 5)))),
    _ask("infinity", lambda crf: crf.predict([np.full((2, 3), INF)]),
         "instance 0, position 0: feature 0 is infinite"),
    _ask("stacked without lengths", lambda crf: crf.predict(STACKED), "pass lengths="),
    _ask("lengths that do not add up", lambda crf: crf.predict(STACKED, lengths=[3]),
         "lengths add up to 3 but X has 14 rows"),
    _ask("frames with other columns", _on_frames, "column [01] of X is '[zb]', the model was",
         values=each([FRAMES[0].rename(columns={"b": "z"})], [FRAMES[0][["b", "a", "c"]]])),
    _ask("categories where numbers were",
         lambda crf: _on_frames(crf, [FRAMES[0].astype({"a": "category"})]),
         "column 'a' of X holds categories"),
    _ask("an array where categories were",
         lambda crf: GBCRF(2, max_depth=2).fit(CATEGORIES, Y).predict([np.ones((2, 4))]),
         "X is no data frame, but the model was fitted on one", names=["GBCRF"]),
    _ask("parents for a model of chains", lambda crf: crf.predict(X, parents=CHAINS), "parents"),
    _ask("no parents for a model of forests",
         lambda crf: LinearCRF(max_iter=2).fit(X, Y, parents=CHAINS).predict(X), "parents",
         names=["LinearCRF"]),
    _ask("edge types for a model without", lambda crf: crf.predict(X, edge_types=CHAINS), "types"),
    _ask("an edge type that was not seen",
         lambda crf: LinearCRF(max_iter=2)
         .fit(X, Y, edge_types=[[0] * n for n in LENGTHS])
         .predict(X, edge_types=[[5] * n for n in LENGTHS]),
         "instance 0, position 1: edge type 5", names=["LinearCRF"]),
    _ask("a cycle of parents",
         lambda crf: LinearCRF(max_iter=2)
         .fit(X, Y, parents=CHAINS)
         .predict(X[:1], parents=[[1, 2, 0]]),
         "instance 0, position .*cycle", names=["LinearCRF"]),
    _ask("another number of rounds", lambda crf, value: crf.predict_marginals(X, n_rounds=value),
         "n_rounds is .*: the model has 2 rounds", names=ROUNDS,
         values=each(3, -1, 1.5, "1", True)),
    _ask("rounds of a model without", lambda crf: crf.predict(X, n_rounds=1),
         "is not built in rounds", names=NO_ROUNDS),
    _ask("another number of labellings", lambda crf, value: crf.predict_kbest(X, value),
         "k is .*: pass how many labellings", values=each(0, -1, 1.5, "a", None, True, 2**62)),
    _ask("another number of samples", lambda crf, value: crf.sample(X, value),
         "n is (-1|1.5|'a'|11)", values=each(-1, 1.5, "a", 2**60)),
    _ask("samples with another seed", lambda crf, value: crf.sample(X, random_state=value),
         "(random_state|seed) is ('a'|-1|1.5|nan)", values=each("a", -1, 1.5, NAN)),
    _ask("to judge without labels", lambda crf, method: getattr(crf, method)(X, None),
         "y is missing", values=each("log_likelihood", "score")),
    _ask("to judge too few labels", lambda crf, method: getattr(crf, method)(X, Y[:1]),
         "y has 1 instances but X has 4", values=each("log_likelihood", "score")),
    _ask("log likelihood of a list as label",
         lambda crf: crf.log_likelihood(X[:1], [["A", ["B"], "A"]]),
         "instance 0, position 1: y holds"),
    _ask("score of a flat list", lambda crf: crf.score(X, FLAT), "y has 14 instances"),
    _ask("score where no label is known", lambda crf: crf.score(X[:1], [[None] * 3]),
         "no position to score"),
    _ask("a decoder that there is not", _with(decode="best"), "decode is 'best'"),
    _ask("n_jobs of 0", _with(n_jobs=0), "n_jobs is 0"),
    _ask("edge marginals without edges",
         lambda crf: LinearCRF(edges=None, max_iter=2).fit(X, Y).predict_edge_marginals(X),
         "the model has no edges", names=["LinearCRF"]),
    _ask("names of features of arrays", lambda crf: crf.feature_names_in_,
         "fitted on arrays, which have no feature names", AttributeError),
    _ask("importance of another kind", lambda crf: crf.feature_importance("x"), "kind is 'x'",
         names=ROUNDS),
    _ask("to explain several instances", lambda crf: crf.explain(X), "explain takes one instance"),
    _ask("to explain nothing", lambda crf: crf.explain(None), "X is|X has shape"),
    _ask("to explain another position", lambda crf, value: crf.explain(X[0], positions=value),
         "position (99|-1) is not there: the instance has 3", values=each([99], -1)),
    _ask("to explain positions of text", lambda crf: crf.explain(X[0], positions="all"),
         "positions is 'all': pass whole numbers"),
    _ask("to explain an instance of another width", lambda crf: crf.explain(X[0][:, :2]),
         "X has 2 features"),
    _ask("to explain with labels allowed for too few positions",
         lambda crf: crf.explain(X[0], allowed=[None]), "allowed has 1"),
    _ask("to explain with parents for too few positions",
         lambda crf: crf.explain(X[0], parents=[-1]), "parents has 1 entries, X has 3"),
    _ask("a word for X's argument", lambda crf: crf.predict(X, nonsense=1), "nonsense", TypeError),
]  # fmt: skip
