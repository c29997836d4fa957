"""TreeCRF trained further: as one run, from memory, pickle and file; and models underneath."""

import pickle

import numpy as np
import pytest
from scipy import sparse

from crfx import GBCRF, Checkpoint, LinearCRF, TreeCRF, load
from crfx.testing import make_task

X, Y = make_task()
X_DEV, Y_DEV = make_task(1, 12)
ONE = {"random_state": 0, "n_jobs": 1}
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


def test_steps_are_halved_where_they_are_far_too_long():
    crf = TreeCRF(10, curvature=0.05, min_child_weight=0.0, random_state=0, n_jobs=1).fit(X, Y)
    assert sum(crf.history_["halvings"]) > 10
    np.testing.assert_allclose(
        crf.history_["objective"][-1], -crf.log_likelihood(X, Y).sum(), rtol=1e-4
    )


@pytest.mark.parametrize("kept", [from_memory, from_pickle, from_file])
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
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


def test_forests_and_unknown_labels_go_on():
    parents = [np.arange(len(x)) - 1 for x in X]
    hidden = [[None if t % 3 == 1 else label for t, label in enumerate(y)] for y in Y]
    whole = TreeCRF(7, **ONE).fit(X, hidden, parents=parents)
    first = TreeCRF(2, **ONE).fit(X, hidden, parents=parents)
    second = TreeCRF(5, **ONE).fit(X, hidden, parents=parents, init_model=first)
    np.testing.assert_array_equal(
        marginals(second, parents=parents), marginals(whole, parents=parents)
    )


def test_other_arguments_make_another_run():
    """The companion: the runs compared above do differ where they should."""
    whole = TreeCRF(10, **ONE).fit(X, Y)
    first = TreeCRF(6, **ONE).fit(X, Y)
    second = TreeCRF(4, max_leaves=3, **ONE).fit(X, Y, init_model=first)
    assert second.n_rounds_ == 10
    assert not np.array_equal(marginals(second), marginals(whole))


def test_an_interrupted_run_resumes_exactly(tmp_path):
    settings = {**ONE, "subsample": 0.7, "pseudo_likelihood_rounds": 6}
    path = tmp_path / "checkpoint.crfx"

    def interrupt(progress):
        if progress.n_rounds == 5:
            raise KeyboardInterrupt

    crf = TreeCRF(9, **settings)
    with pytest.raises(KeyboardInterrupt):
        crf.fit(X, Y, callbacks=[Checkpoint(path, every=2), interrupt])
    assert crf.n_rounds_ == 5
    whole = TreeCRF(9, **settings).fit(X, Y)
    for old in (load(path), crf):
        resumed = TreeCRF(9 - old.n_rounds_, **settings).fit(X, Y, init_model=old)
        np.testing.assert_array_equal(marginals(resumed), marginals(whole))
    pickle.dumps(crf)


def test_early_stopping_goes_on_where_it_was():
    settings = {**ONE, "learning_rate": 0.5, "max_leaves": 6, "early_stopping_rounds": 6}
    watched = {"eval_set": (X_DEV, Y_DEV)}
    whole = TreeCRF(60, **settings).fit(X, Y, **watched)
    n_trained = len(whole.history_["objective"])
    assert whole.n_rounds_ < n_trained < 60
    cut = whole.n_rounds_ - 1
    first = TreeCRF(cut, **settings).fit(X, Y, **watched)
    assert first.n_rounds_ == cut
    resumed = TreeCRF(60 - cut, **settings).fit(X, Y, **watched, init_model=first)
    assert resumed.n_rounds_ == whole.n_rounds_
    np.testing.assert_array_equal(marginals(resumed), marginals(whole))
    assert len(resumed.history_["objective"]) == n_trained


BASES = [
    GBCRF(3, **ONE),
    GBCRF(3, edges=None, **ONE),
    GBCRF(3, edges="trees", **ONE),
    LinearCRF(max_iter=10),
    TreeCRF(3, window=3, **ONE),
    TreeCRF(3, start_end=False, **ONE),
]


@pytest.mark.parametrize(
    "base", BASES, ids=lambda base: f"{type(base).__name__} {base.get_params()}"[:60]
)
def test_a_model_of_another_kind_stays_underneath(base, tmp_path):
    base.fit(X, Y)
    zero = TreeCRF(0, **ONE).fit(X, Y, init_model=base)
    np.testing.assert_allclose(marginals(zero), marginals(base), rtol=0, atol=ROUNDING)
    crf = TreeCRF(4, pseudo_likelihood_rounds=1, **ONE).fit(X, Y, init_model=base)
    assert crf.n_rounds_ == 4
    assert crf.log_likelihood(X, Y).sum() > base.log_likelihood(X, Y).sum()
    np.testing.assert_allclose(
        crf.history_["objective"][-1], -crf.log_likelihood(X, Y).sum(), rtol=1e-4
    )
    crf.save(tmp_path / "m.crfx")
    again = load(tmp_path / "m.crfx")
    np.testing.assert_array_equal(marginals(again), marginals(crf))
    more = TreeCRF(2, **ONE).fit(X, Y, init_model=again)
    assert more.n_rounds_ == 6
    assert more.model_.base is not None


@pytest.mark.parametrize("edges", ["table", "linear", "trees", None])
def test_it_lies_under_others(edges, tmp_path):
    base = TreeCRF(3, window=3, **ONE).fit(X, Y)
    crf = GBCRF(3, edges=edges, **ONE).fit(X, Y, init_model=base)
    assert crf.log_likelihood(X, Y).sum() > base.log_likelihood(X, Y).sum()
    crf.save(tmp_path / "m.crfx")
    np.testing.assert_array_equal(marginals(load(tmp_path / "m.crfx")), marginals(crf))


def test_what_cannot_go_on():
    old = TreeCRF(2, **ONE).fit(X, Y)
    with pytest.raises(ValueError, match="order 1, which cannot be added"):
        TreeCRF(1, order=2, **ONE).fit(X, Y, init_model=old)
    with pytest.raises(ValueError, match="trained on chains"):
        TreeCRF(1, **ONE).fit(X, Y, parents=[np.arange(len(x)) - 1 for x in X], init_model=old)
    with pytest.raises(ValueError, match="X has 3 features, but crfx is expecting 4"):
        TreeCRF(1, **ONE).fit([x[:, :3] for x in X], Y, init_model=old)
    with pytest.raises(ValueError, match="'new', which was not seen"):
        TreeCRF(1, **ONE).fit(X, [["new"] * len(y) for y in Y], init_model=old)
    wide = TreeCRF(2, window=3, **ONE).fit(X, Y)
    with pytest.raises(ValueError, match="use one kind"):
        TreeCRF(1, window=3, **ONE).fit([sparse.csr_matrix(x) for x in X], Y, init_model=wide)
