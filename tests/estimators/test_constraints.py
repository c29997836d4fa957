"""Constraints in all estimators: what they predict is what enumeration says of the rest."""

import itertools

import numpy as np
import pytest
from sklearn.base import clone

from crfx import GBCRF, Constraints, HiddenUnitCRF, LinearCRF, TreeCRF
from crfx.metrics import spans
from crfx.model.model import Model
from crfx.prediction.predictor import Voted

FLOAT32 = 2e-5
"""What probabilities of float32 scores may be off by."""
FLOAT64 = 1e-9
"""Of spans, whose sums run in float64."""

SMALL = {"random_state": 0, "n_jobs": 1}
KINDS = {
    "linear": LinearCRF(l2=0.1),
    "linear-2": LinearCRF(l2=0.1, order=2),
    "linear-3": LinearCRF(l2=0.1, order=3, start_end=False),
    "linear-edges": LinearCRF(l2=0.1, edges="linear"),
    "linear-edges-2": LinearCRF(l2=0.1, edges="linear", order=2),
    "linear-none": LinearCRF(l2=0.1, edges=None),
    "linear-none-2": LinearCRF(l2=0.1, edges=None, order=2),
    "linear-l1": LinearCRF(l1=0.5, l2=0.1, features="all"),
    "sgd": LinearCRF(trainer="sgd", sweeps=3, **SMALL),
    "perceptron": LinearCRF(trainer="perceptron", sweeps=3, order=2, **SMALL),
    "gbcrf": GBCRF(4, max_depth=2, **SMALL),
    "gbcrf-2": GBCRF(4, max_depth=2, order=2, **SMALL),
    "gbcrf-linear": GBCRF(4, max_depth=2, edges="linear", start_end=False, **SMALL),
    "gbcrf-trees": GBCRF(4, max_depth=2, edges="trees", **SMALL),
    "gbcrf-none": GBCRF(4, max_depth=2, edges=None, **SMALL),
    "gbcrf-first": GBCRF(4, max_depth=2, curvature=None, **SMALL),
    "treecrf": TreeCRF(4, max_leaves=4, **SMALL),
    "treecrf-2": TreeCRF(4, max_leaves=4, order=2, curvature="mixing", **SMALL),
    "hidden": HiddenUnitCRF(3, sweeps=4, step=0.1, **SMALL),
    "hidden-2": HiddenUnitCRF(3, sweeps=4, step=0.1, order=2, **SMALL),
    "hidden-lbfgs": HiddenUnitCRF(3, trainer="lbfgs", max_iter=20, edges=None, **SMALL),
    "hidden-margin": HiddenUnitCRF(
        3, trainer="large_margin", sweeps=4, step=0.1, pretrain="discriminative", **SMALL
    ),
}


SOME = ["linear-2", "linear-edges-2", "linear-none", "gbcrf-trees", "treecrf", "hidden-margin"]


def fitted(name, X, y, constraints="bio", **fit):
    return clone(KINDS[name]).set_params(constraints=constraints).fit(X, y, **fit)


def breaks_bio(labels, parents=None):
    """Return whether an I has no B or I of its type before it."""
    return any(
        label.startswith("I") and before not in (label, "B" + label[1:])
        for before, label in zip(["O", *labels], labels, strict=False)
    )


def assert_marginals(every, predicted):
    """Compare marginals with those of all labellings."""
    for enumerated, marginals in zip(every, predicted, strict=True):
        expected = enumerated.marginals(enumerated.node_events).reshape(marginals.shape)
        np.testing.assert_allclose(marginals, expected, atol=FLOAT32)


def codes_of(crf, labels):
    return np.searchsorted(crf.classes_, labels)


@pytest.mark.parametrize("name", KINDS)
def test_constrained_predictions_agree_with_enumeration(name, bio_task, listed):
    X, y = bio_task()
    crf = fitted(name, X, y)
    every = listed(crf, X, breaks_bio)
    assert_marginals(every, crf.predict_marginals(X))
    best, whole, predicted = crf.predict_kbest(X, 4), crf.log_likelihood(X, y), crf.predict(X)
    is_joint = isinstance(crf, HiddenUnitCRF) and crf.trainer == "large_margin"
    for k, enumerated in enumerate(every):
        true = codes_of(crf, y[k])
        assert whole[k] == pytest.approx(enumerated.score_of(true) - enumerated.log_z, abs=1e-4)
        wanted = [np.exp(score - enumerated.log_z) for _, score in enumerated.k_best(4)]
        np.testing.assert_allclose([p for _, p in best[k]], wanted, atol=FLOAT32)
        if not is_joint:  # which decodes by scores of its own
            best_score = enumerated.score_of(codes_of(crf, predicted[k]))
            assert best_score == pytest.approx(enumerated.scores.max(), abs=1e-4)
    for enumerated, probabilities in zip(every, crf.predict_edge_marginals(X), strict=True):
        n_labels, length = len(crf.classes_), enumerated.labels.shape[1]
        assert probabilities.shape == (length, *(n_labels,) * (crf.order + 1))
        for t in range(crf.order, length):
            wanted = np.zeros(probabilities.shape[1:])
            window = enumerated.labels[:, t - crf.order : t + 1]
            np.add.at(wanted, tuple(window.T), enumerated.probabilities)
            np.testing.assert_allclose(probabilities[t], wanted, atol=FLOAT32)
    draws = [labels for draw in crf.sample(X, 20) for labels in draw]
    assert not any(breaks_bio(labels.tolist()) for labels in [*predicted, *draws])


@pytest.mark.parametrize("name", ["linear-2", "linear-l1", "sgd", "gbcrf", "gbcrf-first", "hidden"])
def test_forbidden_labels_and_pairs_have_no_parameters(name, bio_task):
    crf = fitted(name, *bio_task())
    tables, code = crf.model_.ends.tables, crf.classes_.tolist().index
    for label in ("O", "B-Y"):
        assert not crf.transitions_[..., code(label), code("I-X")].any()
    assert crf.transitions_.any()
    assert tables["start"][code("I-X")] == 0
    for table in (crf.transitions_, *tables.values(), crf.history_["objective"]):
        assert np.isfinite(table).all()


@pytest.mark.parametrize("name", SOME)
def test_span_probabilities_agree_with_enumeration(name, bio_task, listed):
    X, y = bio_task()
    crf = fitted(name, X, y)
    every, predicted = listed(crf, X, breaks_bio), crf.predict(X)
    decoded, likely = crf.predict_spans(X), crf.predict_spans(X, min_probability=0.05)
    for k, enumerated in enumerate(every):
        wanted = {}
        for codes, p in zip(enumerated.labels, enumerated.probabilities, strict=True):
            for first, last, kind in spans(crf.classes_[codes]) if p > 0 else ():
                span = (first, last + 1, kind)
                wanted[span] = wanted.get(span, 0.0) + p
        assert {span[:3] for span in decoded[k]} == {
            (first, last + 1, kind) for first, last, kind in spans(predicted[k])
        }
        assert [span[:3] for span in likely[k]] == sorted(
            span for span, p in wanted.items() if p >= 0.05
        )
        for span in [*decoded[k], *likely[k]]:
            assert span.probability == pytest.approx(wanted[span[:3]], abs=FLOAT64)


ALLOWED = ["B-X", None, ["O", "I-X"], {"O", "B-Y", "I-X"}, np.array(["I-Y", "O"])]


@pytest.mark.parametrize("name", SOME)
def test_allowed_labels_by_position(name, bio_task, listed):
    X, y = bio_task()
    crf = fitted(name, X, y)
    allowed = [ALLOWED[: len(x)] for x in X]
    plain = [
        [e.tolist() if isinstance(e, np.ndarray) else e for e in position_sets]
        for position_sets in allowed
    ]
    every = listed(crf, X, breaks_bio, allowed=plain)
    assert_marginals(every, crf.predict_marginals(X, allowed=allowed))
    confidence = crf.predict_confidence(X, allowed=allowed)
    predicted, kbest = crf.predict(X, allowed=allowed), crf.predict_kbest(X, 3, allowed=allowed)
    spans_found = crf.predict_spans(X, allowed=allowed)
    for k, enumerated in enumerate(every):
        codes = codes_of(crf, predicted[k])
        p = enumerated.marginals(enumerated.node_events).reshape(len(codes), -1)
        np.testing.assert_allclose(
            confidence[k].labels, p[np.arange(len(codes)), codes], atol=FLOAT32
        )
        whole = np.exp(enumerated.score_of(codes) - enumerated.log_z)
        assert confidence[k].labelling == pytest.approx(whole, abs=FLOAT32)
        wanted = [np.exp(score - enumerated.log_z) for _, score in enumerated.k_best(3)]
        np.testing.assert_allclose([p for _, p in kbest[k]], wanted, atol=FLOAT32)
        assert spans_found[k][0][:2] in ((0, 1), (0, 2), (0, 3), (0, 4))
        assert all(labels[0] == "B-X" for labels in crf.sample(X, 5, allowed=allowed)[k])
    edges = crf.predict_edge_marginals(X, allowed=allowed)
    if crf.order == 1:
        assert edges[4][1].sum() == pytest.approx(1, abs=FLOAT32)
        first = crf.classes_.tolist().index("B-X")
        assert edges[4][1][first].sum() == pytest.approx(1, abs=FLOAT32)
    true = [["B-X", "O", "O", "O", "O"][: len(x)] for x in X]
    log_likelihood = crf.log_likelihood(X, true, allowed=allowed)
    for k, enumerated in enumerate(every):
        score = enumerated.score_of(codes_of(crf, true[k]))
        assert log_likelihood[k] == pytest.approx(score - enumerated.log_z, abs=1e-4)
    assert crf.score(X, true, allowed=allowed) >= 0.3


def test_arrays_of_pairs_and_of_labels(bio_task):
    """Stacked input has one list of allowed labels."""
    X, y = bio_task()
    pairs = sorted({pair for labels in y for pair in itertools.pairwise(labels)})
    one, other = (fitted("linear", X, y, constraints) for constraints in (pairs, np.array(pairs)))
    assert [x.tolist() for x in one.predict(X)] == [x.tolist() for x in other.predict(X)]
    allowed = [[None] * (len(x) - 1) + [np.array("B-X")] for x in X]
    predicted, flat = one.predict(X, allowed=allowed), list(itertools.chain(*allowed))
    assert all(labels[-1] == "B-X" for labels in predicted)
    stacked = one.predict(np.concatenate(X), lengths=[len(x) for x in X], allowed=flat)
    assert stacked.tolist() == np.concatenate(predicted).tolist()


@pytest.mark.parametrize("name", ["linear", "gbcrf-trees", "treecrf", "hidden"])
def test_pairs_constrain_parents_and_children(name, listed):
    random = np.random.default_rng(1)
    parents, X, y = [], [], []
    for length in (1, 2, 3, 4, 4, 3, 4, 4, 2):
        up = [-1, *(int(random.integers(0, t)) for t in range(1, length))]
        labels = [str(random.choice(["a", "b"]))]
        for t in range(1, length):
            choices = {"a": ["a", "b", "c"], "b": ["b", "c"], "c": ["c"]}[labels[up[t]]]
            labels.append(str(random.choice(choices)))
        parents.append(np.array(up))
        y.append(labels)
        codes = np.array([ord(label) - ord("a") for label in labels])
        X.append((codes[:, None] + random.normal(size=(length, 2))).astype(np.float32))
    rising = [("a", "a"), ("a", "b"), ("a", "c"), ("b", "b"), ("b", "c"), ("c", "c")]
    constraints = Constraints(allowed=rising, start_forbidden=["c"])
    crf = fitted(name, X, y, constraints, parents=parents)

    def falls(labels, up):
        return any(
            label == "c" if parent < 0 else labels[parent] > label
            for label, parent in zip(labels, up, strict=True)
        )

    every = listed(crf, X, falls, parents=parents)
    assert_marginals(every, crf.predict_marginals(X, parents=parents))
    for enumerated, labels in zip(every, crf.predict(X, parents=parents), strict=True):
        score = enumerated.score_of(codes_of(crf, labels))
        assert score == pytest.approx(enumerated.scores.max(), abs=1e-4)
    with pytest.raises(ValueError, match="marks no span"):
        crf.predict_spans(X, parents=parents)


@pytest.mark.parametrize("name", ["linear", "linear-edges", "gbcrf"])
def test_edge_types(name, bio_task, listed):
    X, y = bio_task()
    types = [np.arange(len(x)) % 2 for x in X]
    crf = fitted(name, X, y, edge_types=types)
    every = listed(crf, X, breaks_bio, edge_types=types)
    assert_marginals(every, crf.predict_marginals(X, edge_types=types))


def test_predict_kbest_returns_fewer_labellings_if_few_exist(bio_task):
    X, y = bio_task()
    crf = fitted("linear", X, y)
    (best,) = crf.predict_kbest(X[1:2], 1000, allowed=[[["O", "B-X"], ["O", "I-X"]]])
    labellings = sorted(labels.tolist() for labels, _ in best)
    assert labellings == [["B-X", "I-X"], ["B-X", "O"], ["O", "O"]]
    assert sum(p for _, p in best) == pytest.approx(1, abs=FLOAT32)


@pytest.mark.parametrize("name", ["linear", "gbcrf", "hidden", "treecrf"])
def test_marginal_decoding_obeys_constraints(name, bio_task, listed):
    """The allowed labelling of which most labels are right in expectation."""
    X, y = bio_task()
    crf = fitted(name, X, y).set_params(decode="marginal")
    random = np.random.default_rng(0)
    X = [random.normal(1.5, 2, size=(4, 2)).astype(np.float32) for _ in range(2000)]
    plain = [crf.classes_[p.argmax(axis=1)].tolist() for p in crf.predict_marginals(X)]
    broken = [x for x, labels in zip(X, plain, strict=True) if breaks_bio(labels)]
    assert broken or name == "hidden"  # whose scores differ too little for it to matter
    X = [*broken[:5], *X[:5]]
    for enumerated, labels in zip(listed(crf, X, breaks_bio), crf.predict(X), strict=True):
        assert not breaks_bio(labels.tolist())
        p = enumerated.marginals(enumerated.node_events).reshape(len(labels), -1)
        totals = np.where(enumerated.scores > -np.inf, enumerated.cost(p), -np.inf)
        code = codes_of(crf, labels)
        assert p[np.arange(len(code)), code].sum() == pytest.approx(totals.max(), abs=1e-4)


def test_herding_votes_obey_constraints(bio_task, monkeypatch):
    X, y = bio_task()
    arguments = {"trainer": "perceptron", "herding": True, "sweeps": 6, "burn_in": 0, "step": 1.0}
    crf = HiddenUnitCRF(3, constraints="bio", **arguments, **SMALL).fit(X, y)
    assert not any(breaks_bio(labels.tolist()) for labels in crf.predict(X))
    forced = crf.predict(X, allowed=[["B-Y"] + [None] * (len(x) - 1) for x in X])
    assert all(labels[0] == "B-Y" for labels in forced)
    most = (crf.classes_ == "I-X") + 0.5 * (crf.classes_ == "I-Y")

    def same_everywhere(_, batch):
        return np.tile(most, (batch.n_rows, 1)).astype(np.float32)

    monkeypatch.setattr(Voted, "_shares", same_everywhere)
    assert crf.predict(X)[4].tolist() == ["B-X", *["I-X"] * 4]


def test_predict_returns_none_below_min_probability(bio_task):
    X, y = bio_task()
    crf = fitted("gbcrf", X, y)
    sure = crf.predict(X, min_probability=0.5)
    for labels, plain, p in zip(sure, crf.predict(X), crf.predict_marginals(X), strict=True):
        chances = p[np.arange(len(plain)), codes_of(crf, plain)]
        assert labels.dtype == object
        assert labels.tolist() == [
            label if chance >= 0.5 else None for label, chance in zip(plain, chances, strict=True)
        ]
    assert any(label is None for labels in sure for label in labels)
    assert any(label is not None for labels in sure for label in labels)
    every = crf.predict(X, min_probability=0.0)
    assert [x.tolist() for x in every] == [x.tolist() for x in crf.predict(X)]


@pytest.mark.parametrize("method", ["predict_confidence", "predict_spans"])
@pytest.mark.parametrize(("decode", "count"), [("viterbi", 1), ("joint", 2)])
def test_scores_are_made_once_per_model(monkeypatch, method, decode, count):
    random = np.random.default_rng(0)
    X = [random.normal(size=(4, 2)).astype(np.float32) for _ in range(3)]
    y = [["B-X" if row[0] > 0 else "O" for row in x] for x in X]
    crf = HiddenUnitCRF(2, sweeps=1, step=0.1, random_state=0, decode=decode).fit(X, y)
    made = []
    scored = Model.problem
    monkeypatch.setattr(Model, "problem", lambda *args: made.append(1) or scored(*args))
    getattr(crf, method)(X)
    assert len(made) == count
