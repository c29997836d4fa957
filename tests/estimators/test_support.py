"""The table of what is supported: what it promises works, what it denies raises."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.tree import DecisionTreeRegressor

import crfx
from crfx.distributed.collective import together
from crfx.estimators.session import resumed
from crfx.estimators.support import (
    ESTIMATORS,
    EXPERIMENTAL,
    REGRESSOR,
    SUPPORT,
    Limited,
    Refusal,
)
from crfx.potentials.xgboost_learner import REMEDY

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore:.*max_iter")
RANDOM = np.random.default_rng(0)
LENGTHS = RANDOM.integers(2, 6, 24)
Y = [RANDOM.integers(2, size=n) for n in LENGTHS]
X = [
    (np.eye(3)[labels] + 0.1 * RANDOM.normal(size=(len(labels), 3))).astype(np.float32)
    for labels in Y
]
TAGS = [[f"{'BI'[k > 0]}-X" for k in range(n)] for n in LENGTHS]
PARENTS = [[-1, *[0] * (n - 1)] for n in LENGTHS]
TYPES = [[k % 2 for k in range(n)] for n in LENGTHS]
WORDS = [[{"w": str(label), "b": 1.0} for label in labels] for labels in Y]
FEW = {
    "GBCRF": {"n_estimators": 3, "max_depth": 2},
    "TreeCRF": {"n_estimators": 3, "max_leaves": 3},
    "LinearCRF": {"max_iter": 3, "sweeps": 3},
    "HiddenUnitCRF": {"n_hidden": 3, "sweeps": 3, "step": 0.1, "pretrain_sweeps": 1},
    "RankingCRF": {},
}
"""What makes a fit short."""
DATA = ("parents", "edge_types", "allowed", "sample_weight", "eval_set", "callbacks", "classes")
"""Arguments of `fit`; others are those of an estimator."""


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


class Trial:
    """An estimator that is tried, ``name`` with ``arguments``, and a folder for its files."""

    def __init__(self, name, arguments, folder):
        self.name, self.arguments, self.folder = name, arguments, folder

    def make(self, **more):
        """Return the estimator, not fitted."""
        return make(self.name, self.arguments, **more)

    def fit(self, features=X, labels=Y, init_model=None, **more):
        """Return the estimator with more arguments, fitted."""
        data = {name: more.pop(name) for name in DATA if name in more}
        return self.make(**more).fit(features, labels, init_model=init_model, **data)

    def other(self):
        """Return an estimator of another kind."""
        if self.name == "RankingCRF":
            return make(self.name, {"scorer": "trees"})
        return make("GBCRF" if self.name == "LinearCRF" else "LinearCRF", {})

    def shards(self):
        """Return X and Y on disk."""
        return crfx.write_shards(self.folder / "shards", X, Y, positions=30)


def featured_transitions(trial):
    edges = {"edges": "linear"} if trial.name == "HiddenUnitCRF" else {}
    trial.fit(**edges).predict(X)


def constraints(trial):
    assert all(
        labels[0] == "B-X" for labels in trial.fit(labels=TAGS, constraints="bio").predict(X)
    )


def allowed(trial):
    known = [[[int(label)] for label in labels] for labels in Y]
    labels = trial.fit(allowed=known).predict(X, allowed=known)
    assert all((one == other).all() for one, other in zip(labels, Y, strict=True))


def objectives(trial):
    ranks = trial.name == "RankingCRF"
    trial.fit(objective="expected_loss" if ranks else "pseudo_likelihood")


def csr(trial):
    features = [sparse.csr_matrix(x) for x in X]
    trial.fit(features).predict(features)


def frames(trial):
    features = [pd.DataFrame(x, columns=list("abc")) for x in X]
    assert trial.fit(features).feature_names_in_.tolist() == ["a", "b", "c"]


def categories(trial):
    values = pd.Categorical(["x", "y"]).dtype
    features = [
        pd.DataFrame({"a": pd.Series(["xy"[k] for k in labels], dtype=values)}) for labels in Y
    ]
    trial.fit(features).predict(features)


def missing(trial):
    features = [np.where(x > 0.9, np.nan, x) for x in X]
    trial.fit(features).predict(features)


def train_from_shards(trial):
    shards = trial.shards()
    trial.fit(shards.X, shards.y)


def predict_from_shards(trial):
    predicted = trial.fit().predict(trial.shards().X)
    assert len(np.concatenate(list(map(np.atleast_1d, predicted)))) == LENGTHS.sum()


def workers(trial):
    half = len(X) // 2
    parts = [slice(None, half), slice(half, None)]
    together(2, lambda workers: trial.fit(X[parts[workers.rank]], Y[parts[workers.rank]]))


def gpu(trial):
    try:
        trial.fit(device="cuda")
    except ValueError as error:
        if REMEDY not in str(error):  # else it is the GPU of this machine that is missing
            raise


def callbacks(trial):
    called = []
    trial.fit(callbacks=[lambda progress: bool(called.append(progress.n_rounds))])
    assert called


def resume(trial):
    path, calls = trial.folder / "m.crfx", []

    def keep(progress):
        progress.save(path)
        calls.append(1)
        if len(calls) == 2:
            raise InterruptedError

    data = {"X": X, "relevance" if trial.name == "RankingCRF" else "y": Y}
    with pytest.raises(InterruptedError):
        resumed(trial.make(), data, None, keep)
    check_same(resumed(trial.make(), data, crfx.load(path), lambda progress: None), trial.fit())


def warm_start(trial):
    assert trial.fit(init_model=trial.fit()).model_.base is None


def new_labels(trial):
    crf = trial.fit(init_model=trial.fit(), classes=[0, 1, 2])
    assert crf.classes_.tolist() == [0, 1, 2]


def stand_on_another(trial):
    assert trial.fit(init_model=trial.other().fit(X, Y)).model_.base is not None


def stand_underneath(trial):
    assert trial.other().fit(X, Y, init_model=trial.fit()).model_.base is not None


def marginals(trial):
    assert trial.fit().predict_marginals(X)[0].shape == (len(X[0]), 2)


def coef(trial):
    assert trial.fit().coef_.size


def labellings(trial):
    crf = trial.fit()
    crf.predict_kbest(X, 2), crf.sample(X, 2), crf.log_likelihood(X, Y)


def save(trial):
    crf = trial.fit()
    crf.save(trial.folder / "m.crfx")
    check_same(crfx.load(trial.folder / "m.crfx"), crf)


def check_same(one, other):
    """Two models say the same of X, to the bit."""
    ranks = isinstance(one, crfx.RankingCRF)
    answers = [crf.predict(X) if ranks else crf.predict_marginals(X) for crf in (one, other)]
    np.testing.assert_array_equal(*map(np.concatenate, answers))


HIDDEN = [[None, *labels[1:].tolist()] for labels in Y]
ATTEMPTS = {
    "chains of order 2 and more: `order`": lambda trial: trial.fit(order=2).predict(X),
    "independent positions: `edges=None`": lambda trial: trial.fit(edges=None).predict(X),
    "forests: `parents`": lambda trial: trial.fit(parents=PARENTS).predict(X, parents=PARENTS),
    "forests of order 2 and more": lambda trial: trial.fit(order=2, parents=PARENTS),
    "types of edges: `edge_types`": (
        lambda trial: trial.fit(edge_types=TYPES).predict(X, edge_types=TYPES)
    ),
    "transitions that depend on features": featured_transitions,
    "constraints on labellings: `constraints`": constraints,
    "labels allowed at a position: `allowed`": allowed,
    "unknown labels: None in `y`": lambda trial: trial.fit(labels=HIDDEN),
    "weights of labels: `class_weight`": lambda trial: trial.fit(class_weight={0: 2.0}),
    "weights of instances: `sample_weight`": (
        lambda trial: trial.fit(sample_weight=np.arange(len(X)))
    ),
    "objectives other than the likelihood": objectives,
    "sparse matrices (CSR)": csr,
    "dicts, texts and templates": lambda trial: trial.fit(WORDS).predict(WORDS),
    "hashed names: `n_hashed`": lambda trial: trial.fit(WORDS, n_hashed=64).predict(WORDS),
    "data frames": frames,
    "columns of categories": categories,
    "missing values (NaN)": missing,
    "training from shards on disk": train_from_shards,
    "prediction from shards on disk": predict_from_shards,
    "several workers": workers,
    "a GPU: `device`": gpu,
    "early stopping: `early_stopping_rounds`": (
        lambda trial: trial.fit(early_stopping_rounds=1, eval_set=(X, Y))
    ),
    "callbacks": callbacks,
    "checkpoints, and exact resume from them": resume,
    "warm start: `init_model` of the same kind": warm_start,
    "new labels in a warm start: `classes`": new_labels,
    "another model underneath: `init_model` of another kind": stand_on_another,
    "standing underneath another model": stand_underneath,
    "training part by part: `partial_fit`": (
        lambda trial: trial.make().partial_fit(X, Y).partial_fit(X, Y).predict(X)
    ),
    "conjunctions of features: `feature_induction`": (
        lambda trial: trial.fit(WORDS, feature_induction=1)
    ),
    "own regressors: `base_learner`": lambda trial: trial.fit(base_learner=REGRESSOR).predict(X),
    "marginals": marginals,
    "k best labellings, samples, log-likelihood": labellings,
    "explanations: `explain`": lambda trial: trial.fit().explain(X[0]).positions[0],
    "importance of features: `importance`": lambda trial: trial.fit().importance(),
    "importance in trees: `feature_importance`": lambda trial: trial.fit().feature_importance(),
    "weights: `coef_`": coef,
    "model files: `save`, `crfx.load`": save,
    "JSON: `to_json`": lambda trial: trial.fit().to_json(trial.folder / "m.json"),
}
"""Uses of every capability, by the name of its row."""
ROWS = {name: row for rows in SUPPORT.values() for name, row in rows.items()}


def trials(name):
    """Yield (estimator, arguments, whether it is supported) for a row of the table."""
    for estimator, entry in zip(ESTIMATORS, ROWS[name], strict=True):
        if isinstance(entry, Limited):
            yield estimator, entry.works, True
            yield from ((estimator, refusal.arguments, False) for refusal in entry.refusals)
        elif isinstance(entry, Refusal):
            yield estimator, entry.arguments, False
        elif entry is not None:
            yield estimator, {}, entry


@pytest.mark.parametrize("name", ROWS)
def test_support_table_agrees_with_behaviour(name, tmp_path):
    for number, (estimator, arguments, is_supported) in enumerate(trials(name)):
        folder = tmp_path / str(number)
        folder.mkdir()
        works = True
        try:
            ATTEMPTS[name](Trial(estimator, arguments, folder))
        except Exception as error:
            works = False
            if is_supported or not isinstance(error, ValueError | TypeError | AttributeError):
                error.add_note(f"by {estimator} with {arguments}")
                raise
        assert works == is_supported, f"{estimator} with {arguments} should have raised"


@pytest.mark.parametrize("name", EXPERIMENTAL)
def test_experimental_parts_work(name):
    estimator, arguments = EXPERIMENTAL[name]
    make(estimator, arguments).fit(X, TAGS).predict(X)


def test_every_row_is_tried():
    assert sorted(ATTEMPTS) == sorted(ROWS)


def test_the_columns_are_all_estimators():
    assert sorted(ESTIMATORS) == sorted(name for name in crfx.__all__ if name.endswith("CRF"))
