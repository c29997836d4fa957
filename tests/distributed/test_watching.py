"""What workers that train together watch: one eval_set, whose parts they have, and callbacks."""

import numpy as np
import pytest
from parts import fitted, fitted_together, part_of
from sklearn.base import clone

from crfx import GBCRF, Checkpoint, LinearCRF, load
from crfx.distributed.collective import together
from crfx.testing import make_task

SAME = 1e-5
"""Sums are taken in another order, of scores in single precision."""

X, Y = make_task(n_instances=24)
X = [x.round() for x in X]
X_DEV, Y_DEV = make_task(seed=1, n_instances=14)
WATCHED = {"X": X, "y": Y, "eval_set": (X_DEV, Y_DEV)}


def longest_right(true, predicted):
    """A metric of whole instances, in their order."""
    right = [float((one == other).all()) for one, other in zip(true, predicted, strict=True)]
    return float(np.dot(right, np.arange(1, len(right) + 1)))


TREES, LINEAR = GBCRF(4, max_depth=2, n_jobs=1), LinearCRF(max_iter=4, n_jobs=1)


@pytest.mark.parametrize(
    ("crf", "metric"),
    [
        (TREES, "token_accuracy"),
        (TREES, longest_right),
        (TREES, "loss"),
        (LINEAR, "span_f1"),
        (LINEAR, "loss"),
    ],
)
def test_metrics_cover_all_parts(crf, metric):
    crf = clone(crf).set_params(eval_metric=metric)
    spans = {"L0": "O", "L1": "B-X", "L2": "I-X"}
    y, y_dev = ([[spans[label] for label in tags] for tags in labels] for labels in (Y, Y_DEV))
    data = {"X": X, "y": y, "eval_set": (X_DEV, y_dev)}
    alone, models = fitted(crf, data), fitted_together(3, crf, data)
    for model in models:
        values, expected = model.history_["eval_metric"], alone.history_["eval_metric"]
        assert values == models[0].history_["eval_metric"]
        if metric == "loss":
            np.testing.assert_allclose(values, expected, rtol=SAME)
        else:
            assert values == expected


@pytest.mark.parametrize("nothing", [None, ([], [])], ids=["None", "empty"])
def test_one_worker_may_have_the_whole_eval_set(nothing):
    crf = GBCRF(30, max_depth=2, early_stopping_rounds=2, eval_metric="token_accuracy", n_jobs=1)
    data = {"X": X, "y": Y, "parents": [np.arange(len(x)) - 1 for x in X]}
    watched = {
        "X": X_DEV,
        "y": Y_DEV,
        "parents": [np.arange(len(instance)) - 1 for instance in X_DEV],
    }
    alone = fitted(crf, data, eval_set=watched)
    assert alone.best_iteration_ < 25  # it stops early

    def work(workers):
        eval_set = watched if workers.rank == 1 else nothing
        return clone(crf).fit(**part_of(workers, data), eval_set=eval_set)

    for model in together(2, work):
        assert model.best_iteration_ == alone.best_iteration_
        assert model.history_["eval_metric"] == alone.history_["eval_metric"]


def test_eval_set_is_judged_over_all_parts():
    crf = LinearCRF(max_iter=1, n_jobs=1)
    unknown = [[None] * len(tags) for tags in Y_DEV]
    strange = [*unknown[:7], *[["new"] * len(tags) for tags in Y_DEV[7:]]]
    for labels, message in [
        (unknown, "eval_set has no position whose label is known"),
        (strange, "eval_set has no label that the model knows, but 'new' for one"),
        ([*Y_DEV[:13], Y_DEV[13][1:]], "eval_set: instance 13"),
    ]:
        with pytest.raises(ValueError, match=message):
            fitted_together(2, crf, {"X": X, "y": Y, "eval_set": (X_DEV, labels)})
    partly = [*strange[:13], Y_DEV[13]]
    n_new = sum(map(len, Y_DEV[7:13]))
    with pytest.warns(UserWarning, match=rf"not trained on, so often: 'new' \({n_new}\)") as warned:
        fitted_together(3, crf, {"X": X, "y": Y, "eval_set": (X_DEV, partly)})
    assert sum("not trained on" in str(each.message) for each in warned) == 1


def test_metric_error_is_raised_by_all_workers():
    def work(workers):
        crf = LinearCRF(eval_metric=lambda true, predicted: "good", max_iter=1, n_jobs=1)
        with pytest.raises(ValueError, match="eval_metric gave 'good'"):
            crf.fit(**part_of(workers, WATCHED))

    together(2, work)


@pytest.mark.parametrize(
    "crf", [GBCRF(6, max_depth=2, n_jobs=1), LinearCRF(n_jobs=1)], ids=["trees", "linear"]
)
def test_callbacks_run_on_first_worker_and_stop_all(crf, tmp_path):
    seen = []

    def stop(progress):
        seen.append(progress.n_rounds)
        return progress.n_rounds == 3

    callbacks = [stop, Checkpoint(tmp_path / "model.crfx", every=2)]
    models = fitted_together(2, crf, {"X": X, "y": Y}, callbacks=callbacks)
    assert seen == [1, 2, 3]
    assert [len(model.history_["objective"]) for model in models] == [3, 3]
    assert len(load(tmp_path / "model.crfx").history_["objective"]) == 2


def test_first_worker_shows_progress_and_warns(capsys):
    with pytest.warns(match="L-BFGS stopped at max_iter=2") as warned:
        fitted_together(2, LinearCRF(max_iter=2, verbose=1, n_jobs=1), {"X": X, "y": Y})
    assert len(warned) == 1
    assert capsys.readouterr().err.count("2/2: objective") == 1
