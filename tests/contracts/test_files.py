"""Every estimator comes back from its file as it was: answers, explanations, further training."""

import io
import json
import runpy
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest

from crfx import load
from crfx.estimators.registry import CLASSES

KINDS = runpy.run_path(str(Path(__file__).parents[1] / "saved_models" / "kinds.py"))["KINDS"]
ATTRIBUTES = ("history_", "best_iteration_", "n_features_in_", "n_rounds_", "n_iter_", "n_skipped_")


@pytest.fixture(params=KINDS)
def kind(request):
    return KINDS[request.param]


@pytest.fixture
def pair(kind, tmp_path):
    """An estimator and the same from its file."""
    crf = kind.fitted()
    crf.save(tmp_path / "model.crfx")
    return crf, load(tmp_path / "model.crfx")


def answers(kind, crf):
    """All that an estimator says about data it was not fitted on, as arrays."""
    X, y, more = kind.data(1)
    if kind.ranks:
        terms = [own.contributions.reshape(-1) for own in crf.explain(X).positions]
        orders = np.concatenate(crf.rank(X, **more))
        return {"scores": crf.predict(X), "orders": orders, "terms": np.concatenate(terms)}
    found = {
        "labels": np.concatenate(crf.predict(X, **more)),
        "marginals": np.concatenate(crf.predict_marginals(X, **more)),
    }
    if not getattr(crf, "herding", False):
        drawn = crf.sample(X, 3, **more, random_state=5)
        best = [pair for own in crf.predict_kbest(X, 3, **more) for pair in own]
        found["samples"] = np.concatenate(drawn, axis=1)
        found["k best"] = np.concatenate([labels for labels, _ in best])
        found["probabilities"] = np.array([probability for _, probability in best])
        found["log-likelihoods"] = crf.log_likelihood(X, y, **more)
        first = {name: values[0] for name, values in more.items()}
        explained = crf.explain(next(iter(X)), **first).positions
        found["terms"] = np.concatenate([own.contributions.reshape(-1) for own in explained])
        if crf.model_.has_edges:
            edges = crf.predict_edge_marginals(X, **more)
            found["edges"] = np.concatenate([own.reshape(-1) for own in edges])
    if hasattr(crf, "predict_contributions"):
        found["contributions"] = np.concatenate(crf.predict_contributions(X, **more))
    if hasattr(crf, "feature_importance"):
        named = sorted(crf.feature_importance().items())
        found["importance"] = np.array([value for _, value in named])
        found["important"] = np.array([name for name, _ in named])
    return found


def assert_equal(found, expected):
    """To the bit, and of the same kind."""
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        assert found[name].dtype == array.dtype, name
        np.testing.assert_array_equal(found[name], array, err_msg=name)


def test_every_class_that_can_be_saved_is_here():
    classes = {type(kind.make()).__name__ for kind in KINDS.values()}
    assert classes == set(CLASSES)


def test_the_same_answers(kind, pair):
    crf, found = pair
    assert type(found) is type(crf)
    assert_equal(answers(kind, found), answers(kind, crf))


def test_the_same_attributes(kind, pair):
    crf, found = pair
    assert found.get_params() == crf.get_params()
    for name in ATTRIBUTES:
        assert getattr(found, name, None) == getattr(crf, name, None), name
    assert found.columns_.known_names() == crf.columns_.known_names()
    assert found.columns_.categories == crf.columns_.categories
    if not kind.ranks:
        assert found.classes_.dtype == crf.classes_.dtype
        assert found.classes_.tolist() == crf.classes_.tolist()
        np.testing.assert_array_equal(found.transitions_, crf.transitions_)


def test_the_same_file_again(pair, tmp_path):
    """To the byte: nothing is lost on the way, and files can be compared."""
    for name, crf in zip(("a.crfx", "b.crfx"), pair, strict=True):
        crf.save(tmp_path / name)
    assert (tmp_path / "a.crfx").read_bytes() == (tmp_path / "b.crfx").read_bytes()


def test_the_same_further_training(kind, tmp_path):
    """From the estimator, from its file by name, and from what was loaded."""
    crf = kind.fitted()
    crf.save(tmp_path / "model.crfx")
    before = answers(kind, crf)
    further = [
        answers(kind, kind.fitted(start, **kind.longer))
        for start in (crf, str(tmp_path / "model.crfx"), load(tmp_path / "model.crfx"))
    ]
    assert_equal(further[1], further[0])
    assert_equal(further[2], further[0])
    name = "scores" if kind.ranks else "marginals"
    assert not np.array_equal(further[0][name], before[name])  # it did go on


def test_a_difference_is_seen():
    """The companion: one more round, or another seed of the data, is no equal model."""
    kind = KINDS["gbcrf"]
    with pytest.raises(AssertionError):
        assert_equal(answers(kind, kind.fitted(n_estimators=4)), answers(kind, kind.fitted()))


@pytest.mark.parametrize("name", KINDS)
def test_the_file_of_another_kind(tmp_path, name):
    """With every other class's name in it, a file is refused."""
    KINDS[name].fitted().save(tmp_path / "own.crfx")
    with zipfile.ZipFile(tmp_path / "own.crfx") as archive:
        members = {member: archive.read(member) for member in archive.namelist()}
    values = json.loads(members["model.json"])
    for other in set(CLASSES) - {values["class"]}:
        values["class"] = other
        with zipfile.ZipFile(tmp_path / "other.crfx", "w") as archive:
            for member, raw in (members | {"model.json": json.dumps(values)}).items():
                archive.writestr(member, raw)
        with pytest.raises(ValueError, match=r"other\.crfx is not a model file of crfx: .+"):
            load(tmp_path / "other.crfx")


@pytest.mark.parametrize("name", KINDS)
def test_a_member_too_many_or_too_few(tmp_path, name):
    KINDS[name].fitted().save(tmp_path / "own.crfx")
    with zipfile.ZipFile(tmp_path / "own.crfx") as archive:
        members = {member: archive.read(member) for member in archive.namelist()}
    for gone in members:
        with zipfile.ZipFile(tmp_path / "other.crfx", "w") as archive:
            for member, raw in members.items():
                if member != gone:
                    archive.writestr(member, raw)
        with pytest.raises(ValueError, match=r"other\.crfx is not a model file of crfx"):
            load(tmp_path / "other.crfx")
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(3))
    for extra, raw in (("extra.npy", buffer.getvalue()), ("base.base.node.ubj", b"{}")):
        shutil.copy(tmp_path / "own.crfx", tmp_path / "other.crfx")
        with zipfile.ZipFile(tmp_path / "other.crfx", "a") as archive:
            archive.writestr(extra, raw)
        with pytest.raises(ValueError, match="no part of the model asks for its member"):
            load(tmp_path / "other.crfx")
