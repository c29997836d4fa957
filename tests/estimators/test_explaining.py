"""`explain` and `importance`: what estimators of every kind must satisfy, and what they say."""

import functools
import json
import runpy
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.tree import DecisionTreeRegressor

from crfx import GBCRF, HiddenUnitCRF, LinearCRF, RankingCRF, TreeCRF
from crfx.explanation import towards
from crfx.testing import make_task

KINDS = runpy.run_path(str(Path(__file__).parents[1] / "saved_models" / "kinds.py"))["KINDS"]
LABELLING = {name: kind for name, kind in KINDS.items() if not kind.ranks}
VOTES = "hidden-perceptron"  # its sweeps vote: there is no score to explain
SUMS = {"rtol": 0, "atol": 1e-4}
PROBABILITIES = {"rtol": 0, "atol": 1e-5}
ONE = {"n_jobs": 1, "random_state": 0}


@functools.cache
def fitted(name):
    """Return the fitted estimator of a kind, which no test changes."""
    return KINDS[name].fitted()


def softmax(scores):
    odds = np.exp(scores - scores.max())
    return odds / odds.sum()


def total(terms):
    return terms.base + terms.contributions.sum(axis=0)


def one_instance(kind, instance=0, seed=1):
    """(X_i, further arguments) that the estimator was not fitted on."""
    X, _, more = kind.data(seed)
    return list(X)[instance], {name: values[instance] for name, values in more.items()}


def check(explanation, crf, X_i, more):
    """Check what holds for every explanation of a labelling."""
    lists = {name: [value] for name, value in more.items()}
    assert explanation.predicted.tolist() == crf.predict([X_i], **lists)[0].tolist()
    marginals = crf.predict_marginals([X_i], **lists)[0]
    exact = crf.model_.order == 1
    sides = {"parent", "children"} if "parents" in more else {"before", "after"}
    for position in explanation.positions:
        assert position.predicted == explanation.predicted[position.position]
        np.testing.assert_allclose(total(position), position.score, **SUMS)
        np.testing.assert_allclose(position.marginal, marginals[position.position], **PROBABILITIES)
        free = (
            np.ones(len(position.classes), bool) if position.allowed is None else position.allowed
        )
        open_scores = np.where(free, position.score, -np.inf)
        np.testing.assert_allclose(position.alone, softmax(open_scores), **PROBABILITIES)
        assert position.messages.keys() == sides
        for message in position.messages.values():
            assert abs(message[np.isfinite(message)].mean()) < 1e-9
        if exact:
            with_messages = softmax(open_scores + sum(position.messages.values()))
            np.testing.assert_allclose(with_messages, position.marginal, **PROBABILITIES)
        if position.edge is not None:
            np.testing.assert_allclose(total(position.edge), position.edge.score, **SUMS)
        assert (
            len(position.columns)
            == len(position.features)
            == len(position.inputs)
            == len(position.contributions)
        )
        assert len(set(position.features)) == len(position.features)


@pytest.mark.parametrize("name", [name for name in LABELLING if name != VOTES])
def test_explanations_sum_to_scores_and_marginals(name):
    kind, crf = KINDS[name], fitted(name)
    for instance in range(3):
        X_i, more = one_instance(kind, instance)
        explanation = crf.explain(X_i, **more)
        assert [position.position for position in explanation.positions] == list(
            range(len(explanation.predicted))
        )
        check(explanation, crf, X_i, more)
        json.dumps(explanation.to_plain(), allow_nan=False)
        assert explanation.as_text().startswith(explanation.method)


def test_explain_rejects_models_trained_by_herding():
    kind = KINDS[VOTES]
    with pytest.raises(ValueError, match="with herding sweeps vote"):
        kind.fitted().explain(one_instance(kind)[0])


@pytest.mark.parametrize("name", [name for name, kind in KINDS.items() if kind.ranks])
def test_explanations_of_rankings_sum_to_scores(name):
    kind, crf = KINDS[name], fitted(name)
    X, _, more = kind.data(1)
    X_q = X[: more["group"][0]]
    explanation = crf.explain(X_q)
    assert explanation.classes.tolist() == ["score"]
    (order,) = crf.rank(X_q, [len(X_q)])
    assert explanation.predicted[order].tolist() == list(range(1, len(X_q) + 1))
    for position, score in zip(explanation.positions, crf.predict(X_q), strict=True):
        np.testing.assert_allclose(total(position), score, **SUMS)
        assert position.marginal is None
        assert position.messages == {}
        (foremost, *_) = position.strongest()
        assert abs(foremost.contribution) == np.abs(position.contributions).max()
    json.dumps(explanation.to_plain(), allow_nan=False)
    assert "rank 1, score" in explanation.as_text()


@pytest.mark.parametrize(("edges", "kind"), [("table", sparse.csr_matrix), ("trees", np.asarray)])
def test_explain_samples_shapley_values_of_regressors(edges, kind):
    X, y = make_task(0, n_instances=10)
    X = [kind(x) for x in X]
    learner = DecisionTreeRegressor(max_depth=2)
    crf = GBCRF(2, base_learner=learner, edges=edges, **ONE).fit(X, y)
    explanation = crf.explain(X[0])
    assert explanation.method.startswith("Shapley values against the input 0, sampled")
    check(explanation, crf, X[0], {})


def test_explain_includes_context_trees_of_a_base_model():
    X, y = make_task(0, n_instances=10)
    base = TreeCRF(2, window=1, **ONE).fit(X, y)
    crf = GBCRF(2, max_depth=2, edges="linear", **ONE).fit(X, y, init_model=base)
    explanation = crf.explain(X[0])
    check(explanation, crf, X[0], {})
    assert any("label[-1]" in position.features for position in explanation.positions)


@pytest.mark.parametrize(("order", "seed"), [(1, 0), (1, 1), (2, 1), (3, 2)])
def test_explanation_messages_obey_constraints(order, seed):
    kind = KINDS["linear-constraints"]
    X, y, _ = kind.data(seed)
    crf = kind.make(order=order).fit(X, y)
    short = X[0][:2]  # of orders 2 and 3 such a chain has no edge but its constraints
    for X_i in (X[0], short):
        explanation = crf.explain(X_i)
        check(explanation, crf, X_i, {})
        inside = [name.startswith("I") for name in explanation.classes]
        assert np.isneginf(explanation.positions[0].messages["before"][inside]).all()
    with_messages = softmax(
        explanation.positions[1].score + sum(explanation.positions[1].messages.values())
    )
    np.testing.assert_allclose(with_messages, explanation.positions[1].marginal, **PROBABILITIES)


def test_explanation_scores_labels_not_allowed():
    X, y = make_task(0, n_instances=10)
    crf = LinearCRF(**ONE).fit(X, y)
    allowed = [["L0", "L2"], *[None] * (len(X[0]) - 1)]
    explanation = crf.explain(X[0], allowed=allowed)
    check(explanation, crf, X[0], {"allowed": allowed})
    first = explanation.positions[0]
    assert np.isfinite(first.score).all()
    assert first.allowed.tolist() == [True, False, True]
    assert (first.alone[1], first.marginal[1]) == (0.0, 0.0)


@pytest.mark.parametrize(
    "crf",
    [
        GBCRF(3, max_depth=2, edges="trees", order=2, **ONE),
        GBCRF(3, max_depth=2, edges="linear", **ONE),
        LinearCRF(edges="linear", order=2, **ONE),
    ],
    ids=str,
)
def test_explanation_covers_feature_dependent_edges(crf):
    X, y = make_task(0, n_instances=20)
    explanation = crf.fit(X, y).explain(X[0])
    edges = crf.model_.problem(crf._input(X[:1], None, None, None).batch).scores.edge
    codes = np.searchsorted(explanation.classes, explanation.predicted)
    for position in explanation.positions[: crf.order]:
        assert position.edge is None
        assert position.edge_contributions() == []
    for position in explanation.positions[crf.order :]:
        before = range(position.position - crf.order, position.position)
        assert position.edge.before == explanation.predicted[before].tolist()
        expected = edges[(position.position, *codes[before])]
        np.testing.assert_allclose(position.edge.score, expected, **SUMS)
        (foremost,) = position.edge_contributions(n=1)
        values = towards(position.edge.contributions, codes[position.position])
        assert abs(foremost.contribution) == np.abs(values).max()
    assert "the edge from L" in explanation.as_text()


def test_explain_sums_edges_over_base_models():
    X, y = make_task(0, n_instances=12)
    base = LinearCRF(edges="linear", **ONE).fit(X, y)
    crf = GBCRF(2, max_depth=2, edges="trees", **ONE).fit(X, y, init_model=base)
    explanation = crf.explain(X[0])
    edges = crf.model_.problem(crf._input(X[:1], None, None, None).batch).scores.edge
    for position in explanation.positions[1:]:
        before = explanation.classes.tolist().index(position.edge.before[0])
        np.testing.assert_allclose(position.edge.score, edges[position.position, before], **SUMS)


def test_explanations_of_trees_agree_with_predict_contributions():
    kind, crf = KINDS["gbcrf-words"], fitted("gbcrf-words")
    X_i, _ = one_instance(kind)
    (shap,) = crf.predict_contributions([X_i])
    for position in crf.explain(X_i).positions:
        np.testing.assert_array_equal(position.base, shap[position.position, :, -1])
        np.testing.assert_array_equal(
            position.contributions, shap[position.position][:, position.columns].T
        )
        assert position.features == crf.feature_names_in_[position.columns].tolist()


def test_explanations_name_conjunctions():
    kind, crf = KINDS["linear-induction"], fitted("linear-induction")
    names = {" & ".join(map(str, conjunction)) for conjunction in crf.induced_features_}
    explanation = crf.explain(one_instance(kind)[0])
    explained = {
        (name, int(column))
        for position in explanation.positions
        for name, column in zip(position.features, position.columns, strict=True)
        if " & " in name
    }
    assert explained
    assert explained <= {(name, -1) for name in names}
    assert names & set(crf.importance().node)


def test_explanation_inputs_keep_original_values():
    kind = KINDS["treecrf-categories"]
    X_i, _ = one_instance(kind)
    position = kind.fitted(window=1).explain(X_i).positions[0]
    inputs = dict(zip(position.features, position.inputs, strict=True))
    assert inputs["kind"] == X_i["kind"].iloc[0]
    assert inputs["number"] == pytest.approx(X_i["number"].iloc[0])
    assert {value for name, value in inputs.items() if name.endswith("[-1]")} <= {"outside", None}
    kind = KINDS["gbcrf-independent"]  # with holes
    X_i, _ = one_instance(kind)
    for position in kind.fitted().explain(X_i).positions:
        for column, value in zip(position.columns, position.inputs, strict=True):
            entry = X_i[position.position, column]
            assert value is None if np.isnan(entry) else value == entry


def test_strongest_ranks_contrast_with_other_labels():
    X, y = make_task(0, n_instances=10)
    crf = LinearCRF(**ONE).fit(X, y)
    position = crf.explain(X[0]).positions[0]
    for label in crf.classes_:
        place = crf.classes_.tolist().index(label)
        others = np.delete(position.contributions, place, axis=1).mean(axis=1)
        expected = dict(
            zip(position.features, position.contributions[:, place] - others, strict=True)
        )
        strongest = position.strongest(label, n=4)
        assert {each.feature: each.contribution for each in strongest} == pytest.approx(expected)
        sizes = [abs(each.contribution) for each in strongest]
        assert sizes == sorted(sizes, reverse=True)
    assert position.strongest() == position.strongest(position.predicted)
    assert len(position.strongest(n=2)) == 2
    with pytest.raises(ValueError, match="label 'L9' is not one of the model's: 'L0'"):
        position.strongest("L9")


def test_towards_ignores_forbidden_labels():
    assert towards([3.0, 1.0, -np.inf], 0) == 2.0
    assert towards([3.0, -np.inf, -np.inf], 0) == np.inf
    assert towards([[3.0]], 0).tolist() == [3.0]


def test_as_text_lines_sum_to_score():
    kind, crf = KINDS["linear-words"], fitted("linear-words")
    explanation = crf.explain(one_instance(kind, 1)[0])
    blocks = explanation.as_text(
        top=1, tokens=[f"w{k}" for k in range(len(explanation.predicted))]
    ).split("\n\n")[1:]
    assert len(blocks) == len(explanation.positions)
    for block, position in zip(blocks, explanation.positions, strict=True):
        first, *lines = block.splitlines()
        assert first.startswith(
            f"{position.position} w{position.position}: {position.predicted}, probability "
        )
        terms = [float(line.split()[0]) for line in lines if " from " not in line]
        place = position.classes.tolist().index(position.predicted)
        assert sum(terms) == pytest.approx(float(towards(position.score, place)), abs=0.003)


def test_explain_takes_positions():
    X, y = make_task(0, n_instances=10)
    for crf in (TreeCRF(2, window=1, **ONE), LinearCRF(**ONE), HiddenUnitCRF(2, sweeps=1, **ONE)):
        crf.fit(X, y)
        whole = crf.explain(X[0])
        explanation = crf.explain(X[0], positions=[3, 1])
        assert [position.position for position in explanation.positions] == [3, 1]
        assert len(explanation.predicted) == len(X[0])
        for position in explanation.positions:
            same = whole.positions[position.position]
            assert position.features == same.features
            np.testing.assert_allclose(position.contributions, same.contributions, **SUMS)
        assert crf.explain(X[0], positions=2).positions[0].position == 2
        assert crf.explain(X[0][:0]).positions == []


def test_explain_rejects_positions_out_of_range(not_refused):
    X, y = make_task(0, n_instances=10)
    cases = [
        ([7], "position 7 is not there: the instance has 6, counted from 0"),
        ([-1], "position -1 is not there"),
        ([0.5], "pass whole numbers, counted from 0"),
        ("all", "positions is 'all': pass whole numbers"),
        ([[0], [1, 2]], "pass whole numbers"),
        (True, "positions is True"),
    ]
    cases = {str(positions): (positions, message) for positions, message in cases}
    crf = LinearCRF(**ONE).fit(X, y)
    ranker = RankingCRF("linear", sweeps=1, **ONE).fit(X[0][:6], range(6), group=[6])
    for model in (crf, ranker):
        assert (
            not_refused(lambda at, model=model: model.explain(X[0][:6], positions=at), cases) == {}
        )


def test_explain_rejects_several_instances_of_words():
    words, y, _ = KINDS["linear-words"].data(0)
    crf = KINDS["linear-words"].make().fit(words, y)
    with pytest.raises(ValueError, match="explain takes one instance"):
        crf.explain(words)


def test_explanations_of_context_trees_name_previous_labels():
    X, y = make_task(0, n_instances=8)
    explanation = TreeCRF(2, window=1, **ONE).fit(X, y).explain(X[0])
    first, second = explanation.positions[:2]
    assert (first.alone_given, second.alone_given) == ([], [first.predicted])
    assert second.to_plain()["alone_given"] == [first.predicted]
    lines = [line for line in explanation.as_text().splitlines() if "probability" in line]
    assert "without edges" in lines[0]
    assert all("given the labels before" in line for line in lines[1:])
    assert "given" not in LinearCRF(max_iter=3, **ONE).fit(X, y).explain(X[0]).as_text()


def test_as_text_rejects_wrong_numbers_of_tokens_and_features():
    X, y = make_task(0, n_instances=5)
    explanation = LinearCRF(max_iter=3).fit(X, y).explain(X[0])
    with pytest.raises(ValueError, match=rf"there are 2 tokens, .* has {len(X[0])} positions"):
        explanation.as_text(tokens=["a", "b"])
    for ask in (explanation.positions[0].strongest, explanation.positions[0].edge_contributions):
        assert ask(n=0) == []
    with pytest.raises(ValueError, match="-1 features are asked for"):
        explanation.positions[0].strongest(n=-1)
    with pytest.raises(ValueError, match="-2 features are asked for"):
        explanation.as_text(top=-2)


def test_to_plain_writes_labels_of_bytes_as_text():
    X, y = make_task(0, n_instances=5)
    crf = LinearCRF(max_iter=3).fit(X, [[str(label).encode() for label in labels] for labels in y])
    plain = crf.explain(X[0]).to_plain()
    assert "b'L0'" in json.loads(json.dumps(plain))["classes"]
    assert set(plain["predicted"]) <= set(plain["classes"])


# Importance.


def second_feature_task():
    """Labels that column 1 tells alone; column 2 makes them change."""
    random = np.random.default_rng(0)
    X = [random.normal(size=(8, 3)).astype(np.float32) for _ in range(20)]
    return X, [np.where(x[:, 1] > 0, "b", "a").tolist() for x in X]


def test_importance_is_sorted_and_covers_edges():
    for name, kind in KINDS.items():
        importance = fitted(name).importance()
        assert importance.node, name
        has_edges = not kind.ranks and fitted(name).model_.edge_family is not None
        assert bool(importance.edge) == has_edges, name
        assert (importance.edge_by == "no edges") == (not has_edges), name
        for values in (importance.node, importance.edge):
            assert all(value > 0 for value in values.values()), name
            assert list(values.values()) == sorted(values.values(), reverse=True), name


def test_importance_ranks_informative_feature_first():
    for crf in (
        GBCRF(5, max_depth=2, edges="trees", **ONE),
        TreeCRF(5, **ONE),
        LinearCRF(edges="linear", **ONE),
        HiddenUnitCRF(4, sweeps=5, **ONE),
    ):
        assert next(iter(crf.fit(*second_feature_task()).importance().node)) == "f1", crf


def test_importance_of_trees_is_share_of_gain():
    X, y = make_task(0, n_instances=14)
    crf = GBCRF(3, max_depth=2, edges="trees", **ONE).fit(X, y)
    importance = crf.importance()
    gains = crf.feature_importance()
    expected = {name: gain / sum(gains.values()) for name, gain in gains.items()}
    assert importance.node == pytest.approx(expected, rel=1e-6)
    assert sum(importance.edge.values()) == pytest.approx(1.0, rel=1e-6)
    importance = TreeCRF(3, **ONE).fit(X, y).importance()
    assert set(importance.edge) == {"label[-1]"}
    assert sum(importance.node.values()) + sum(importance.edge.values()) == pytest.approx(
        1.0, rel=1e-6
    )


def test_importance_of_weights_is_range_over_labels():
    crf = fitted("linear-words")
    weights = crf.coef_.toarray()
    importance = crf.importance()
    expected = dict(zip(crf.feature_names_in_, np.ptp(weights, axis=0), strict=True))
    assert importance.node == pytest.approx({k: v for k, v in expected.items() if v}, rel=1e-6)
    table = crf.transitions_
    a, b = np.unravel_index(np.abs(table).argmax(), table.shape)
    assert next(iter(importance.edge)) == f"{crf.classes_[a]} -> {crf.classes_[b]}"
    assert next(iter(importance.edge.values())) == pytest.approx(abs(float(table[a, b])))


def test_importance_of_linear_ranking_is_absolute_weight():
    crf = fitted("ranking-linear")
    importance = crf.importance()
    assert (importance.node_by, importance.edge) == ("size of its weight", {})
    assert importance.node == pytest.approx(
        {f"f{k}": abs(w) for k, w in enumerate(crf.coef_)}, rel=1e-6
    )


def test_importance_names_types_and_constants_of_edges():
    assert any("(type 1)" in name for name in fitted("gbcrf-typed").importance().edge)
    assert "(constant)" in fitted("linear-edges").importance().edge


def test_importance_of_regressors_refers_to_explain():
    X, y = make_task(0, n_instances=10)
    for edges in ("table", "trees"):
        learner = DecisionTreeRegressor(max_depth=2)
        importance = GBCRF(2, base_learner=learner, edges=edges, **ONE).fit(X, y).importance()
        assert not importance.node
        assert "`explain` tells it of single predictions" in importance.node_by
        assert bool(importance.edge) == (edges == "table")
    assert importance.edge_by == importance.node_by
