"""Workers that train together know the same columns, labels and weights as one who has read all."""

import re

import numpy as np
import pandas as pd
import pytest
from parts import fitted, fitted_together, part_of
from scipy import sparse
from sklearn.base import clone

from crfx import GBCRF, LinearCRF
from crfx.distributed.collective import together
from crfx.testing import make_task

UNTRAINED = LinearCRF(max_iter=0, n_jobs=1)
SAME = 1e-5
"""Sums are taken in another order, of scores in single precision."""


def words(X):
    """Texts: those of the first instances are other ones than those of the last."""
    return [[[f"a{int(row[0] * 2)}", f"b{k // 4}", "x"] for row in x] for k, x in enumerate(X)]


@pytest.mark.parametrize(("n_workers", "min_count"), [(1, 4), (2, 1), (3, 4)])
def test_feature_numbers_do_not_depend_on_workers(n_workers, min_count):
    X, y = make_task()
    crf = LinearCRF(max_iter=0, min_count=min_count, n_jobs=1)
    data = {"X": words(X), "y": y}
    alone = fitted(crf, data)
    for model in fitted_together(n_workers, crf, data):
        assert model.columns_.vocabulary.names() == alone.columns_.vocabulary.names()
        assert (model.coef_ != alone.coef_).nnz == 0
        assert model.coef_.nnz == alone.coef_.nnz  # zeros that have weights included


def test_min_count_counts_over_all_workers():
    X, y = [[["rare"]], [["rare"]], [["a"]], [["a"]]], [["u"], ["v"], ["u"], ["v"]]
    crf = LinearCRF(max_iter=0, min_count=2)
    (_, model) = fitted_together(2, crf, {"X": X, "y": y})
    assert model.columns_.vocabulary.names() == ["rare", "a"]
    (_, model) = fitted_together(2, crf, {"X": [[["one"]], *X[1:]], "y": y})
    assert model.columns_.vocabulary.names() == ["a"]
    with pytest.raises(ValueError, match="min_count is 3, and no feature occurs that often"):
        fitted_together(2, LinearCRF(min_count=3), {"X": X, "y": y})


def test_warm_start_with_hashed_and_new_names():
    X, y = make_task()
    data = {"X": words(X), "y": y}
    crf = LinearCRF(max_iter=0, n_hashed=64)
    assert (fitted_together(2, crf, data)[1].coef_ != fitted(crf, data).coef_).nnz == 0
    start = UNTRAINED.fit(data["X"][:4], y[:4], classes=["L0", "L1", "L2"])
    alone = fitted(UNTRAINED, data, init_model=start)
    model = fitted_together(3, UNTRAINED, data, init_model=start)[2]
    assert model.columns_.vocabulary.names() == alone.columns_.vocabulary.names()


def framed(X, dtype):
    return [
        pd.DataFrame({"a": x[:, 0], "c": pd.Series(x[:, 1].round().astype(int)).astype(dtype)})
        for x in X
    ]


def test_categories_are_merged_over_parts():
    X, y = make_task(n_instances=24)
    X = [x.round() for x in X]
    numbers = sorted({int(value) for x in X for value in x[:, 1].round()})
    crf = GBCRF(4, n_jobs=1)
    alone = crf.fit(framed(X, pd.CategoricalDtype(numbers)), y)

    def work(workers):
        rows, labels = part_of(workers, X), part_of(workers, y)
        seen = sorted({int(value) for each in rows for value in each[:, 1].round()})
        assert seen != numbers
        return clone(crf).fit(framed(rows, pd.CategoricalDtype(seen)), labels)

    for model in together(3, work):
        assert model.columns_ == alone.columns_
        assert model.columns_.categories["c"] == numbers
        predicted = model.predict(framed(X, pd.CategoricalDtype(numbers)))
        expected = alone.predict(framed(X, pd.CategoricalDtype(numbers)))
        assert [p.tolist() for p in predicted] == [p.tolist() for p in expected]


def test_labels_and_weights_are_merged_over_workers():
    X = [np.array([[1.0, k]]) for k in range(6)]
    data = {"X": X, "y": [["b"], ["a"], ["b"], [None], ["c"], ["b"]]}
    weight = [1.0, 2.0, 1.0, 1.0, 1.0, 3.0]
    crf = LinearCRF(max_iter=3, class_weight="balanced")
    alone = fitted(crf, data | {"sample_weight": weight})
    for model in fitted_together(3, crf, data | {"sample_weight": weight}):
        assert model.classes_.tolist() == ["a", "b", "c"]
        np.testing.assert_allclose(model.coef_, alone.coef_, rtol=SAME)
    with pytest.raises(ValueError, match="class_weight is 0 for every label"):
        fitted_together(3, LinearCRF(class_weight={"a": 0, "b": 0, "c": 0}), data)


def test_edge_types_are_counted_over_all():
    X, y = [np.ones((2, 1))] * 4, [["a", "b"]] * 4
    types = [[0, 0], [0, 0], [0, 0], [0, 2]]
    for edges in ("table", "linear"):
        for model in fitted_together(
            2, LinearCRF(edges=edges, max_iter=0), {"X": X, "y": y, "edge_types": types}
        ):
            assert model.model_.n_types == 3
    types[2][1] = -1
    with pytest.raises(ValueError, match="instance 2, position 1: edge type -1 is negative"):
        fitted_together(2, GBCRF(1), {"X": X, "y": y, "edge_types": types})


FRAMES = framed([np.ones((2, 2)), np.zeros((1, 2))], pd.CategoricalDtype([0, 1]))


@pytest.mark.parametrize(
    ("crf", "X"),
    [
        (GBCRF(2), [np.ones((2, 3)), np.zeros((1, 3))]),
        (LinearCRF(max_iter=3), [sparse.csr_matrix(np.ones((2, 3))), sparse.csr_matrix(np.eye(3))]),
        # Of categories XGBoost sees nothing where there are no rows.
        (GBCRF(2), [frame.astype(float) for frame in FRAMES]),
        (GBCRF(2), [[["a", "b"], ["a"]], [["c"]]]),
        (LinearCRF(max_iter=3), [[[], ["a"]], [[], []]]),
        (LinearCRF(max_iter=3), [[{"a": 1.5}, {}], []]),
    ],
    ids=["arrays", "CSR", "frames", "texts", "texts without features", "dicts"],
)
def test_workers_without_instances_get_the_same_model(crf, X):
    y = [list("uv"), ["u"] * (len(X[1]) if isinstance(X[1], list) else X[1].shape[0])]
    parts = [([], []), (X[:1], y[:1]), ([], []), (X[1:], y[1:])]
    alone = clone(crf).fit(X, y)
    models = together(4, lambda workers: clone(crf).fit(*parts[workers.rank]))
    for model in models:
        np.testing.assert_allclose(
            model.history_["objective"], alone.history_["objective"], rtol=SAME
        )
        assert [labels.tolist() for labels in model.predict(X)] == [
            predicted.tolist() for predicted in alone.predict(X)
        ]


def test_zero_weights_may_empty_a_worker():
    X, y = make_task(n_instances=12)
    X = [x.round() for x in X]
    data = {"X": X, "y": y, "sample_weight": [0.0] * 4 + [1.0] * 8}
    for crf in (GBCRF(3, n_jobs=1), LinearCRF(max_iter=5, n_jobs=1)):
        alone = fitted(crf, data)
        for model in fitted_together(3, crf, data):
            np.testing.assert_allclose(
                model.history_["objective"], alone.history_["objective"], rtol=SAME
            )


GOOD = {"X": [np.zeros((2, 2)) for _ in range(6)], "y": [["a", "b"]] * 6}


def changed(name, instance, value):
    """Good data but for one instance."""
    values = list(GOOD.get(name, [[-1, 0]] * 6))
    values[instance] = value
    return GOOD | {name: values}


WRONG = [
    (changed("X", 4, np.zeros(3)), "instance 4: X has shape (3,)"),
    (changed("y", 5, ["a"]), "instance 5:"),
    (changed("y", 5, ["a", {}]), "instance 5, position 1: y holds {}"),
    (changed("parents", 4, [1, 0]), "instance 4"),
    (GOOD | {"sample_weight": [1, 1, 1, 1, -1, 1]}, "instance 4: its weight -1.0"),
    (GOOD | {"y": [["a", "b"]] * 4}, "y has 2 instances but X has 3"),
    (changed("X", 4, np.zeros((2, 3))), "instance 4: X has 3 features, instance 3 has 2"),
    (GOOD | {"X": [], "y": []}, "X has no instances"),
]


def test_error_of_one_worker_stops_all_with_global_number():
    def work(workers):
        for data, message in WRONG:
            part = {name: part_of(workers, values) for name, values in data.items()}
            with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
                LinearCRF().fit(**part)

    together(2, work)


def test_padding_warns_once():
    X, y = np.ones((4, 5, 2)), [["a", "b", "pad", "pad", "pad"]] * 4
    X[:, 2:] = 0
    X[:, :2] += np.arange(2)
    with pytest.warns(UserWarning, match=r"shape \(4, 5, 2\), and 4 of its 4 instances") as warned:
        fitted_together(2, UNTRAINED, {"X": X, "y": y})
    assert len(warned) == 1
