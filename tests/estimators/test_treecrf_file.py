"""TreeCRF in model files: the same again, an old file, and files that are damaged."""

import shutil
from functools import reduce
from operator import getitem
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from crfx import TreeCRF, load
from crfx.testing import make_task

X, Y = make_task()
ONE = {"random_state": 0, "n_jobs": 1}
NOT_A_MODEL = "is not a model file of crfx"
SAVED = Path(__file__).parents[1] / "saved_models" / "treecrf.crfx"
ROUNDING = 1e-6
"""Of marginals, from one machine to another."""


def frames(X):
    """A number, a category and a truth value."""
    made = []
    for x in X:
        words = pd.Categorical.from_codes(np.clip(x[:, 1] + 1, 0, 3).astype(int), list("uvwx"))
        made.append(pd.DataFrame({"number": x[:, 0], "word": words, "flag": x[:, 2] > 1}))
    return made


KINDS = {"dense": X, "sparse": [sparse.csr_matrix(x) for x in X], "frame": frames(X)}


def check_same_marginals(one, other, data, **more):
    """Check that two models give the same marginals to the bit."""
    marginals, expected = (
        np.concatenate(crf.predict_marginals(data, **more)) for crf in (one, other)
    )
    np.testing.assert_array_equal(marginals, expected)


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        ("dense", {"n_estimators": 0}),
        ("sparse", {"window": (0, 2), "start_end": False, "curvature": "mixing"}),
        ("frame", {"window": 3, "order": 2, "decode": "marginal"}),
    ],
    ids=str,
)
def test_round_trip(kind, arguments, tmp_path):
    data = KINDS[kind]
    crf = TreeCRF(**{"n_estimators": 4, **ONE, **arguments}).fit(data, Y)
    crf.save(tmp_path / "m.crfx")
    again = load(tmp_path / "m.crfx")
    assert again.get_params() == crf.get_params()
    assert again.history_ == crf.history_
    assert (again.n_rounds_, again.best_iteration_) == (crf.n_rounds_, crf.best_iteration_)
    assert again.feature_importance() == crf.feature_importance()
    for n_rounds in (None, min(2, crf.n_rounds_)):
        check_same_marginals(again, crf, data, n_rounds=n_rounds)


def test_a_model_cut_by_early_stopping_is_saved(tmp_path):
    """Early stopping drops rounds, and leaves the sets of their splits behind."""
    other = [y[::-1] for y in Y[:9]]
    crf = TreeCRF(20, early_stopping_rounds=2, window=3, **ONE)
    crf.fit(KINDS["frame"], Y, eval_set=(KINDS["frame"][:9], other))
    assert 0 < crf.n_rounds_ < len(crf.history_["objective"])
    crf.save(tmp_path / "m.crfx")
    check_same_marginals(load(tmp_path / "m.crfx"), crf, KINDS["frame"])


def test_load_reads_an_early_file():
    """What these lines wrote once, with the marginals it gave then:

    TreeCRF(3, window=3, max_leaves=5, random_state=0).fit(frames(X), Y).save(SAVED)
    """
    crf = load(SAVED)
    assert (crf.n_rounds_, crf.window, crf.max_leaves) == (3, 3, 5)
    expected = np.load(SAVED.with_suffix(".npy"))
    marginals = np.concatenate(crf.predict_marginals(frames(X)))
    np.testing.assert_allclose(marginals, expected, rtol=0, atol=ROUNDING)
    assert crf.score(frames(X), Y) > 0.9


# Damage.


def put(value, at=0):
    """A change of one entry."""

    def change(array):
        array[at] = value
        return array

    return change


def put_where(condition, value):
    """A change of the first entry that satisfies a condition."""
    return lambda array: put(value, int(np.flatnonzero(condition(array))[0]))(array)


def is_set(sets):
    return sets >= 0


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "m.crfx"
    crf = TreeCRF(2, window=3, max_leaves=5, **ONE).fit(KINDS["frame"], Y)
    trees = crf.model_.node.trees
    assert trees.features[0] != -1
    assert (trees.sets >= 0).any()
    assert (trees.thresholds > -9).any()
    crf.save(path)
    return path


@pytest.fixture
def reread(saved, tmp_path, changed):
    """A function that changes the manifest or arrays of the file and loads it."""

    def change_and_load(manifest=None, arrays=None):
        path = shutil.copy(saved, tmp_path / "m.crfx")
        changed(path, manifest, arrays)
        return load(path)

    return change_and_load


def test_a_rewritten_file_is_read(saved, reread):
    """The companion: it is the changes that are refused, not the writing."""
    rewritten = reread(lambda values: None, {"node.values": lambda array: array})
    check_same_marginals(rewritten, load(saved), KINDS["frame"])


def wrapped_starts(starts):
    """Differences that overflow are all positive."""
    starts[1:3] = [2**63 - 1, -2]
    return starts


ARRAYS = {
    "child pointing up": ("left", put(0), "children that are not below"),
    "child of itself": ("right", put(0), "children that are not below"),
    "child beyond the tree": ("right", put(10_000), "children that are not below"),
    "negative child": ("left", put(-3), "children that are not below"),
    "two parents": ("right", put(1), "the child of none or of two"),
    "feature out of range": ("features", put(9), "features or labels that there are not"),
    "label out of range": ("features", put(-3), "features or labels that there are not"),
    "leaf with children no more": ("features", put(-1), "the child of none or of two"),
    "no threshold": ("thresholds", lambda a: np.full_like(a, np.nan), "has no threshold"),
    "infinite leaf": ("values", put(np.inf), "not all finite"),
    "leaf that is no number": ("values", put(np.nan, -1), "not all finite"),
    "set beyond the words": ("sets", put_where(is_set, 10_000), "sets that are not there"),
    "set that overflows": ("sets", put_where(is_set, 2**63 - 1), "sets that are not there"),
    "set too long": ("set_sizes", lambda a: np.where(a > 0, 99, a).astype(a.dtype), "not there"),
    "set of negative length": ("set_sizes", put(-1), "sets that are not there"),
    "no set": ("sets", lambda a: np.full_like(a, -1), "has no"),
    "no words": ("words", lambda a: a[:0], "sets that are not there"),
    "starts": ("starts", put(1), "begin and end in wrong places"),
    "starts that fall": ("starts", put(0, 1), "begin and end in wrong places"),
    "starts that overflow": ("starts", wrapped_starts, "begin and end in wrong places"),
    "no starts": ("starts", lambda a: a[:0], "begin and end in wrong places"),
    "a tree too few": ("starts", lambda a: np.delete(a, 1), "below it|none or of two|per label"),
    "unequal lengths": ("gains", lambda a: a[:-1], "unequal lengths"),
    "wrong dtype": ("thresholds", lambda a: a.astype(np.float64), "of another type"),
    "wrong integers": ("left", lambda a: a.astype(np.int64), "of another type"),
    "two axes": ("values", lambda a: a[:, None], "of another type"),
    "missing": ("weights", lambda a: None, ""),
}


def test_load_rejects_damaged_trees(reread, not_refused):
    cases = {
        name: ({f"node.{part}": change}, f"{NOT_A_MODEL}.*({message})")
        for name, (part, change, message) in ARRAYS.items()
    }
    assert not_refused(lambda arrays: reread(arrays=arrays), cases) == {}


MANIFESTS = {
    "rounds": ("model", "n_rounds", 3),
    "own rounds": ("n_rounds", 3),
    "negative window": ("model", "context", "window", [-1, 0]),
    "endless window": ("model", "context", "window", [10**9, 0]),
    "window of one": ("model", "context", "window", [1]),
    "window of text": ("model", "context", "window", ["a", "b"]),
    "narrow window": ("model", "context", "window", [0, 0]),
    "other edges": ("model", "edges", "table"),
    "no edges": ("model", "edges", None),
    "other functions": ("model", "functions", "linear"),
    "trees of XGBoost": ("model", "functions", "trees"),
    "class": ("class", "GBCRF"),
    "order": ("model", "order", 0),
    "high order": ("model", "order", 60),
    "labels": ("model", "n_labels", 4),
    "features": ("n_features", 2),
    "argument": ("arguments", "window", 2),
    "leaves": ("arguments", "max_leaves", 0),
}


def test_load_rejects_damaged_manifests(reread, not_refused):
    def load_changed(change):
        *front, last, value = change
        return reread(lambda manifest: reduce(getitem, front, manifest).update({last: value}))

    cases = {name: (change, NOT_A_MODEL) for name, change in MANIFESTS.items()}
    assert not_refused(load_changed, cases) == {}
    with pytest.raises(ValueError, match=NOT_A_MODEL):
        reread(lambda manifest: manifest["model"].pop("context"))
