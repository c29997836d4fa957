"""Labels added to a fitted model: old scores stay, the new label is learned, files keep it all."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.tree import DecisionTreeRegressor

from crfx import GBCRF, HiddenUnitCRF, LinearCRF, TreeCRF, load
from crfx.batch import Batch
from crfx.estimators.labelling import with_classes
from crfx.testing import make_task

X, Y = make_task(n_instances=40)
NEW = "L1x"
MORE = [
    [NEW if label == "L1" and t % 2 else label for t, label in enumerate(labels)] for labels in Y
]
"""Some of L1 are called L1x: the new label lands between old ones, not behind them."""
AWAY = np.array([6.0, -6.0, 0.0, 0.0])
X_MORE = [
    (x + np.array([[label == NEW] for label in labels]) * AWAY).astype(np.float32)
    for x, labels in zip(X, MORE, strict=True)
]
SPARSE = [sparse.csr_matrix(np.where(np.abs(x) < 0.8, 0, x)) for x in X_MORE]
SEED = {"random_state": 0, "n_jobs": 1}
HIDDEN = {"n_hidden": 5, "dropout": 0.0, "step": 0.1, "sweeps": 30, **SEED}
SAME = {"rtol": 1e-6, "atol": 1e-6}
"""To the bit but for sparse weights, which are added in another order."""
OLD = [0, 1, 3]
"""Codes of the old labels among the new."""
TYPES = {"edge_types": [np.arange(len(x)) % 2 for x in X]}
PARENTS = {"parents": [np.maximum(np.arange(len(x)) - 2, -1) for x in X]}

ESTIMATORS = {
    "table": (GBCRF(6, max_depth=3, **SEED), {}),
    "order 2": (GBCRF(6, max_depth=3, order=2, **SEED), {}),
    "types": (GBCRF(6, max_depth=3, **SEED), TYPES),
    "forest": (GBCRF(6, max_depth=3, **SEED), PARENTS),
    "linear edges": (GBCRF(6, max_depth=3, edges="linear", **SEED), TYPES),
    "tree edges": (GBCRF(6, max_depth=2, edges="trees", **SEED), {}),
    "no edges": (GBCRF(6, max_depth=3, edges=None, **SEED), {}),
    "regressors": (GBCRF(6, base_learner=DecisionTreeRegressor(max_depth=3), **SEED), {}),
    "context": (TreeCRF(6, max_leaves=6, **SEED), {}),
    "context, order 2": (TreeCRF(6, max_leaves=6, order=2, window=3, **SEED), {}),
    "context, forest": (TreeCRF(6, max_leaves=6, **SEED), PARENTS),
    "linear": (LinearCRF(**SEED), {}),
    "linear, types": (LinearCRF(**SEED), TYPES),
    "linear, edges": (LinearCRF(edges="linear", **SEED), TYPES),
    "linear, SGD": (LinearCRF("sgd", **SEED), {}),
    "linear, perceptron": (LinearCRF("perceptron", **SEED), {}),
    "hidden": (HiddenUnitCRF(**HIDDEN), {}),
    "hidden, skip": (HiddenUnitCRF(skip=True, order=2, **HIDDEN), {}),
    "hidden, L-BFGS": (HiddenUnitCRF(**{**HIDDEN, "trainer": "lbfgs", "l2": 0.1}), {}),
    "hidden, perceptron": (HiddenUnitCRF(trainer="perceptron", **HIDDEN), {}),
}


def scores(crf, X, structure, n_rounds=None):
    """All scores as (name, array, number of label axes)."""
    data = crf._input(X, None, structure.get("parents"), structure.get("edge_types"), None)
    problem = crf.model_.problem(data.batch, n_rounds)
    every = problem.scores
    axes = {"node": 1, "edge": crf.model_.order + 1, "start": 1, "end": 1}
    return {name: (getattr(every, name), n) for name, n in axes.items()}


def check_same_among_old(new, old, X, structure, n_rounds=None):
    before, after = (scores(crf, X, structure, n_rounds) for crf in (old, new))
    for name, (expected, n_axes) in before.items():
        scores_after = after[name][0]
        if expected is None:
            assert scores_after is None
            continue
        np.testing.assert_allclose(scores_after[(..., *np.ix_(*[OLD] * n_axes))], expected, **SAME)


@pytest.fixture(params=ESTIMATORS, scope="module")
def case(request):
    crf, structure = ESTIMATORS[request.param]
    data = SPARSE if request.param in ("linear", "linear, SGD") else X_MORE
    return crf, structure, data, clone(crf).fit(data, Y, **structure)


def test_new_labels_keep_scores_of_old_labels(case):
    _, structure, data, old = case
    new = with_classes(old, [NEW])
    assert new.classes_.tolist() == ["L0", "L1", "L1x", "L2"]
    check_same_among_old(new, old, data, structure)
    assert old.classes_.tolist() == ["L0", "L1", "L2"]
    if hasattr(old, "n_rounds_"):
        for n in (0, 2):
            check_same_among_old(new, old, data, structure, n)


def test_new_label_is_learned_without_changing_old_model(case):
    crf, structure, data, old = case
    before = old.predict(data, **structure)
    with pytest.raises(ValueError, match="'L1x', which was not seen in training before; if"):
        clone(crf).fit(data, MORE, **structure, init_model=old)
    more = clone(crf).fit(data, MORE, **structure, init_model=old, classes=[NEW])
    assert more.classes_.tolist() == ["L0", "L1", "L1x", "L2"]
    truth = np.concatenate(MORE)
    predicted = np.concatenate(more.predict(data, **structure))
    assert np.mean(predicted[truth == NEW] == NEW) > 0.8
    assert more.score(data, MORE, **structure) > 0.8
    assert more.model_.base is None
    if hasattr(more, "n_rounds_"):
        assert more.n_rounds_ == 2 * old.n_rounds_
    for one, other in zip(before, old.predict(data, **structure), strict=True):
        assert one.tolist() == other.tolist()


SAVED = [
    "types",
    "forest",
    "linear edges",
    "tree edges",
    "no edges",
    "context, order 2",
    "linear, types",
    "linear, SGD",
    "hidden, skip",
]
"""Every family of functions once, every structure, and an averaged model."""


@pytest.mark.parametrize("case", SAVED, indirect=True)
def test_save_keeps_new_labels_for_warm_start(case, tmp_path):
    crf, structure, data, old = case
    more = clone(crf).fit(data, MORE, **structure, init_model=old, classes=[NEW])
    more.save(tmp_path / "m.crfx")
    same = load(tmp_path / "m.crfx")
    both = [np.concatenate(model.predict_marginals(data, **structure)) for model in (more, same)]
    np.testing.assert_array_equal(*both)
    further = [clone(crf).fit(data, MORE, **structure, init_model=model) for model in (more, same)]
    marginals = [np.concatenate(model.predict_marginals(data, **structure)) for model in further]
    np.testing.assert_array_equal(*marginals)


@pytest.mark.parametrize(
    ("above", "below"),
    [
        (LinearCRF(max_iter=5), "table"),
        (GBCRF(3, **SEED), "context"),
        (TreeCRF(3, **SEED), "linear"),
        (GBCRF(3, **SEED), "hidden"),
    ],
    ids=str,
)
def test_base_models_get_new_labels(above, below):
    """The base models are of another kind, and in two layers."""
    crf, structure = ESTIMATORS[below]
    middle = LinearCRF(edges=None, max_iter=3).fit(X_MORE, Y, init_model=clone(crf).fit(X_MORE, Y))
    new = clone(above).fit(X_MORE, MORE, init_model=middle, classes=[NEW])
    assert new.model_.base.n_labels == 4
    check_same_among_old(with_classes(middle, [NEW]), middle, X_MORE, structure)
    assert middle.model_.n_labels == 3


def test_one_label_becomes_three():
    """XGBoost tells one output in another way than many."""
    ones = [["L1"] * len(labels) for labels in Y]
    for crf in (GBCRF(4, **SEED), TreeCRF(4, **SEED), LinearCRF(max_iter=20)):
        old = clone(crf).fit(X, ones)
        more = clone(crf).fit(X, Y, init_model=old, classes=["L0", "L2"])
        assert more.score(X, Y) > 0.8


def test_new_labels_beyond_one_machine_word():
    """Sets of labels are told by the bit; 64 to a word."""
    old = TreeCRF(3, max_leaves=6, **SEED).fit(X, Y)
    new = with_classes(old, [f"A{k:03}" for k in range(130)])
    batch = Batch.from_lengths([len(x) for x in X], X=np.concatenate(X))
    one, other = (model.model_.problem(batch).scores.edge for model in (new, old))
    np.testing.assert_array_equal(one[:, 130:, 130:], other)
    before = one[:, :130, 130:]  # a new label before is as none
    np.testing.assert_array_equal(before, np.broadcast_to(before[:, :1], before.shape))
    assert not one[:, :, :130].any()


def test_labels_may_be_named_from_the_start():
    for crf in (GBCRF(2), TreeCRF(2), LinearCRF(max_iter=3), HiddenUnitCRF(2, sweeps=2)):
        assert crf.fit(X, Y, classes=["L9"]).classes_.tolist() == ["L0", "L1", "L2", "L9"]
        again = clone(crf).fit(X, Y, init_model=crf, classes=["L0"])  # known already
        assert again.classes_.tolist() == ["L0", "L1", "L2", "L9"]


def test_fit_rejects_invalid_classes(not_refused):
    cases = {
        "text": ("L9", "classes is 'L9': pass a list of labels"),
        "number": (9, "classes is 9: pass a list of labels"),
        "None": (["L9", None], "classes hold an unknown label"),
        "of another kind": ([9], "labels that cannot be compared"),
    }

    def fit(start):
        return lambda classes: LinearCRF(max_iter=3).fit(X, Y, init_model=start, classes=classes)

    for start in (None, LinearCRF(max_iter=3).fit(X, Y)):
        assert not_refused(fit(start), cases) == {}


def test_votes_are_kept():
    settings = {"trainer": "perceptron", "herding": True, "burn_in": 0, **HIDDEN, "sweeps": 4}
    old = HiddenUnitCRF(**settings).fit(X_MORE, Y)
    new = with_classes(old, [NEW])
    assert len(new.votes_) == 4
    marginals, expected = (np.concatenate(model.predict_marginals(X_MORE)) for model in (new, old))
    assert marginals.shape[1] == 4
    more = HiddenUnitCRF(**settings).fit(X_MORE, MORE, init_model=old, classes=[NEW])
    assert len(more.votes_) == 8
    assert expected.shape[1] == 3


def test_class_weights_may_name_a_new_label():
    old = LinearCRF(max_iter=30).fit(X_MORE, Y)
    more = LinearCRF(max_iter=30, class_weight={NEW: 5.0})
    more.fit(X_MORE, MORE, init_model=old, classes=[NEW])
    assert more.score(X_MORE, MORE) > 0.7


SPANS = [[("B-PER", "I-PER", "O")[t % 3] for t in range(len(x))] for x in X]
"""Two positions a span, and one between; at the end some have one position."""


@pytest.mark.parametrize("name", [name for name in SAVED if name != "forest"])
def test_classes_are_completed_by_label_scheme(name):
    """The model, its mask and the labels are of the same size, whichever labels are named."""
    crf, structure = ESTIMATORS[name]
    old = clone(crf).set_params(constraints="bio").fit(X_MORE, SPANS, **structure)
    places = [[label.replace("PER", "LOC") for label in tags] for tags in SPANS]
    y = [places[k] if k % 2 else tags for k, tags in enumerate(SPANS)]
    cases = {
        "bio": (y, ["I-LOC"], {"B-LOC", "I-LOC", "B-PER", "I-PER", "O"}),
        "bioes": (SPANS, ["S-PER"], {"B-PER", "I-PER", "E-PER", "S-PER", "O"}),
    }
    for scheme, (labels, named, wanted) in cases.items():
        new = clone(crf).set_params(constraints=scheme)
        new.fit(X_MORE, labels, **structure, init_model=old, classes=named)
        assert set(new.classes_.tolist()) == wanted
        assert new.model_.mask.pair.shape == (5, 5)
        assert np.isfinite(new.log_likelihood(X_MORE, labels, **structure)).all()
    assert old.model_.n_labels == 3
