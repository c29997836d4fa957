"""GBCRF and TreeCRF trained further: as one run, from memory, pickle and file; bases."""

import pickle

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor

from crfx import GBCRF, Checkpoint, LinearCRF, TreeCRF, load
from crfx.testing import make_task
from tests.pairwise import pairwise

X, Y = make_task()
X_DEV, Y_DEV = make_task(1, 12)
ONE = {"random_state": 0, "n_jobs": 1}
TYPES = [np.arange(len(x)) % 2 for x in X]
PARENTS = [np.arange(len(x)) - 1 for x in X]
ROUNDING = 1e-5
"""Of marginals; scores that are summed in another order."""


def marginals(crf, **structure):
    return np.concatenate(crf.predict_marginals(X, **structure))


def from_memory(crf, path):
    return crf


def from_pickle(crf, path):
    return pickle.loads(pickle.dumps(crf))


def from_file(crf, path):
    crf.save(path)
    return path


SETTINGS = [
    {},
    {"pseudo_likelihood_rounds": 8},
    {"pseudo_likelihood_rounds": 6},
    {"pseudo_likelihood_rounds": 0, "learning_rate": 0.3},
    {"pseudo_likelihood_rounds": 20, "subsample": 0.6},
    {"subsample": 0.6, "influence_trimming": 0.1, "learning_rate": 0.7},
    {"curvature": "mixing", "window": 3, "pseudo_likelihood_rounds": 7, "learning_rate": 0.3},
    {"order": 2, "start_end": False, "window": (1, 0)},
    {"colsample_bynode": 0.4, "subsample": 0.6},
    {"curvature": 0.05, "min_child_weight": 0.0},  # far too long steps, which are halved
]
KEPT = [from_memory, from_pickle, from_file]
CONTINUED = [(settings, KEPT[number % 3]) for number, settings in enumerate(SETTINGS)]


@pytest.mark.parametrize(("settings", "kept"), CONTINUED)
def test_continued_training_equals_one_longer_run(settings, kept, tmp_path):
    whole = TreeCRF(10, **ONE, **settings).fit(X, Y)
    first = TreeCRF(6, **ONE, **settings).fit(X, Y)
    before = marginals(first)
    old = kept(first, tmp_path / "m.crfx")
    second = TreeCRF(4, **ONE, **settings).fit(X, Y, init_model=old)
    np.testing.assert_array_equal(marginals(second), marginals(whole))
    assert second.history_["objective"] == whole.history_["objective"]
    assert second.history_["halvings"] == whole.history_["halvings"]
    assert (second.n_rounds_, first.n_rounds_) == (10, 6)
    assert second.model_.base is None
    np.testing.assert_array_equal(marginals(first), before)


def test_too_long_steps_are_halved():
    crf = TreeCRF(10, curvature=0.05, min_child_weight=0.0, random_state=0, n_jobs=1).fit(X, Y)
    assert sum(crf.history_["halvings"]) > 10
    np.testing.assert_allclose(
        crf.history_["objective"][-1], -crf.log_likelihood(X, Y).sum(), rtol=1e-4
    )


def test_warm_start_with_forests_and_unknown_labels():
    hidden = [[None if t % 3 == 1 else label for t, label in enumerate(y)] for y in Y]
    whole = TreeCRF(7, **ONE).fit(X, hidden, parents=PARENTS)
    first = TreeCRF(2, **ONE).fit(X, hidden, parents=PARENTS)
    second = TreeCRF(5, **ONE).fit(X, hidden, parents=PARENTS, init_model=first)
    np.testing.assert_array_equal(
        marginals(second, parents=PARENTS), marginals(whole, parents=PARENTS)
    )


def test_warm_start_with_other_arguments_differs():
    """The companion: the runs compared above do differ where they should."""
    whole = TreeCRF(10, **ONE).fit(X, Y)
    first = TreeCRF(6, **ONE).fit(X, Y)
    second = TreeCRF(4, max_leaves=3, **ONE).fit(X, Y, init_model=first)
    assert second.n_rounds_ == 10
    assert not np.array_equal(marginals(second), marginals(whole))


def test_warm_start_after_halvings_is_exact():
    """A step that is halved starts from where it began, not from where it went wrong."""
    settings = {**ONE, "learning_rate": 1.0, "curvature": 0.3, "max_depth": 3}
    whole = GBCRF(12, **settings).fit(X, Y)
    assert sum(whole.history_["halvings"][:6]) > 0
    first = GBCRF(6, **settings).fit(X, Y)
    second = GBCRF(6, **settings).fit(X, Y, init_model=first)
    np.testing.assert_array_equal(marginals(second), marginals(whole))
    assert second.history_["objective"] == whole.history_["objective"]


def test_warm_start_of_regressors():
    settings = {**ONE, "base_learner": DecisionTreeRegressor(max_depth=2)}
    old = GBCRF(2, **settings).fit(X, Y)
    more = GBCRF(3, **settings).fit(X, Y, init_model=old)
    whole = GBCRF(5, **settings).fit(X, Y)
    assert (more.n_rounds_, old.n_rounds_) == (5, 2)
    np.testing.assert_allclose(marginals(more), marginals(whole), atol=1e-6)


def test_arguments_may_change_in_a_warm_start():
    """Rounds are added to the model itself; "auto" is "mixing"."""
    old = GBCRF(2, **ONE).fit(X, Y)
    for change in ({"curvature": "mixing"}, {"edge_l2": 0.5}, {"max_depth": 2}):
        more = GBCRF(3, **ONE, **change).fit(X, Y, init_model=old)
        assert more.n_rounds_ == 5
        assert more.model_.base is None


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        (GBCRF, {"eval_metric": "loss"}),
        (GBCRF, {"eval_metric": "token_accuracy"}),
        (TreeCRF, {"max_leaves": 6}),
    ],
    ids=str,
)
def test_warm_start_resumes_early_stopping(tmp_path, kind, arguments):
    settings = {**ONE, "learning_rate": 0.5, "early_stopping_rounds": 6, **arguments}
    watched = {"eval_set": (X_DEV, Y_DEV)}
    whole = kind(60, **settings).fit(X, Y, **watched)
    n_trained = len(whole.history_["objective"])
    assert whole.n_rounds_ < n_trained < 60
    for cut in (whole.n_rounds_ - 1, whole.n_rounds_ + 2):
        path = tmp_path / f"{cut}.crfx"

        def interrupt(progress, cut=cut):
            if progress.n_rounds == cut:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            kind(60, **settings).fit(
                X, Y, **watched, callbacks=[Checkpoint(path, every=cut), interrupt]
            )
        resumed = kind(60 - cut, **settings).fit(X, Y, **watched, init_model=load(path))
        assert resumed.n_rounds_ == whole.n_rounds_
        np.testing.assert_array_equal(marginals(resumed), marginals(whole))
        assert len(resumed.history_["objective"]) == n_trained


def test_warm_start_keeps_earlier_best_round():
    old = GBCRF(5, **ONE).fit(X, Y)
    nothing = GBCRF(0, early_stopping_rounds=3, **ONE)
    nothing.fit(X, Y, init_model=old, eval_set=(X_DEV, Y_DEV))
    assert nothing.n_rounds_ == 5
    # Overfitted already: what comes is worse than the start, which is restored.
    far = GBCRF(80, learning_rate=1.0, **ONE).fit(X, Y)
    more = GBCRF(20, learning_rate=1.0, early_stopping_rounds=3, **ONE)
    more.fit(X, Y, init_model=far, eval_set=(X_DEV, Y_DEV))
    start = -far.log_likelihood(X_DEV, Y_DEV).sum()
    assert -more.log_likelihood(X_DEV, Y_DEV).sum() <= start * (1 + 1e-6)


def test_history_has_one_entry_per_round():
    """NaN where nothing was measured."""
    old = GBCRF(4, **ONE).fit(X, Y, eval_set=(X_DEV, Y_DEV))
    more = GBCRF(2, **ONE).fit(X, Y, init_model=old)
    assert {len(entries) for entries in more.history_.values()} == {more.n_rounds_}
    assert np.isnan(more.history_["eval_metric"][-2:]).all()
    assert (np.diff(more.history_["objective"]) <= 0).all()


def test_failing_metric_leaves_whole_rounds():
    def metric(true, predicted):
        if len(crf.history_.get("objective", ())) == 2:
            raise RuntimeError
        return 0.5

    crf = GBCRF(9, eval_metric=metric, **ONE)
    with pytest.raises(RuntimeError):
        crf.fit(X, Y, eval_set=(X_DEV, Y_DEV))
    assert crf.n_rounds_ == 2
    assert {len(entries) for entries in crf.history_.values()} == {2}


def test_warm_start_ignores_metric_of_another_eval_set():
    """The old set was easy: against its losses no round on the new one would be the best."""
    settings = {**ONE, "learning_rate": 0.5, "early_stopping_rounds": 3}
    easy = [x for x, y in zip(X, Y, strict=True) if set(y) == {"L2"}]
    old = GBCRF(4, **settings).fit(X, Y, eval_set=(easy, [["L2"] * len(x) for x in easy]))
    assert old.n_rounds_ == 4
    more = GBCRF(6, **settings).fit(X, Y, init_model=old, eval_set=(X_DEV, Y_DEV))
    alone = GBCRF(10, **settings).fit(X, Y, eval_set=(X_DEV, Y_DEV))
    assert old.history_["eval_metric"][-1] < min(more.history_["eval_metric"][4:])
    assert more.n_rounds_ == alone.n_rounds_ > 4
    assert np.isnan(more.history_["eval_metric"][:4]).all()
    assert not np.isnan(old.history_["eval_metric"]).any()


def test_warm_start_drops_history_of_unsaved_metric(tmp_path):
    """Else its scores, better when larger, were read as losses."""

    def metric(true, predicted):
        return 0.001

    settings = {**ONE, "early_stopping_rounds": 4}
    old = GBCRF(3, eval_metric=metric, **ONE).fit(X, Y, eval_set=(X_DEV, Y_DEV))
    old.save(tmp_path / "m.crfx")
    again = load(tmp_path / "m.crfx")
    assert set(again.history_) == set(old.history_) - {"eval_metric"}
    assert "eval_metric" in old.history_
    more = GBCRF(5, **settings).fit(X, Y, init_model=again, eval_set=(X_DEV, Y_DEV))
    assert more.n_rounds_ == 8


def test_load_restores_tree_parameters(tmp_path):
    """JSON has no tuples, and XGBoost takes no lists."""
    settings = {**ONE, "tree_params": {"monotone_constraints": (1, 0, 0, -1)}}
    GBCRF(2, **settings).fit(X, Y).save(tmp_path / "m.crfx")
    again = load(tmp_path / "m.crfx")
    whole = marginals(GBCRF(4, **settings).fit(X, Y))
    arguments = again.get_params()
    more = GBCRF(**{**arguments, "n_estimators": 2}).fit(X, Y, init_model=again)
    np.testing.assert_array_equal(marginals(more), whole)


# Models underneath.


def test_warm_start_depends_on_fitted_model_not_arguments():
    """Arguments that were changed after fitting do not count."""
    for fitted, asked, goes_on in [
        ({}, {"edges": None}, False),
        ({"edges": "linear"}, {"edges": "table"}, False),
        ({}, {"start_end": False}, False),
        ({"edges": None}, {"edges": None, "start_end": False}, True),
    ]:
        old = GBCRF(2, **ONE, **fitted).fit(X, Y).set_params(**asked)
        more = GBCRF(2, **{**ONE, **fitted, **asked}).fit(X, Y, init_model=old)
        assert (more.model_.base is None) == goes_on, asked
        assert more.n_rounds_ == (4 if goes_on else 2)


STACKED = [
    (GBCRF, GBCRF(3, edges=None, **ONE)),
    (GBCRF, TreeCRF(3, window=3, **ONE)),
    (TreeCRF, GBCRF(3, edges="trees", **ONE)),
    (TreeCRF, LinearCRF(max_iter=10)),
    (TreeCRF, TreeCRF(3, window=3, **ONE)),
    (TreeCRF, TreeCRF(3, start_end=False, **ONE)),
]


@pytest.mark.parametrize(("kind", "base"), STACKED, ids=str)
def test_warm_start_keeps_model_of_another_kind_as_base(kind, base, tmp_path):
    base.fit(X, Y)
    zero = kind(0, **ONE).fit(X, Y, init_model=base)
    np.testing.assert_allclose(marginals(zero), marginals(base), rtol=0, atol=ROUNDING)
    crf = kind(4, **ONE).fit(X, Y, init_model=base)
    assert crf.n_rounds_ == 4
    assert crf.log_likelihood(X, Y).sum() > base.log_likelihood(X, Y).sum()
    crf.save(tmp_path / "m.crfx")
    again = load(tmp_path / "m.crfx")
    np.testing.assert_array_equal(marginals(again), marginals(crf))
    more = kind(2, **ONE).fit(X, Y, init_model=again)
    assert more.n_rounds_ == 6
    assert more.model_.base is not None
    whole = kind(6, **ONE).fit(X, Y, init_model=base)
    np.testing.assert_allclose(marginals(more), marginals(whole), rtol=0, atol=ROUNDING)


STRUCTURES = {
    "types before": ({"edge_types": TYPES}, {}, "edge_types exactly"),
    "types after": ({}, {"edge_types": TYPES}, "edge_types exactly"),
    "a new type": (
        {"edge_types": TYPES},
        {"edge_types": [t + 1 for t in TYPES]},
        "not seen in training",
    ),
    "parents after": ({}, {"parents": PARENTS}, "trained on chains"),
    "parents before": ({"parents": PARENTS}, {}, "trained on forests"),
}
FURTHER = pairwise(list(STRUCTURES), ["table", "linear", "trees"], [False, True])


def test_a_warm_start_rejects_another_structure(not_refused):
    """Trained further, or as a base under a model without edges."""

    def train_both(what):
        structure, edges, underneath = what
        first, second, _ = STRUCTURES[structure]
        old = GBCRF(2, edges=edges, **ONE).fit(X, Y, **first)
        above = GBCRF(1, edges=None if underneath else edges, **ONE)
        return above.fit(X, Y, **second, init_model=old)

    cases = {str(what): (what, STRUCTURES[what[0]][-1]) for what in FURTHER}
    assert not_refused(train_both, cases) == {}


@pytest.mark.parametrize(("low", "high"), [(1, 2), (2, 1)])
def test_a_warm_start_rejects_edges_of_another_order(low, high):
    old = GBCRF(2, order=low, **ONE).fit(X, Y)
    for kind in (GBCRF, TreeCRF):
        with pytest.raises(ValueError, match=f"order {low}, which cannot be added"):
            kind(1, order=high, **ONE).fit(X, Y, init_model=old)
    alone = GBCRF(2, edges=None, order=low, **ONE).fit(X, Y)
    stacked = GBCRF(1, order=high, **ONE).fit(X, Y, init_model=alone)
    assert stacked.score(X, Y) > 0.5
