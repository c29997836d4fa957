"""Files, pickles and copies of every estimator are as it was: answers, explanations, further
training.
"""

import copy
import io
import json
import pickle
import shutil
import zipfile

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from crfx import load
from crfx.estimators.registry import CLASSES
from tests.saved_models.kinds import KINDS

ATTRIBUTES = ("history_", "best_iteration_", "n_features_in_", "n_rounds_", "n_iter_", "n_skipped_")


@pytest.fixture(scope="module", params=KINDS)
def kind(request):
    return KINDS[request.param]


@pytest.fixture(scope="module")
def fitted(kind):
    return kind.fitted()


def by_joblib(crf, folder):
    joblib.dump(crf, folder / "crf.joblib")
    return joblib.load(folder / "crf.joblib")


def by_file(crf, folder):
    crf.save(folder / "model.crfx")
    return load(folder / "model.crfx")


COPIES = {
    "pickle": lambda crf, folder: pickle.loads(pickle.dumps(crf)),
    "joblib": by_joblib,
    "deepcopy": lambda crf, folder: copy.deepcopy(crf),
}


def answers(kind, crf):
    """Return all that an estimator says about data it was not fitted on, as arrays."""
    X, y, more = kind.data(1)
    if kind.ranks:
        terms = [position.contributions.reshape(-1) for position in crf.explain(X).positions]
        orders = np.concatenate(crf.rank(X, **more))
        return {"scores": crf.predict(X), "orders": orders, "terms": np.concatenate(terms)}
    results = {
        "labels": np.concatenate(crf.predict(X, **more)),
        "marginals": np.concatenate(crf.predict_marginals(X, **more)),
    }
    if not getattr(crf, "herding", False):
        drawn = crf.sample(X, 3, **more, random_state=5)
        best = [pair for candidates in crf.predict_kbest(X, 3, **more) for pair in candidates]
        results["samples"] = np.concatenate(drawn, axis=1)
        results["k best"] = np.concatenate([labels for labels, _ in best])
        results["probabilities"] = np.array([probability for _, probability in best])
        results["log-likelihoods"] = crf.log_likelihood(X, y, **more)
        first = {name: values[0] for name, values in more.items()}
        explained = crf.explain(next(iter(X)), **first).positions
        results["terms"] = np.concatenate(
            [position.contributions.reshape(-1) for position in explained]
        )
        if crf.model_.has_edges:
            edges = crf.predict_edge_marginals(X, **more)
            results["edges"] = np.concatenate([edge.reshape(-1) for edge in edges])
    if hasattr(crf, "predict_contributions"):
        results["contributions"] = np.concatenate(crf.predict_contributions(X, **more))
    if hasattr(crf, "feature_importance"):
        named = sorted(crf.feature_importance().items())
        results["importance"] = np.array([value for _, value in named])
        results["important"] = np.array([name for name, _ in named])
    return results


def assert_equal(answers, expected):
    """Check that answers are equal to the bit, and of the same types."""
    assert answers.keys() == expected.keys()
    for name, array in expected.items():
        assert answers[name].dtype == array.dtype, name
        np.testing.assert_array_equal(answers[name], array, err_msg=name)


def test_every_class_that_can_be_saved_is_here():
    classes = {type(kind.make()).__name__ for kind in KINDS.values()}
    assert classes == set(CLASSES)


def test_copies_and_files_give_the_same_answers(kind, fitted, tmp_path):
    expected = answers(kind, fitted)
    for make_copy in (*COPIES.values(), by_file):
        copied = make_copy(fitted, tmp_path)
        assert type(copied) is type(fitted)
        assert_equal(answers(kind, copied), expected)
    assert fitted._repr_html_()
    check_is_fitted(fitted)


def test_a_file_keeps_attributes_and_is_saved_again_to_the_byte(kind, fitted, tmp_path):
    """Saving a loaded model writes the same bytes: nothing is lost, and files can be compared."""
    loaded = by_file(fitted, tmp_path)
    assert loaded.get_params() == fitted.get_params()
    for name in ATTRIBUTES:
        assert getattr(loaded, name, None) == getattr(fitted, name, None), name
    assert loaded.columns_.known_names() == fitted.columns_.known_names()
    assert loaded.columns_.categories == fitted.columns_.categories
    if not kind.ranks:
        assert loaded.classes_.dtype == fitted.classes_.dtype
        assert loaded.classes_.tolist() == fitted.classes_.tolist()
        np.testing.assert_array_equal(loaded.transitions_, fitted.transitions_)
    loaded.save(tmp_path / "again.crfx")
    assert (tmp_path / "again.crfx").read_bytes() == (tmp_path / "model.crfx").read_bytes()


def test_further_training_is_the_same(kind, fitted, tmp_path):
    """Warm starts from the estimator, from its file name and from the loaded model agree."""
    loaded, before = by_file(fitted, tmp_path), answers(kind, fitted)
    further = [
        answers(kind, kind.fitted(start, **kind.longer))
        for start in (fitted, str(tmp_path / "model.crfx"), loaded)
    ]
    assert_equal(further[1], further[0])
    assert_equal(further[2], further[0])
    name = "scores" if kind.ranks else "marginals"
    assert not np.array_equal(further[0][name], before[name])  # training did continue


def test_copies_of_unfitted_estimators_are_unfitted(tmp_path):
    for kind in KINDS.values():
        crf = kind.make()
        for again in (*(make_copy(crf, tmp_path) for make_copy in COPIES.values()), clone(crf)):
            assert repr(again) == repr(crf)
            with pytest.raises(NotFittedError):
                check_is_fitted(again)
            X, _, more = kind.data(1)
            with pytest.raises(NotFittedError, match="is not fitted: call fit first"):
                again.predict(X, **({} if kind.ranks else more))


def test_a_difference_is_seen():
    """The companion: a model of one more round has other answers."""
    kind = KINDS["gbcrf"]
    with pytest.raises(AssertionError):
        assert_equal(answers(kind, kind.fitted(n_estimators=4)), answers(kind, kind.fitted()))


def write(path, members):
    with zipfile.ZipFile(path, "w") as archive:
        for member, raw in members.items():
            archive.writestr(member, raw)


def test_files_of_another_class_or_with_other_members_raise(fitted, tmp_path):
    """The file names another class, lacks a member, or has one more."""
    path, other = tmp_path / "own.crfx", tmp_path / "other.crfx"
    fitted.save(path)
    with zipfile.ZipFile(path) as archive:
        members = {member: archive.read(member) for member in archive.namelist()}
    values = json.loads(members["model.json"])
    damaged = [
        members | {"model.json": json.dumps(values | {"class": name})}
        for name in set(CLASSES) - {values["class"]}
    ]
    damaged += [
        {member: raw for member, raw in members.items() if member != gone} for gone in members
    ]
    for parts in damaged:
        write(other, parts)
        with pytest.raises(ValueError, match=r"other\.crfx is not a model file of crfx: .+"):
            load(other)
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(3))
    for extra, raw in (("extra.npy", buffer.getvalue()), ("base.base.node.ubj", b"{}")):
        shutil.copy(path, other)
        with zipfile.ZipFile(other, "a") as archive:
            archive.writestr(extra, raw)
        with pytest.raises(ValueError, match="no part of the model asks for its member"):
            load(other)
