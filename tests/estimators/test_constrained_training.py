"""Training under constraints: objectives, IOB1, files, bases, labels that are allowed, errors.

`test_core_steps.py` compares the steps of the core with those of Python.
"""

import itertools

import numpy as np
import pytest
from sklearn.base import clone

from crfx import GBCRF, Constraints, HiddenUnitCRF, LinearCRF, TreeCRF, load
from crfx.structures.constraints import to_plain

SMALL = {"random_state": 0, "n_jobs": 1}
KINDS = [
    LinearCRF(l2=0.1),
    LinearCRF(trainer="sgd", sweeps=10, order=2, **SMALL),
    GBCRF(8, max_depth=2, **SMALL),
    GBCRF(3, max_depth=2, edges="trees", edge_l2=0, order=2, **SMALL),
    TreeCRF(8, max_leaves=4, pseudo_likelihood_rounds=0, **SMALL),
    HiddenUnitCRF(4, sweeps=10, step=0.1, **SMALL),
]


@pytest.fixture(params=KINDS, ids=lambda kind: f"{type(kind).__name__}-{kind.order}")
def kind(request):
    return clone(request.param)


def to_iob1(labels):
    """Use B only where a span follows another of its type at once."""
    return [
        "I" + label[1:] if label[0] == "B" and (k == 0 or labels[k - 1][1:] != label[1:]) else label
        for k, label in enumerate(labels)
    ]


def breaks_bio(labels, parents=None):
    return any(
        label.startswith("I") and before not in (label, "B" + label[1:])
        for before, label in zip(["O", *labels], labels, strict=False)
    )


def test_objective_is_that_of_allowed_labellings(kind, bio_task, listed):
    X, y = bio_task(lengths=[3, 4, 5, 2, 1] * 6)
    crf = kind.set_params(constraints="bio").fit(X, y)
    objective = crf.history_["objective"]
    assert objective[-1] < objective[0]
    assert np.isfinite(objective).all()
    total = 0.0
    for enumerated, labels in zip(listed(crf, X, breaks_bio), y, strict=True):
        total += enumerated.log_z - enumerated.score_of(np.searchsorted(crf.classes_, labels))
    assert -crf.log_likelihood(X, y).sum() == pytest.approx(total, rel=1e-5)
    if isinstance(crf, LinearCRF) and crf.trainer == "lbfgs":
        weights = [crf.model_.node.weights, crf.transitions_, *crf.model_.ends.tables.values()]
        penalty = crf.l2 * sum((part.astype(float) ** 2).sum() for part in weights)
        assert objective[-1] == pytest.approx(total + penalty, rel=1e-5)
    if isinstance(crf, TreeCRF) or (isinstance(crf, GBCRF) and crf.order == 2):  # no penalties
        assert objective[-1] == pytest.approx(total, rel=1e-5)


@pytest.mark.parametrize("objective", ["likelihood", "loss_augmented", "loss_scaled", "kl"])
def test_boosting_steps_are_long_under_constraints(objective, bio_task):
    """Mixing rates are loose under constraints: "auto" must not be as slow as they are."""
    X, y = bio_task(lengths=[12] * 10)
    X = [4 * x for x in X]
    objectives = {}
    for constraints, curvature in ((None, "auto"), ("bio", "auto"), ("bio", "mixing")):
        if curvature == "mixing" and objective == "loss_scaled":
            continue
        crf = GBCRF(10, constraints=constraints, curvature=curvature, objective=objective, **SMALL)
        values = crf.fit(X, y).history_["objective"]
        assert all(b <= a + 1e-4 for a, b in itertools.pairwise(values))
        objectives[constraints, curvature] = values[-1]
    assert objectives["bio", "auto"] <= objectives.get(("bio", "mixing"), np.inf)
    assert objectives["bio", "auto"] < 1.5 * objectives[None, "auto"]


def test_iob1_is_converted(bio_task, kind):
    constraints = "bioes" if isinstance(kind, LinearCRF) else "bio"
    X, y = bio_task(lengths=[3, 4, 5, 2] * 4)
    first = [to_iob1(labels) for labels in y]
    assert first != y
    crf = kind.set_params(constraints=constraints)
    one = clone(crf).fit(X, first, eval_set=(X, first))
    two = clone(crf).fit(X, y, eval_set=(X, y))
    assert one.history_["eval_metric"] == two.history_["eval_metric"]
    tags = {"O", "B-X", "I-X", "B-Y", "I-Y"}
    if constraints == "bioes":
        tags |= {"E-X", "S-X", "E-Y", "S-Y"}
    assert set(one.classes_.tolist()) == tags
    np.testing.assert_array_equal(one.log_likelihood(X, first), two.log_likelihood(X, y))
    assert np.isfinite(one.log_likelihood(X, first)).all()
    assert one.score(X, first) == two.score(X, y)


def test_constraints_add_labels_of_iob2():
    X = [np.zeros((2, 1), np.float32)] * 2
    crf = LinearCRF(constraints="bio").fit(X, [["I-X", "I-X"], ["O", "I-X"]])
    assert crf.classes_.tolist() == ["B-X", "I-X", "O"]
    crf = LinearCRF(constraints="bio").fit(X, [["O", "O"], [None, "I-X"]])
    assert crf.classes_.tolist() == ["B-X", "I-X", "O"]


def test_pretraining_obeys_the_constraints(bio_task):
    X, y = bio_task()
    crf = HiddenUnitCRF(3, pretrain="discriminative", pretrain_sweeps=2, sweeps=0, **SMALL)
    weights = [
        clone(crf).set_params(constraints=constraints).fit(X, y).model_.node.weights
        for constraints in (None, "bio", "bio")
    ]
    assert not np.allclose(weights[0], weights[1])
    np.testing.assert_array_equal(weights[1], weights[2])


def test_files_keep_constraints(kind, bio_task, tmp_path):
    X, y = bio_task()
    crf = kind.set_params(constraints="bio").fit(X, y)
    crf.save(tmp_path / "m.crfx")
    back = load(tmp_path / "m.crfx")
    assert back.constraints == "bio"
    for a, b in zip(crf.predict_marginals(X), back.predict_marginals(X), strict=True):
        np.testing.assert_array_equal(a, b)
    more = clone(back).fit(X, y, init_model=back)
    assert np.isfinite(more.log_likelihood(X, y)).all()


def test_files_keep_pairs(tmp_path):
    X, y = [np.zeros((3, 1), np.float32)], [["a", "b", "b"]]
    constraints = Constraints(forbidden=[("b", "a")], start_forbidden=["b"])
    crf = LinearCRF(constraints=constraints).fit(X, y)
    crf.save(tmp_path / "m.crfx")
    back = load(tmp_path / "m.crfx")
    assert to_plain(back.constraints) == to_plain(constraints)
    assert back.log_likelihood(X, [["b", "a", "a"]]).tolist() == [-np.inf]
    assert back.log_likelihood(X, y) == crf.log_likelihood(X, y)


def test_load_rejects_broken_constraints(bio_task, tmp_path, changed):
    crf = LinearCRF(constraints="bio").fit(*bio_task())
    for change in (lambda array: array[:2], lambda array: array.astype(np.float32), lambda _: None):
        crf.save(tmp_path / "m.crfx")
        changed(tmp_path / "m.crfx", arrays={"mask.pair": change})
        with pytest.raises(ValueError, match="is not a model file of crfx"):
            load(tmp_path / "m.crfx")


def first_labels(crf, X):
    """Return the probability of I-X as the first label."""
    code = crf.classes_.tolist().index("I-X")
    return np.array([p[0, code] for p in crf.predict_marginals(X)])


def test_constraints_of_base_model_are_dropped(bio_task):
    X, y = bio_task()
    strict = LinearCRF(constraints="bio").fit(X, y)
    assert not first_labels(strict, X).any()
    for loose in (GBCRF(2, max_depth=2, **SMALL), LinearCRF(max_iter=2)):  # on it; on with it
        loose.fit(X, y, init_model=strict)
        assert first_labels(loose, X).all()
    assert strict.model_.mask is not None


@pytest.mark.parametrize(("trainer", "edges"), [("sgd", "table"), ("lbfgs", "linear")])
def test_constraints_over_a_base_model(bio_task, edges, trainer):
    X, y = bio_task()
    base = GBCRF(2, max_depth=2, edges=edges, **SMALL).fit(X, y)
    crf = LinearCRF(constraints="bio", trainer=trainer, sweeps=2, **SMALL)
    crf.fit(X, y, init_model=base)
    assert crf.model_.base is not None
    assert not first_labels(crf, X).any()
    assert np.isfinite(crf.log_likelihood(X, y)).all()
    crf = LinearCRF(trainer="sgd", constraints="bio", **SMALL)
    assert not first_labels(crf.partial_fit(X, y).partial_fit(X, y), X).any()


def test_fit_obeys_allowed_labels_by_position(kind, bio_task):
    X, y = bio_task(lengths=[3, 4, 5, 4] * 3)
    allowed = [[{label, "O"} for label in labels] for labels in y]
    crf = kind.fit(X, y, allowed=allowed, eval_set={"X": X, "y": y, "allowed": allowed})
    assert np.isfinite(crf.history_["objective"]).all()
    assert crf.history_["eval_metric"][-1] < np.log(2)  # two labels at most
    # Where labels are unknown, those that are left are summed over.
    unknown = [[None, *labels[1:]] for labels in y]
    more = clone(kind).fit(X, unknown, allowed=allowed)
    assert np.isfinite(more.history_["objective"]).all()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"y": [["O", "I-X"], ["O"]], "constraints": [("O", "O")]}, r"pair \('O', 'I-X'\)"),
        ({"y": [["O", "NN"], ["O"]]}, "instance 0, position 1: label 'NN' does not fit"),
        ({"y": [["O", "S-X"], ["O"]]}, "instance 0, position 1: label 'S-X' does not fit"),
        (
            {"y": [["B-X", "O"], ["S-X"]], "constraints": "bioes"},
            r"instance 0, position 1: constraints forbid the pair \('B-X', 'O'\)",
        ),
        (
            {"eval_set": {"X": None, "y": [["O", "B-X"], ["O"]], "allowed": [["O", "O"], ["O"]]}},
            "eval_set: instance 0, position 1: the true label 'B-X' is not among",
        ),
    ],
)
def test_fit_rejects_forbidden_labels(more, message):
    """Training labels and the eval_set are checked; `tests/bad_inputs` has every estimator."""
    X = [np.zeros((2, 1), np.float32), np.zeros((1, 1), np.float32)]
    more = {"y": [["O", "B-X"], ["O"]], "constraints": "bio", **more}
    if "eval_set" in more:
        more["eval_set"] = {**more["eval_set"], "X": X}
    for crf in (LinearCRF(), GBCRF(1)):
        arguments = dict(more)
        crf.set_params(constraints=arguments.pop("constraints"))
        with pytest.raises(ValueError, match=message):
            crf.fit(X, **arguments)
        assert not hasattr(crf, "model_")


def test_predict_spans_rejects_forests_and_labels_without_spans(bio_task):
    X, y = bio_task()
    crf = LinearCRF(constraints="bio").fit(X, y)
    with pytest.raises(ValueError, match="must lie between above 0 and 1"):
        crf.predict_spans(X, min_probability=0)
    with pytest.raises(ValueError, match="parents are given"):
        crf.predict_spans(X, parents=[np.arange(len(x)) - 1 for x in X])
    with pytest.raises(ValueError, match="the label 'L0' marks no span"):
        LinearCRF().fit(X[:1], [["L0"]]).predict_spans(X[:1])


METHODS = ["predict", "predict_marginals", "predict_confidence", "sample"]


@pytest.mark.parametrize(
    "crf", [LinearCRF(order=2), GBCRF(2, edges="trees", **SMALL), LinearCRF(decode="marginal")]
)
def test_fit_rejects_constraints_without_valid_labelling(crf, monkeypatch):
    """The instance is named by its own number, not by that within a part."""
    monkeypatch.setattr("crfx.prediction.predictor.MOST_SCORES", 1)
    X = [np.zeros((length, 1), np.float32) for length in (2, 1, 2, 3, 2)]
    crf = clone(crf).set_params(constraints=[("a", "b")])
    crf.fit(X[:3], [["a", "b"], ["a"], ["a", "b"]])
    allowed = [[None, None], [None], ["b", None]]
    for method in METHODS:
        with pytest.raises(ValueError, match=r"^instance 3, position 1: constraints leave no lab"):
            getattr(crf, method)(X)
        with pytest.raises(ValueError, match=r"^instance 2, position 0: constraints leave no lab"):
            getattr(crf, method)(X[:3], allowed=allowed)


def test_fit_rejects_empty_allowed_pairs():
    X, y = [np.zeros((1, 1), np.float32)] * 2, [["a"], ["b"]]
    crf = LinearCRF(constraints=[]).fit(X, y)
    with pytest.raises(ValueError, match="instance 0, position 1: constraints leave no label here"):
        crf.predict([np.zeros((2, 1), np.float32)])
