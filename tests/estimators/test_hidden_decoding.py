"""HiddenUnitCRF against enumeration of all labels and all states of the hidden units."""

import itertools

import numpy as np
import pytest

from crfx import HiddenUnitCRF
from crfx.model.flat_parameters import get_weights, set_weights

ROUNDING = 2e-5
DECODERS = ("viterbi", "marginal", "joint")
N_LABELS, N_HIDDEN, N_FEATURES = 3, 2, 2
LENGTHS = [1, 2, 3]
random = np.random.default_rng(0)
X = [random.normal(size=(n, N_FEATURES)).astype(np.float32) for n in LENGTHS]
Y = [list(random.integers(N_LABELS, size=n)) for n in LENGTHS]
Y[2] = [0, 1, 2]  # all labels occur
STATES = np.array(list(itertools.product([0, 1], repeat=N_HIDDEN)))


def with_random_weights(seed, **arguments):
    """Return an estimator whose weights are large enough to tell the decoders apart."""
    crf = HiddenUnitCRF(N_HIDDEN, sweeps=0, skip=True, random_state=0, n_jobs=1, **arguments)
    crf.fit(X, Y)
    size = len(get_weights(crf.model_))
    set_weights(crf.model_, np.random.default_rng(seed).normal(size=size) * 1.0)
    return crf


def energies(crf, x):
    """Return {labels: scores of the states of all units}, from the definition."""
    parts = crf.model_.node.shape.split(crf.model_.node.weights.astype(np.float64))
    edge = crf.model_.edge.tables["edge"].astype(np.float64)
    start, end = (crf.model_.ends.tables[name].astype(np.float64) for name in ("start", "end"))
    inputs = x.astype(np.float64) @ parts["weights"] + parts["bias"]
    result = {}
    for labels in itertools.product(range(N_LABELS), repeat=len(x)):
        score = start[labels[0]] + end[labels[-1]]
        score += sum(edge[pair] for pair in itertools.pairwise(labels))
        score += sum(
            parts["constant"][k] + x[t] @ parts["skip"][:, k] for t, k in enumerate(labels)
        )
        by_unit = inputs + parts["to_label"][:, list(labels)].T  # what a unit that is on adds
        states = itertools.product(STATES, repeat=len(x))
        result[labels] = np.array([score + (np.array(z) * by_unit).sum() for z in states])
    return result


def labelling_scores(crf, x, over_states):
    """Return {labels: sum (on the log scale) or maximum over the states}."""
    return {labels: over_states(scores) for labels, scores in energies(crf, x).items()}


def marginals(scores, length):
    total, shares = np.logaddexp.reduce(list(scores.values())), np.zeros((length, N_LABELS))
    for labels, score in scores.items():
        shares[np.arange(length), labels] += np.exp(score - total)
    return shares


def test_hidden_units_are_summed_out():
    for seed in range(5):
        crf = with_random_weights(seed)
        whole = crf.log_likelihood(X, Y)
        for x, y, log_p, p in zip(X, Y, whole, crf.predict_marginals(X), strict=True):
            scores = labelling_scores(crf, x, np.logaddexp.reduce)
            log_z = np.logaddexp.reduce(list(scores.values()))
            assert log_p == pytest.approx(scores[tuple(y)] - log_z, abs=ROUNDING)
            np.testing.assert_allclose(p, marginals(scores, len(x)), atol=ROUNDING)


@pytest.mark.parametrize("activation", ["softplus", "relu"])
@pytest.mark.parametrize("decode", DECODERS)
def test_decoders_agree_with_enumeration(decode, activation):
    is_maximised = decode == "joint" or activation == "relu"
    for seed in range(10):
        crf = with_random_weights(seed, decode=decode, activation=activation)
        for x, labels in zip(X, crf.predict(X), strict=True):
            scores = labelling_scores(crf, x, np.max if is_maximised else np.logaddexp.reduce)
            best = max(scores, key=scores.get)
            if decode == "marginal":
                best = tuple(marginals(scores, len(x)).argmax(axis=1))
            assert tuple(labels) == best


def test_decoders_give_different_labellings():
    """The companion: what is tested above is not one decoder by three names."""
    differ = set()
    for seed in range(10):
        labels = {
            decode: np.concatenate(with_random_weights(seed, decode=decode).predict(X)).tolist()
            for decode in DECODERS
        }
        differ |= {(a, b) for a, b in itertools.combinations(labels, 2) if labels[a] != labels[b]}
    assert len(differ) == 3


def test_summing_units_differs_from_maximising_units():
    """Summed out, ten units that are barely on beat one; maximised over, they do not."""
    x = [np.zeros((1, 1), np.float32)]
    crf = HiddenUnitCRF(10, sweeps=0, edges=None, random_state=0)
    crf.fit([np.zeros((2, 1), np.float32)], [["many", "one"]])
    parts = crf.model_.node.shape.split(crf.model_.node.weights)
    crf.model_.node.weights[:] = 0
    parts["to_label"][:] = -20  # off
    parts["to_label"][:, 0] = 0  # log 2 each, summed out; 0 at the best
    parts["constant"][1] = 3
    assert crf.predict(x)[0][0] == "many"
    assert crf.set_params(decode="joint").predict(x)[0][0] == "one"


def test_perceptron_decodes_jointly_by_default():
    crf = with_random_weights(0)
    assert crf._decoder == "viterbi"
    for trainer in ("perceptron", "large_margin"):
        assert with_random_weights(0, trainer=trainer)._decoder == "joint"
        assert with_random_weights(0, trainer=trainer, decode="viterbi")._decoder == "viterbi"
        assert with_random_weights(0, trainer=trainer, activation="tanh")._decoder == "viterbi"


def test_score_is_accuracy_of_predict():
    for seed, decode in enumerate(DECODERS):
        crf = with_random_weights(seed, decode=decode)
        right = np.concatenate(crf.predict(X)) == np.concatenate(Y)
        assert crf.score(X, Y) == pytest.approx(right.mean())
