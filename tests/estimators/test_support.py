"""The table of what is supported: what it promises works, what it denies raises."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.tree import DecisionTreeRegressor

import crfx
from crfx.distributed.collective import together
from crfx.estimators.resuming import resumed
from crfx.estimators.support import ESTIMATORS, EXPERIMENTAL, REGRESSOR, SUPPORT, Limited
from crfx.io.shards import Shards
from crfx.potentials.xgboost_learner import REMEDY

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore:.*max_iter")
RANDOM = np.random.default_rng(0)
LENGTHS = RANDOM.integers(2, 6, 24)
Y = [RANDOM.integers(2, size=n) for n in LENGTHS]
X = [(np.eye(3)[own] + 0.1 * RANDOM.normal(size=(len(own), 3))).astype(np.float32) for own in Y]
TAGS = [[f"{'BI'[k > 0]}-X" for k in range(n)] for n in LENGTHS]
PARENTS = [[-1, *[0] * (n - 1)] for n in LENGTHS]
TYPES = [[k % 2 for k in range(n)] for n in LENGTHS]
WORDS = [[{"w": str(label), "b": 1.0} for label in own] for own in Y]
FEW = {
    "GBCRF": {"n_estimators": 3, "max_depth": 2},
    "TreeCRF": {"n_estimators": 3, "max_leaves": 3},
    "LinearCRF": {"max_iter": 3, "sweeps": 3},
    "HiddenUnitCRF": {"n_hidden": 3, "sweeps": 3, "step": 0.1, "pretrain_sweeps": 1},
    "RankingCRF": {},
}
"""What makes a fit short."""


def make(name, arguments, **more):
    """Return an estimator that is quick to fit."""
    arguments = {**FEW[name], **arguments, **more, "n_jobs": 1, "random_state": 0}
    if arguments.get("base_learner") == REGRESSOR:
        arguments["base_learner"] = DecisionTreeRegressor(max_depth=2, random_state=0)
    if name == "RankingCRF":
        trees = arguments.get("scorer") == "trees"
        short = (
            {"n_estimators": 3, "min_child_weight": 0.0} if trees else {"sweeps": 3, "step": 0.1}
        )
        arguments = short | arguments
    return getattr(crfx, name)(**arguments)


def fit(crf, features=X, labels=Y, **more):
    """Fit an estimator on chains, or on the same as queries."""
    return crf.fit(features, labels, **more)


class Attempts:
    """Uses of every capability, each with the name of its row for a docstring.

    ``name`` is an estimator, and ``arguments`` are those with which it is tried.
    """

    def __init__(self, name, arguments, folder):
        self.name, self.arguments, self.folder = name, arguments, folder

    def make(self, **more):
        return make(self.name, self.arguments, **more)

    def shards(self):
        folder = self.folder / "shards"
        if not folder.exists():
            crfx.write_shards(folder, X, Y, positions=30)
        return Shards(folder)

    # Structure.

    def higher_order(self):
        """chains of order 2 and more: `order`"""
        fit(self.make(order=2)).predict(X)

    def independent(self):
        """independent positions: `edges=None`"""
        fit(self.make(edges=None)).predict(X)

    def forests(self):
        """forests: `parents`"""
        fit(self.make(), parents=PARENTS).predict(X, parents=PARENTS)

    def forests_of_higher_order(self):
        """forests of order 2 and more"""
        fit(self.make(order=2), parents=PARENTS)

    def edge_types(self):
        """types of edges: `edge_types`"""
        fit(self.make(), edge_types=TYPES).predict(X, edge_types=TYPES)

    def featured_transitions(self):
        """transitions that depend on features"""
        edges = {"edges": "linear"} if self.name == "HiddenUnitCRF" else {}
        fit(self.make(**edges)).predict(X)

    def constraints(self):
        """constraints on labellings: `constraints`"""
        found = fit(self.make(constraints="bio"), labels=TAGS).predict(X)
        assert all(own[0] == "B-X" for own in found)

    def allowed(self):
        """labels allowed at a position: `allowed`"""
        allowed = [[[int(label)] for label in own] for own in Y]
        found = fit(self.make(), allowed=allowed).predict(X, allowed=allowed)
        assert all((one == other).all() for one, other in zip(found, Y, strict=True))

    # Labels and weights.

    def unknown_labels(self):
        """unknown labels: None in `y`"""
        fit(self.make(), labels=[[None, *own[1:].tolist()] for own in Y])

    def class_weight(self):
        """weights of labels: `class_weight`"""
        fit(self.make(class_weight={0: 2.0}))

    def sample_weight(self):
        """weights of instances: `sample_weight`"""
        fit(self.make(), sample_weight=np.arange(len(X)))

    def objectives(self):
        """objectives other than the likelihood"""
        objective = "expected_loss" if self.name == "RankingCRF" else "pseudo_likelihood"
        fit(self.make(objective=objective))

    # Features.

    def csr(self):
        """sparse matrices (CSR)"""
        features = [sparse.csr_matrix(own) for own in X]
        fit(self.make(), features).predict(features)

    def names(self):
        """dicts, texts and templates"""
        fit(self.make(), WORDS).predict(WORDS)

    def hashed(self):
        """hashed names: `n_hashed`"""
        fit(self.make(n_hashed=64), WORDS).predict(WORDS)

    def frames(self):
        """data frames"""
        features = [pd.DataFrame(own, columns=list("abc")) for own in X]
        assert fit(self.make(), features).feature_names_in_.tolist() == ["a", "b", "c"]

    def categories(self):
        """columns of categories"""
        values = pd.Categorical(["x", "y"]).dtype
        features = [
            pd.DataFrame({"a": pd.Series(["xy"[k] for k in own], dtype=values)}) for own in Y
        ]
        fit(self.make(), features).predict(features)

    def missing(self):
        """missing values (NaN)"""
        features = [np.where(own > 0.9, np.nan, own) for own in X]
        fit(self.make(), features).predict(features)

    def train_from_shards(self):
        """training from shards on disk"""
        fit(self.make(), self.shards().X, self.shards().y)

    def predict_from_shards(self):
        """prediction from shards on disk"""
        found = fit(self.make()).predict(self.shards().X)
        assert len(np.concatenate(list(map(np.atleast_1d, found)))) == LENGTHS.sum()

    # Training.

    def workers(self):
        """several workers"""
        half = len(X) // 2
        parts = [slice(None, half), slice(half, None)]
        together(
            2, lambda workers: fit(self.make(), X[parts[workers.rank]], Y[parts[workers.rank]])
        )

    def gpu(self):
        """a GPU: `device`"""
        crf = self.make(device="cuda")
        try:
            fit(crf)
        except ValueError as error:
            if REMEDY not in str(error):  # else it is the GPU of this machine that is missing
                raise

    def early_stopping(self):
        """early stopping: `early_stopping_rounds`"""
        fit(self.make(early_stopping_rounds=1), eval_set=(X, Y))

    def callbacks(self):
        """callbacks"""
        called = []
        fit(self.make(), callbacks=[lambda progress: bool(called.append(progress.n_rounds))])
        assert called

    def resume(self):
        """checkpoints, and exact resume from them"""
        path, calls = self.folder / "m.crfx", []

        def keep(progress):
            progress.save(path)
            calls.append(1)
            if len(calls) == 2:
                raise InterruptedError

        target = "relevance" if self.name == "RankingCRF" else "y"
        data = {"X": X, target: Y}
        with pytest.raises(InterruptedError):
            resumed(self.make(), data, None, keep)
        found = resumed(self.make(), data, crfx.load(path), lambda progress: None)
        expected = fit(self.make())
        for one, other in zip(scores(found), scores(expected), strict=True):
            np.testing.assert_array_equal(one, other)

    def warm_start(self):
        """warm start: `init_model` of the same kind"""
        assert fit(self.make(), init_model=fit(self.make())).model_.base is None

    def new_labels(self):
        """new labels in a warm start: `classes`"""
        found = fit(self.make(), init_model=fit(self.make()), classes=[0, 1, 2])
        assert found.classes_.tolist() == [0, 1, 2]

    def stand_on_another(self):
        """another model underneath: `init_model` of another kind"""
        below = self.other()
        assert fit(self.make(), init_model=fit(below)).model_.base is not None

    def stand_underneath(self):
        """standing underneath another model"""
        assert fit(self.other(), init_model=fit(self.make())).model_.base is not None

    def other(self):
        """Return an estimator of another kind."""
        if self.name == "RankingCRF":
            return make(self.name, {"scorer": "trees"})
        return make("GBCRF" if self.name == "LinearCRF" else "LinearCRF", {})

    def partial_fit(self):
        """training part by part: `partial_fit`"""
        self.make().partial_fit(X, Y).partial_fit(X, Y).predict(X)

    def induction(self):
        """conjunctions of features: `feature_induction`"""
        fit(self.make(feature_induction=1), WORDS)

    def base_learner(self):
        """own regressors: `base_learner`"""
        fit(make(self.name, {"base_learner": REGRESSOR})).predict(X)

    # Results.

    def marginals(self):
        """marginals"""
        crf = fit(self.make())
        assert crf.predict_marginals(X)[0].shape == (len(X[0]), 2)

    def labellings(self):
        """k best labellings, samples, log-likelihood"""
        crf = fit(self.make())
        crf.predict_kbest(X, 2), crf.sample(X, 2), crf.log_likelihood(X, Y)

    def explain(self):
        """explanations: `explain`"""
        assert fit(self.make()).explain(X[0]).positions

    def importance(self):
        """importance of features: `importance`"""
        fit(self.make()).importance()

    def feature_importance(self):
        """importance in trees: `feature_importance`"""
        fit(self.make()).feature_importance()

    def coef(self):
        """weights: `coef_`"""
        assert fit(self.make()).coef_.size

    def save(self):
        """model files: `save`, `crfx.load`"""
        crf = fit(self.make())
        crf.save(self.folder / "m.crfx")
        for one, other in zip(scores(crfx.load(self.folder / "m.crfx")), scores(crf), strict=True):
            np.testing.assert_array_equal(one, other)

    def to_json(self):
        """JSON: `to_json`"""
        fit(self.make()).to_json(self.folder / "m.json")


def scores(crf):
    """Return what a model says of X."""
    return crf.predict(X) if isinstance(crf, crfx.RankingCRF) else crf.predict_marginals(X)


ROWS = {name: row for rows in SUPPORT.values() for name, row in rows.items()}
ATTEMPT = {
    method.__doc__: name
    for name, method in vars(Attempts).items()
    if getattr(method, "__doc__", None) in ROWS
}


def trials(name):
    """Yield (estimator, arguments, whether it is supported) for a row of the table."""
    for estimator, entry in zip(ESTIMATORS, ROWS[name], strict=True):
        limited = isinstance(entry, Limited)
        for arguments, is_supported in (
            [(entry.works, True), (entry.fails, False)] if limited else [({}, entry)]
        ):
            if arguments is not None and is_supported is not None:
                yield estimator, arguments, is_supported


@pytest.mark.parametrize("name", ROWS)
def test_what_is_supported_works_and_all_else_raises(name, tmp_path):
    for number, (estimator, arguments, is_supported) in enumerate(trials(name)):
        folder = tmp_path / str(number)
        folder.mkdir()
        works = True
        try:
            getattr(Attempts(estimator, arguments, folder), ATTEMPT[name])()
        except Exception as error:
            works = False
            if is_supported or not isinstance(error, ValueError | TypeError | AttributeError):
                error.add_note(f"by {estimator} with {arguments}")
                raise
        assert works == is_supported, f"{estimator} with {arguments} should have raised"


@pytest.mark.parametrize("name", EXPERIMENTAL)
def test_experimental_parts_work(name):
    estimator, arguments = EXPERIMENTAL[name]
    fit(make(estimator, arguments), labels=TAGS).predict(X)


def test_every_row_is_tried():
    assert sorted(ATTEMPT) == sorted(ROWS)


def test_the_columns_are_all_estimators():
    assert sorted(ESTIMATORS) == sorted(name for name in crfx.__all__ if name.endswith("CRF"))
