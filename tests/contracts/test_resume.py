"""A training that is cut off in any round, and resumed from its checkpoint, ends in the same model
as one that was not, to the bit: for every kind of estimator.
"""

import json
import zipfile
from copy import copy

import numpy as np
import pytest

from crfx import GBCRF, FeatureInduction, HiddenUnitCRF, LinearCRF, RankingCRF, TreeCRF, load
from crfx.estimators.base import rounds_done
from crfx.estimators.session import resumed
from crfx.trainers.monitor import Monitor
from tests.saved_models.kinds import KINDS, ONE, binary, dense, forest, queries, typed, words

EARLY = {"early_stopping_rounds": 2}
ROUNDED = ("gbcrf-linear",)
"""Scores of linear edges are added up in training, and multiplied out where it is resumed."""
BOOSTED = {"n_estimators": 9, "subsample": 0.7}
UNITS = {"n_hidden": 3, "sweeps": 6, "pretrain_sweeps": 2, "batch_size": 4}
INDUCTION = FeatureInduction(rounds=2, per_round=3, iterations=3, min_count=1, min_gain=0.0)
LONG_INDUCTION = FeatureInduction(rounds=2, per_round=3, iterations=30, min_count=1, min_gain=0.0)


def share_right(true, predicted):
    """A metric of the user, which files cannot hold."""
    return float(np.mean(np.concatenate(true) == np.concatenate(predicted)))


MORE = {
    "gbcrf-sampled-early": (GBCRF, dense, {**BOOSTED, "colsample_bynode": 0.5, **EARLY}),
    "gbcrf-accuracy": (GBCRF, dense, {**BOOSTED, "eval_metric": "token_accuracy", **EARLY}),
    "gbcrf-own-metric": (GBCRF, dense, {**BOOSTED, "eval_metric": share_right, **EARLY}),
    "linear-own-metric": (LinearCRF, dense, {"l2": 1e-4, "eval_metric": share_right, **EARLY}),
    "treecrf-early": (TreeCRF, dense, {**BOOSTED, "max_leaves": 4, **EARLY}),
    "linear-to-its-end": (LinearCRF, dense, {"tol": 1e-3}),
    "linear-l1": (LinearCRF, words, {"max_iter": 9, "l1": 0.2, "min_count": 2}),
    "linear-early": (LinearCRF, words, {"l2": 1e-4, **EARLY}),
    "linear-step": (LinearCRF, words, {"trainer": "sgd", "sweeps": 6}),
    "linear-sweeps-early": (
        LinearCRF,
        dense,
        {"trainer": "sgd", "sweeps": 12, "step": 0.3, "burn_in": 0, "l2": 0.0, **EARLY},
    ),
    "induction": (LinearCRF, binary, {"max_iter": 5, "feature_induction": INDUCTION}),
    "induction-to-its-end": (
        LinearCRF,
        binary,
        {"max_iter": 40, "tol": 1e-2, "l1": 0.1, "feature_induction": LONG_INDUCTION},
    ),
    "hidden-to-its-end": (HiddenUnitCRF, dense, {**UNITS, "trainer": "lbfgs", "tol": 1e-2}),
    "hidden-early": (HiddenUnitCRF, dense, {**UNITS, "trainer": "lbfgs", "l2": 1e-4, **EARLY}),
    "hidden-sweeps-early": (
        HiddenUnitCRF,
        forest,
        {**UNITS, "step": 0.5, "burn_in": 0, "dropout": 0.1, **EARLY},
    ),
    "hidden-pretrained": (HiddenUnitCRF, dense, {**UNITS, "pretrain": "discriminative"}),
    "hidden-contrastive": (
        HiddenUnitCRF,
        dense,
        {**UNITS, "trainer": "lbfgs", "max_iter": 5, "pretrain": "contrastive"},
    ),
    "ranking-linear-early": (RankingCRF, queries, {"sweeps": 9, "step": 2.0, **EARLY}),
    "ranking-trees-early": (
        RankingCRF,
        queries,
        {**BOOSTED, "scorer": "trees", "min_child_weight": 0.1, **EARLY},
    ),
}

BASED = {
    "treecrf-on-linear": (TreeCRF, dense, {"n_estimators": 4, "max_leaves": 4}),
    "gbcrf-trees-on-linear": (GBCRF, typed, {"n_estimators": 4, "edges": "trees"}),
    "gbcrf-forest-on-linear": (GBCRF, forest, {"n_estimators": 4, "subsample": 0.6}),
}


class Cut(Exception):
    """The machine is gone."""


def cases():
    for name, kind in KINDS.items():
        if name not in ROUNDED:
            yield pytest.param(kind.make, kind.data, kind.base, id=name)
    for name, (cls, data, settings) in (MORE | BASED).items():
        base = None if name in MORE else lambda: LinearCRF(max_iter=3, **ONE)
        yield pytest.param(
            lambda cls=cls, settings=settings: cls(**ONE, **settings), data, base, id=name
        )


@pytest.mark.parametrize(("make", "data", "base"), list(cases()))
def test_an_interrupted_run_ends_in_the_same_model(make, data, base, tmp_path):
    arguments, rounds = arguments_of(make(), data, base), []
    whole = resumed(make(), arguments, None, rounds.append)
    expected, n_rounds = contents(whole, tmp_path), len(rounds)
    assert n_rounds >= 3
    for cut in (1, n_rounds // 2, n_rounds):
        again = recovered(make, arguments, cut, tmp_path / "checkpoint.crfx")
        assert contents(again, tmp_path) == expected, f"cut off after {cut} of {n_rounds}"


def arguments_of(crf, data, base):
    arguments = named(crf, *data(0))
    if base is not None:
        arguments["init_model"] = base().fit(**arguments)
    if crf.early_stopping_rounds is not None:
        arguments["eval_set"] = named(crf, *data(1))
    return arguments


def named(crf, X, y, more):
    return {"X": X, ("relevance" if isinstance(crf, RankingCRF) else "y"): y, **more}


def recovered(make, arguments, cut, path):
    """Cut off after so many rounds, then once more after the next, then left alone."""
    to_go = cut

    def keep(progress):
        nonlocal to_go
        to_go -= 1
        progress.save(path)
        if to_go == 0:
            raise Cut

    with pytest.raises(Cut):
        resumed(make(), arguments, None, keep)
    to_go = 1
    try:
        return resumed(make(), arguments, load(path), keep)
    except Cut:
        return resumed(make(), arguments, load(path), lambda progress: None)


def contents(crf, folder):
    """All that a model is: what its file holds, but for the times."""
    crf.save(folder / "m.crfx")
    with zipfile.ZipFile(folder / "m.crfx") as file:
        members = {name: file.read(name) for name in file.namelist()}
    values = json.loads(members.pop("model.json"))
    values["history"].pop("seconds")
    return values, members


def test_a_checkpoint_holds_the_arguments_of_its_run(tmp_path):
    X, y, _ = dense(0)
    seen, path = [], tmp_path / "m.crfx"

    def keep(progress):
        progress.save(path)
        seen.append((load(path).n_estimators, load(path).training_.to_go))

    start = GBCRF(2, **ONE).fit(X, y)
    again = resumed(GBCRF(3, **ONE), {"X": X, "y": y, "init_model": start}, None, keep)
    assert seen == [(3, 2), (3, 1), (3, 0)]
    assert (again.n_rounds_, again.training_.to_go) == (5, None)
    assert resumed(GBCRF(3, **ONE), {}, again, keep) is again  # there is nothing left to do


def test_callbacks_are_called_and_may_end_a_run(tmp_path):
    """This includes a run that was interrupted in the round in which the callback ended it."""
    X, y, _ = dense(0)
    called, path = [], tmp_path / "m.crfx"

    def stop(progress):
        called.append(progress.n_rounds)
        return progress.n_rounds == 2

    for crf in (GBCRF(5, **ONE), LinearCRF(max_iter=5), LinearCRF("perceptron", sweeps=5)):
        called.clear()
        arguments = {"X": X, "y": y, "callbacks": [stop]}
        resumed(crf, arguments, None, lambda progress: progress.save(path))
        assert called == [1, 2]
        again = resumed(type(crf)(**crf.get_params()), arguments, load(path), called.append)
        assert called == [1, 2]
        assert contents(again, tmp_path) == contents(crf, tmp_path)


def test_a_finished_linear_model_holds_no_training_state(tmp_path):
    X, y, _ = dense(0)
    sizes = {}
    for name, trainer in (("lbfgs", "lbfgs"), ("sweeps", "sgd")):
        crf = LinearCRF(trainer, max_iter=5, sweeps=5, step=0.1, **ONE)
        path = tmp_path / f"{name}.crfx"
        crf.fit(X, y, callbacks=[lambda progress, path=path: progress.save(path)])
        assert load(path).training_.standing.n_done == 5
        values, members = contents(crf, tmp_path)
        assert "training" not in values
        assert not [member for member in members if member.startswith("training")]
        sizes[name] = len(members)
        again = LinearCRF(trainer, max_iter=5, sweeps=5, step=0.1, **ONE)
        assert again.fit(X, y, init_model=crf).n_iter_ == 5
    assert sizes["lbfgs"] == sizes["sweeps"]


@pytest.mark.parametrize("make", [lambda: GBCRF(3, **ONE), lambda: LinearCRF(max_iter=3)])
def test_interrupt_between_rounds_leaves_a_model_that_loads(make, monkeypatch, tmp_path):
    X, y, _ = dense(0)
    crf, record = make(), Monitor.record

    def interrupted(monitor, measured, n_done):
        if n_done == 2:
            raise KeyboardInterrupt
        return record(monitor, measured, n_done)

    monkeypatch.setattr(Monitor, "record", interrupted)
    with pytest.raises(KeyboardInterrupt):
        crf.fit(X, y)
    assert rounds_done(crf) == len(crf.history_["objective"]) == 1
    crf.save(tmp_path / "m.crfx")
    assert load(tmp_path / "m.crfx").training_.to_go == 2


@pytest.mark.parametrize(
    "make",
    [
        lambda: LinearCRF("sgd", sweeps=5, step=0.1, **ONE),
        lambda: LinearCRF(max_iter=5, **ONE),
        lambda: HiddenUnitCRF(3, sweeps=5, step=0.1, **ONE),
        lambda: RankingCRF(sweeps=5, step=0.1, **ONE),
        lambda: GBCRF(5, **ONE),
    ],
)
def test_copy_taken_in_training_leaves_the_training_alone(make, tmp_path):
    """A checkpoint that is saved after the copy resumes to the same model."""
    crf = make()
    data = (queries if isinstance(crf, RankingCRF) else dense)(0)
    arguments = named(crf, *data)
    path = tmp_path / "checkpoint.crfx"  # `contents` writes m.crfx

    def keep(progress):
        copy(crf)
        if progress.n_rounds == 3:
            progress.save(path)

    whole = contents(resumed(crf, arguments, None, keep), tmp_path)
    assert (
        contents(resumed(make(), arguments, load(path), lambda progress: None), tmp_path) == whole
    )


def test_resumed_rejects_a_checkpoint_of_another_kind():
    X, y, _ = dense(0)
    ranker = RankingCRF(sweeps=2, step=0.1, **ONE)

    def interrupt(progress):
        raise Cut

    with pytest.raises(Cut):
        resumed(ranker, named(ranker, *queries(0)), None, interrupt)
    with pytest.raises(ValueError, match="init_model is a RankingCRF"):
        resumed(LinearCRF(), {"X": X, "y": y}, ranker, interrupt)
