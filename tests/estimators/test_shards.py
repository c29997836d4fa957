"""Shards give what the same instances in memory give."""

import weakref
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

import crfx
from crfx.features.words import Numbering
from crfx.inputs.passed import Passed, read_input
from crfx.inputs.training_set import Start, read_training_set
from crfx.io.arrays import NpzShard
from crfx.model.flat_parameters import get_weights
from crfx.trainers import epochs
from crfx.trainers.mini_batches import MiniBatches
from tests.pairwise import pairwise

pytestmark = pytest.mark.filterwarnings("ignore:.*iterations")

SAME_PROBABILITY = 1e-6
"""Scores of a chunk are those of the whole; BLAS may sum them in another order."""


def instances(n=60, seed=0):
    """Stacked, some of them empty; one label is not known."""
    random = np.random.default_rng(seed)
    lengths = random.integers(0, 9, n)
    X = random.normal(size=(lengths.sum(), 5)).astype(np.float32)
    codes = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0.5)
    y = np.array(["A", "B", "C"])[codes].astype(object)
    y[3] = None
    return X, y, lengths


def as_sparse(X):
    return sparse.csr_matrix(X * (X > 0.3))


@pytest.fixture
def kinds(request, tmp_path):
    """(shards, the same in memory), "dense" or "sparse"."""
    X, y, lengths = instances()
    X = X if request.param == "dense" else as_sparse(X)
    shards = crfx.write_shards(tmp_path, X, y, lengths=lengths, positions=70)
    assert len(shards) > 3
    return shards, {"X": X, "lengths": lengths}, y


@pytest.mark.parametrize(
    ("crf", "kinds"),
    [
        (crfx.LinearCRF(max_iter=5, n_jobs=1), "dense"),
        (crfx.LinearCRF(edges="linear", max_iter=5, n_jobs=1), "sparse"),
        (crfx.TreeCRF(n_estimators=2, n_jobs=1), "sparse"),
    ],
    ids=str,
    indirect=["kinds"],
)
def test_predictions_from_shards_equal_memory(crf, kinds):
    shards, data, y = kinds
    crf.fit(y=y, **data)
    assert (crf.predict(shards.X) == crf.predict(**data)).all()
    assert (crf.sample(shards.X, 2) == crf.sample(n=2, **data)).all()
    assert crf.score(shards.X, shards.y) == crf.score(y=y, **data)
    for method in ("predict_marginals", "predict_edge_marginals"):
        np.testing.assert_allclose(
            getattr(crf, method)(shards.X), getattr(crf, method)(**data), atol=SAME_PROBABILITY
        )
    np.testing.assert_allclose(
        crf.log_likelihood(shards.X, shards.y),
        crf.log_likelihood(y=y, **data),
        atol=100 * SAME_PROBABILITY,
    )
    for ours, theirs in zip(
        crf.predict_kbest(shards.X, 2), crf.predict_kbest(k=2, **data), strict=True
    ):
        assert [labels.tolist() for labels, _ in ours] == [best.tolist() for best, _ in theirs]


# Training -----------------------------------------------------------------------------------------

SAME_SCORES = 2e-6
"""Sums of float32 in blocks that end elsewhere."""
SAME_STEPS = 1e-6
"""The same instances in the same order: what is left is rounding."""
SAME_OBJECTIVE = 1e-5
"""L-BFGS stops at another iterate where sums are rounded otherwise."""

SEED = {"random_state": 0, "n_jobs": 1}
CYCLE = [("A", "A"), ("A", "B"), ("B", "C"), ("C", "A")]
TRAINERS = {
    "linear, L-BFGS": crfx.LinearCRF(n_jobs=1),
    "linear edges, L-BFGS": crfx.LinearCRF(edges="linear", n_jobs=1),
    "linear, SGD": crfx.LinearCRF("sgd", sweeps=2, **SEED),
    "linear edges, SGD": crfx.LinearCRF("sgd", edges="linear", step=0.1, sweeps=1, **SEED),
    "linear, perceptron": crfx.LinearCRF("perceptron", sweeps=2, **SEED),
    "linear, constrained": crfx.LinearCRF("sgd", step=0.1, sweeps=2, constraints=CYCLE, **SEED),
    "hidden, SGD": crfx.HiddenUnitCRF(3, sweeps=2, **SEED),
    "hidden, by size": crfx.HiddenUnitCRF(
        3, sweeps=2, block_steps="size", pretrain="discriminative", pretrain_sweeps=1, **SEED
    ),
    "hidden, perceptron": crfx.HiddenUnitCRF(3, "perceptron", sweeps=2, step=0.1, **SEED),
    "hidden, L-BFGS": crfx.HiddenUnitCRF(3, "lbfgs", max_iter=12, **SEED),
}
EXACT = [name for name in TRAINERS if "L-BFGS" not in name]


def known(y):
    return np.where([labels is None for labels in y], "A", y).astype(object)


def followable(y, lengths):
    """Labels of the cycle that the constraints allow."""
    within = np.concatenate([np.arange(length) for length in lengths])
    return np.array(["A", "B", "C"], object)[within % 3]


def weights(crf):
    return get_weights(crf.model_)


SPARSE_TOO = ("linear, L-BFGS", "linear, SGD", "linear edges, L-BFGS", "hidden, by size")
ONE_SHARD = [(name, "dense") for name in TRAINERS] + [(name, "sparse") for name in SPARSE_TOO]


@pytest.mark.parametrize(("name", "kind"), ONE_SHARD)
def test_training_on_one_shard_is_bitwise_equal_to_memory(tmp_path, name, kind):
    X, y, lengths = instances()
    X = X if kind == "dense" else as_sparse(X)
    y = followable(y, lengths) if "constrained" in name else known(y)
    shards = crfx.write_shards(tmp_path, X, y, lengths=lengths)
    assert len(shards) == 1
    ours = clone(TRAINERS[name]).fit(shards.X, shards.y)
    theirs = clone(TRAINERS[name]).fit(X, y, lengths=lengths)
    assert np.array_equal(weights(ours), weights(theirs))
    assert ours.history_["objective"] == theirs.history_["objective"]


@pytest.mark.parametrize(
    ("crf", "kinds"),
    [
        (crfx.LinearCRF(max_iter=2, n_jobs=1), "dense"),
        (crfx.LinearCRF(max_iter=2, edges="linear", n_jobs=1), "sparse"),
        (crfx.HiddenUnitCRF(3, "lbfgs", max_iter=2, skip=True, **SEED), "dense"),
    ],
    ids=str,
    indirect=["kinds"],
)
def test_objective_and_gradient_of_shards_equal_memory(kinds, crf):
    shards, data, y = kinds
    crf = clone(crf).fit(y=y, **data)
    at = weights(crf)
    results = []
    for source in ((shards.X, shards.y, None), (data["X"], y, data["lengths"])):
        read = read_training_set(Passed(*source), crf._input_settings(Numbering(), None), Start())
        whole = crf._task(read.truth).objective(crf.model_)
        results.append(whole(at + 0.1))
        results[-1] = whole(at)  # again, when chunks are kept that were read before
    assert results[0][0] == pytest.approx(results[1][0], rel=SAME_SCORES)
    scale = np.abs(results[1][1]).max()
    np.testing.assert_allclose(results[0][1], results[1][1], atol=SAME_SCORES * scale, rtol=0)


@pytest.mark.parametrize("name", EXACT)
def test_epochs_over_many_shards_learn_and_repeat(tmp_path, name):
    X, y, lengths = instances()
    y = followable(y, lengths) if "constrained" in name else known(y)
    shards = crfx.write_shards(tmp_path, X, y, lengths=lengths, positions=50)
    crf = clone(TRAINERS[name]).set_params(sweeps=6).fit(shards.X, shards.y)
    again = clone(crf).fit(shards.X, shards.y)
    assert np.array_equal(weights(crf), weights(again))
    assert crf.score(shards.X, shards.y) > 0.6 > (y == "A").mean()
    if "perceptron" not in name:
        assert crf.history_["objective"][-1] < crf.history_["objective"][0]


STEPS = {
    "sgd": crfx.LinearCRF("sgd", step=0.1, sweeps=3, **SEED),
    "perceptron": crfx.LinearCRF("perceptron", edges="linear", sweeps=2, **SEED),
    "hidden": crfx.HiddenUnitCRF(3, step=0.1, sweeps=3, dropout=0.0, **SEED),
}


@pytest.mark.parametrize(
    ("name", "kinds", "underneath"),
    pairwise(list(STEPS), ["dense", "sparse"], [False, True]),
    indirect=["kinds"],
)
def test_epochs_over_shards_equal_memory_in_shard_order(kinds, monkeypatch, name, underneath):
    """Instances in memory, swept over in the groups that are the shards: the same steps."""
    shards, data, y = kinds
    crf, y = STEPS[name], known(y)
    under = crfx.TreeCRF(n_estimators=2, **SEED).fit(y=y, **data)
    more = {"init_model": under} if underneath else {}
    ours = clone(crf).fit(shards.X, y, **more)
    monkeypatch.setattr(MiniBatches, "ends", read_input(Passed(shards.X)).batch.chunk_ends())
    theirs = clone(crf).fit(y=y, **data, **more)
    np.testing.assert_allclose(weights(ours), weights(theirs), rtol=0, atol=SAME_STEPS)


def test_step_search_reads_first_shards_only(tmp_path, monkeypatch):
    X, y, lengths = instances()
    shards = crfx.write_shards(tmp_path, X, known(y), lengths=lengths, positions=50)
    tried = []

    def with_good_step(descent, parts, start):
        tried.append((descent, parts.truth.batch))
        return replace(descent, step=0.01)

    monkeypatch.setattr(epochs, "with_good_step", with_good_step)
    monkeypatch.setattr(epochs, "TRIAL_INSTANCES", len(shards[:2].lengths))
    crfx.LinearCRF("sgd", l2=3.0, sweeps=1, **SEED).fit(shards.X, shards.y)
    ((descent, batch),) = tried
    assert descent.ends is None
    assert descent.n_instances == batch.n_instances == len(shards[:2].lengths)
    assert descent.l2 == pytest.approx(3.0 * batch.n_instances / len(lengths))
    assert np.array_equal(batch.X, X[: batch.n_rows])


# What goes with a training ------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["weights", "forests with typed edges"])
def test_shards_keep_weights_and_structure(tmp_path, kind):
    X, y, lengths = instances()
    if kind == "weights":
        weights = np.random.default_rng(1).integers(0, 3, len(lengths)).astype(float)
        structure, arguments = {}, {"sample_weight": weights}
    else:
        up = [np.arange(length) // 2 - (np.arange(length) == 0) for length in lengths]
        structure = {"parents": np.concatenate(up), "edge_types": np.arange(len(X)) % 2}
        arguments = structure
    shards = crfx.write_shards(tmp_path, X, y, lengths=lengths, **arguments, positions=70)
    ours = crfx.LinearCRF(n_jobs=1).fit(shards.X, shards.y)
    theirs = crfx.LinearCRF(n_jobs=1).fit(X, y, lengths=lengths, **arguments)
    assert len(ours.transitions_.reshape(-1, 3, 3)) == 1 + bool(structure)
    ends = [crf.history_["objective"][-1] for crf in (ours, theirs)]
    assert ends[0] == pytest.approx(ends[1], rel=SAME_OBJECTIVE)
    assert ours.score(shards.X, shards.y) == ours.score(X, y, lengths=lengths, **arguments)
    assert (ours.predict(shards.X) == ours.predict(X, lengths=lengths, **structure)).all()


@pytest.mark.parametrize("metric", ["loss", "token_accuracy"])
def test_eval_set_in_shards_equals_memory(tmp_path, metric):
    X, y, lengths = instances()
    y = known(y)
    dev = crfx.write_shards(tmp_path, X, y, lengths=lengths, positions=70)
    crf = crfx.LinearCRF(eval_metric=metric, early_stopping_rounds=2, max_iter=8, n_jobs=1)
    data = {"X": X[: lengths[:30].sum()], "y": y[: lengths[:30].sum()], "lengths": lengths[:30]}
    ours = clone(crf).fit(**data, eval_set=(dev.X, dev.y))
    theirs = clone(crf).fit(**data, eval_set={"X": X, "y": y, "lengths": lengths})
    assert ours.history_["eval_metric"] == pytest.approx(
        theirs.history_["eval_metric"], rel=SAME_OBJECTIVE
    )
    assert ours.best_iteration_ == theirs.best_iteration_


def test_partial_fit_goes_over_shards(tmp_path):
    X, y, lengths = instances()
    y = known(y)
    one = crfx.write_shards(tmp_path / "one", X, y, lengths=lengths)
    many = crfx.write_shards(tmp_path / "many", X, y, lengths=lengths, positions=70)
    crf = crfx.LinearCRF("sgd", **SEED)
    ours, theirs = clone(crf), clone(crf)
    for _ in range(2):
        ours.partial_fit(one.X, one.y)
        theirs.partial_fit(X, y, lengths=lengths)
    assert np.array_equal(weights(ours), weights(theirs))
    before = ours.score(many.X, many.y)
    for _ in range(4):
        ours.partial_fit(many.X, many.y)
    assert ours.score(many.X, many.y) >= before


def test_base_model_scores_shards(tmp_path):
    X, y, lengths = instances()
    y = known(y)
    shards = crfx.write_shards(tmp_path, X, y, lengths=lengths, positions=70)
    under = crfx.TreeCRF(n_estimators=2, **SEED).fit(X, y, lengths=lengths)
    crf = crfx.LinearCRF("sgd", step=0.1, sweeps=2, **SEED)
    ours = clone(crf).fit(shards.X, shards.y, init_model=under)
    values = ours.history_["objective"]
    assert values[1] < values[0] < -under.log_likelihood(shards.X, shards.y).sum()
    assert (ours.predict(shards.X) == ours.predict(X, lengths=lengths)).all()
    by_lbfgs = [
        crfx.LinearCRF(n_jobs=1)
        .fit(*data, lengths=its_lengths, init_model=under)
        .history_["objective"]
        for data, its_lengths in (((shards.X, shards.y), None), ((X, y), lengths))
    ]
    assert by_lbfgs[0][-1] == pytest.approx(by_lbfgs[1][-1], rel=SAME_OBJECTIVE)


def test_data_frames_in_parquet(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    X, y, lengths = instances()
    frame = pandas.DataFrame(X, columns=list("abcde"))
    more = {"lengths": lengths[lengths > 0]}
    shards = crfx.write_shards(tmp_path, frame, y, **more, positions=70, format="parquet")
    ours = crfx.LinearCRF(n_jobs=1).fit(shards.X, shards.y)
    theirs = crfx.LinearCRF(n_jobs=1).fit(frame, y, **more)
    assert ours.feature_names_in_.tolist() == list("abcde")
    assert ours.history_["objective"][-1] == pytest.approx(
        theirs.history_["objective"][-1], rel=SAME_OBJECTIVE
    )
    assert (ours.predict(shards.X) == ours.predict(frame, **more)).all()
    with pytest.raises(ValueError, match="column 0 of X is 'a'"):
        crfx.LinearCRF(n_jobs=1).fit(frame.rename(columns={"a": "z"}), y, **more).predict(shards.X)


def test_truth_values_and_counts_may_be_missing(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    X, y, lengths = instances()
    frame = pandas.DataFrame({"flag": X[:, 0] > 0, "count": (9 * X[:, 1]).astype(int)})
    frame = frame.astype({"flag": "boolean", "count": "Int64"})
    frame.iloc[5:20] = pandas.NA
    more = {"lengths": lengths[lengths > 0]}
    shards = crfx.write_shards(tmp_path, frame, y, **more, positions=70, format="parquet")
    for crf in (crfx.LinearCRF(n_jobs=1), crfx.GBCRF(3, **SEED)):
        memory = clone(crf).fit(frame, y, **more)
        for disk in (clone(crf).fit(shards.X, shards.y), clone(crf).fit(**shards.load())):
            assert disk.history_["objective"][-1] == pytest.approx(
                memory.history_["objective"][-1], rel=SAME_OBJECTIVE
            )
            assert (disk.predict(shards.X) == memory.predict(frame, **more)).all()
    # The step is sought on several shards at once; in one of them alone numbers are missing.
    sgd = crfx.LinearCRF("sgd", sweeps=2, **SEED).fit(shards.X, shards.y)
    assert sgd.history_["objective"][-1] < len(y)


@pytest.mark.parametrize(
    "crf",
    [
        crfx.LinearCRF(max_iter=2, edges="linear", n_jobs=1),
        crfx.LinearCRF("sgd", sweeps=2, **SEED),
        crfx.HiddenUnitCRF(3, "lbfgs", max_iter=2, **SEED),
    ],
    ids=str,
)
def test_training_holds_at_most_two_shards(tmp_path, crf, monkeypatch):
    """The one that is read, and the one before it; the trial of a step may have some more."""
    X, y, lengths = instances(seed=4)
    shards = crfx.write_shards(tmp_path, X, known(y), lengths=lengths, positions=30)
    assert len(shards) > 6
    monkeypatch.setattr("crfx.trainers.epochs.TRIAL_INSTANCES", 5)
    alive, most, read = weakref.WeakSet(), [], NpzShard.features

    def features(shard):
        array = read(shard)
        held = Held(array.tobytes())
        alive.add(held)
        most.append(len(alive))
        return np.frombuffer(held, array.dtype).reshape(array.shape)

    monkeypatch.setattr(NpzShard, "features", features)
    crf = clone(crf).fit(shards.X, shards.y)
    for ask in (crf.predict, crf.predict_marginals, lambda X: crf.score(X, shards.y)):
        ask(shards.X)
    crf.log_likelihood(shards.X, shards.y)
    crf.predict_kbest(shards.X, 2)
    assert len(most) > 4 * len(shards)
    assert max(most) <= 2


class Held(bytearray):
    """Memory of an array, which is there as long as any part or view of that is."""

    __hash__ = object.__hash__
    __eq__ = object.__eq__
