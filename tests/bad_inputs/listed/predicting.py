"""What a fitted model is asked that it cannot answer."""

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
from listed.case import Case
from listed.subjects import FLAT, LENGTHS, STACKED, X, Y, only_fitted, only_unfitted

AREA = "estimators, predicting"
NAN, INF = np.nan, np.inf
FRAMES = [pandas.DataFrame(own, columns=list("abc")) for own in X]
CHAINS = [list(range(-1, length - 1)) for length in LENGTHS]


def _ask(
    tried: str, ask: Callable[[Any], Any], message: str, error: Any = ValueError, names: Any = None
) -> Case:
    def attempt(crf: Any, folder: Path) -> Any:
        return ask(crf)

    subjects = only_fitted() if names is None else only_fitted(names)
    return Case(AREA, tried, attempt, message, error, subjects)


def _unfitted(tried: str, ask: Callable[[Any], Any]) -> Case:
    def attempt(crf: Any, folder: Path) -> Any:
        return ask(crf)

    message = "is not fitted: call fit first"
    return Case(AREA, tried, attempt, message, NotFittedError, only_unfitted())


def _on_frames(frames: Any) -> Callable[[Any], Any]:
    return lambda crf: type(crf)().fit(FRAMES, Y).predict(frames)


def _with(**changes: Any) -> Callable[[Any], Any]:
    return lambda crf: copy.deepcopy(crf).set_params(**changes).predict(X)


ROUNDS = ["GBCRF", "TreeCRF"]
NO_ROUNDS = ["HiddenUnitCRF", "LinearCRF"]
CATEGORIES = [own.assign(d=pandas.Categorical(["x"] * len(own), ["x", "y"])) for own in FRAMES]

CASES = [
    _unfitted("predict before fit", lambda crf: crf.predict(X)),
    _unfitted("marginals before fit", lambda crf: crf.predict_marginals(X)),
    _unfitted("edge marginals before fit", lambda crf: crf.predict_edge_marginals(X)),
    _unfitted("k best before fit", lambda crf: crf.predict_kbest(X, 2)),
    _unfitted("samples before fit", lambda crf: crf.sample(X)),
    _unfitted("an explanation before fit", lambda crf: crf.explain(X[0])),
    _unfitted("importance before fit", lambda crf: crf.importance()),
    _unfitted("log likelihood before fit", lambda crf: crf.log_likelihood(X, Y)),
    _unfitted("score before fit", lambda crf: crf.score(X, Y)),
    _unfitted("transitions before fit", lambda crf: crf.transitions_),
    _unfitted("number of features before fit", lambda crf: crf.n_features_in_),
    _ask("None", lambda crf: crf.predict(None), "X"),
    _ask("a text", lambda crf: crf.predict("abc"), "wrap a single instance in a list"),
    _ask("a number", lambda crf: crf.predict(1), "X"),
    _ask("fewer features", lambda crf: crf.predict([own[:, :2] for own in X]),
         "X has 2 features, but crfx is expecting 3"),
    _ask("more features", lambda crf: crf.predict([np.ones((2, 4))]),
         "X has 4 features, but crfx is expecting 3"),
    _ask("sparse X of other width", lambda crf: crf.predict([sparse.csr_matrix((2, 5))]),
         "X has 5 features, but crfx is expecting 3"),
    _ask("infinity", lambda crf: crf.predict([np.full((2, 3), INF)]),
         "instance 0, position 0: feature 0 is infinite"),
    _ask("stacked without lengths", lambda crf: crf.predict(STACKED), "pass lengths="),
    _ask("lengths that do not add up", lambda crf: crf.predict(STACKED, lengths=[3]),
         "lengths add up to 3 but X has 14 rows"),
    _ask("frames with other columns",
         _on_frames([FRAMES[0].rename(columns={"b": "z"})]), "column 1 of X is 'z'"),
    _ask("frames with columns in another order", _on_frames([FRAMES[0][["b", "a", "c"]]]),
         "column 0 of X is 'b', the model was fitted with 'a'"),
    _ask("categories where numbers were",
         _on_frames([FRAMES[0].astype({"a": "category"})]), "column 'a' of X holds categories"),
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
    _ask("more rounds than there are", lambda crf: crf.predict(X, n_rounds=3),
         "n_rounds is 3: the model has 2 rounds", names=ROUNDS),
    _ask("fewer rounds than none", lambda crf: crf.predict(X, n_rounds=-1), "n_rounds is -1",
         names=ROUNDS),
    _ask("half a round", lambda crf: crf.predict(X, n_rounds=1.5), "n_rounds is 1.5", names=ROUNDS),
    _ask("rounds of text", lambda crf: crf.predict(X, n_rounds="1"), "n_rounds is '1'",
         names=ROUNDS),
    _ask("True rounds", lambda crf: crf.predict_marginals(X, n_rounds=True), "n_rounds is True",
         names=ROUNDS),
    _ask("rounds of a model without", lambda crf: crf.predict(X, n_rounds=1),
         "is not built in rounds", names=NO_ROUNDS),
    _ask("the 0 best", lambda crf: crf.predict_kbest(X, 0), "k is 0"),
    _ask("the -1 best", lambda crf: crf.predict_kbest(X, -1), "k is -1"),
    _ask("the 1.5 best", lambda crf: crf.predict_kbest(X, 1.5), "k is 1.5"),
    _ask("the 'a' best", lambda crf: crf.predict_kbest(X, "a"), "k is 'a'"),
    _ask("the None best", lambda crf: crf.predict_kbest(X, None), "k is None"),
    _ask("the True best", lambda crf: crf.predict_kbest(X, True), "k is True"),
    _ask("far too many best", lambda crf: crf.predict_kbest(X, 2**62), "k is"),
    _ask("-1 samples", lambda crf: crf.sample(X, -1), "n is -1"),
    _ask("1.5 samples", lambda crf: crf.sample(X, 1.5), "n is 1.5"),
    _ask("samples of text", lambda crf: crf.sample(X, "a"), "n is 'a'"),
    _ask("far too many samples", lambda crf: crf.sample(X, 2**60), "n is"),
    _ask("samples with a seed of text", lambda crf: crf.sample(X, random_state="a"),
         "random_state is 'a'"),
    _ask("samples with a seed below 0", lambda crf: crf.sample(X, random_state=-1),
         "random_state is -1|seed is -1"),
    _ask("samples with half a seed", lambda crf: crf.sample(X, random_state=1.5),
         "random_state is 1.5"),
    _ask("samples with a seed of NaN", lambda crf: crf.sample(X, random_state=NAN),
         "random_state is nan"),
    _ask("log likelihood without labels", lambda crf: crf.log_likelihood(X, None), "y is missing"),
    _ask("log likelihood of too few labels", lambda crf: crf.log_likelihood(X, Y[:1]),
         "y has 1 instances but X has 4"),
    _ask("log likelihood of a list as label",
         lambda crf: crf.log_likelihood(X[:1], [["A", ["B"], "A"]]),
         "instance 0, position 1: y holds"),
    _ask("score of too few labels", lambda crf: crf.score(X, Y[:1]), "y has 1 instances"),
    _ask("score of a flat list", lambda crf: crf.score(X, FLAT), "y has 14 instances"),
    _ask("score without labels", lambda crf: crf.score(X, None), "y is missing"),
    _ask("score where no label is known", lambda crf: crf.score(X[:1], [[None] * 3]),
         "no position to score"),
    _ask("a decoder that there is not", _with(decode="best"), "decode is 'best'"),
    _ask("n_jobs of 0", _with(n_jobs=0), "n_jobs is 0"),
    _ask("n_jobs of text", _with(n_jobs="all"), "n_jobs is 'all'"),
    _ask("edge marginals without edges",
         lambda crf: LinearCRF(edges=None, max_iter=2).fit(X, Y).predict_edge_marginals(X),
         "the model has no edges", names=["LinearCRF"]),
    _ask("names of features of arrays", lambda crf: crf.feature_names_in_,
         "fitted on arrays, which have no feature names", AttributeError),
    _ask("importance of another kind", lambda crf: crf.feature_importance("x"), "kind is 'x'",
         names=ROUNDS),
    _ask("to explain several instances", lambda crf: crf.explain(X), "explain takes one instance"),
    _ask("to explain nothing", lambda crf: crf.explain(None), "X is|X has shape"),
    _ask("to explain position 99", lambda crf: crf.explain(X[0], positions=[99]),
         "position 99 is not there: the instance has 3"),
    _ask("to explain position -1", lambda crf: crf.explain(X[0], positions=-1),
         "position -1 is not there"),
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
