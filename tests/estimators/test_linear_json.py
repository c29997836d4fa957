"""Linear models as JSON: a plain reader of every field scores as the model does."""

import json
import re
import runpy
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest

from crfx import LinearCRF

ROOT = Path(__file__).parents[2]
KINDS = runpy.run_path(str(ROOT / "tests" / "saved_models" / "kinds.py"))["KINDS"]
LINEAR = [
    name for name, kind in KINDS.items() if isinstance(kind.make(), LinearCRF) and kind.base is None
]
CLOSE = {"rtol": 1e-4, "atol": 1e-4}
"""The model's scores are float32."""


def fnv(name, size):
    state = 0xCBF29CE484222325
    for byte in name.encode():
        state = (state ^ byte) * 0x100000001B3 % 2**64
    return (state ^ state >> 29) % size


def numbers_of(model, position):
    """Return values by feature number, including conjunctions."""
    numbers = {}
    names = None if model["feature_names"] is None else model["feature_names"]
    if isinstance(position, np.ndarray):
        numbers = {k: float(v) for k, v in enumerate(position) if not np.isnan(v)}
    else:
        pairs = position.items() if isinstance(position, dict) else ((text, 1) for text in position)
        for key, value in pairs:
            name = f"{key}:{value}" if isinstance(value, str) else key
            value = 1.0 if isinstance(value, str) else float(value)
            if model["hashed"]:
                number = fnv(name, model["n_features"])
            elif name not in names:
                continue
            else:
                number = names.index(name)
            numbers[number] = numbers.get(number, 0.0) + value
    for k, columns in enumerate(model["conjunctions"]):
        values = [numbers.get(column, 0.0) for column in columns]
        numbers[model["n_features"] + k] = float(np.prod(values))
    return numbers


def score(model, rows, labels, parents=None, types=None):
    """Return the score of one labelling, computed as the page describes it."""
    forbidden = model["forbidden"] or {"pairs": [], "start": [], "end": []}
    pairs = [list(pair) for pair in pairwise(labels)]
    if (
        labels[0] in forbidden["start"]
        or labels[-1] in forbidden["end"]
        or any(pair in forbidden["pairs"] for pair in pairs)
    ):
        return -np.inf
    order, total = model["order"], 0.0
    values = [numbers_of(model, row) for row in rows]
    for t, label in enumerate(labels):
        total += sum(
            values[t].get(f, 0.0) * w
            for f, its_label, w in model["node_weights"]
            if its_label == label
        )
        before = range(t - order, t) if parents is None else [parents[t]]
        is_first = t == 0 if parents is None else parents[t] < 0
        if is_first and model["start"]:
            total += model["start"][label]
        if before[0] < 0:
            continue
        edge = [*(labels[s] for s in before), label]
        if model["transitions"]:
            table = model["transitions"]
            for index in [*([] if model["n_types"] is None else [types[t]]), *edge]:
                table = table[index]
            total += table
        if model["edge_weights"]:
            features = values[t] | {model["n_features"]: 1.0}
            for feature, *entry, weight in model["edge_weights"][0 if types is None else types[t]]:
                total += features.get(feature, 0.0) * weight if entry == edge else 0.0
    return total + (model["end"][labels[-1]] if model["end"] and parents is None else 0.0)


@pytest.mark.parametrize("name", LINEAR)
def test_json_scores_agree_with_model(tmp_path, name):
    """Differences between labellings are those of the model's log-likelihoods."""
    kind = KINDS[name]
    crf = kind.fitted()
    crf.to_json(tmp_path / "model.json")
    model = json.loads((tmp_path / "model.json").read_text(encoding="utf-8"))
    assert model["labels"] == crf.classes_.tolist()
    X, _, more = kind.data(1)
    listed = list(X)
    picked = [k for k, rows in enumerate(listed) if 2 <= len(rows) <= 4][:2]
    for k in picked:
        structure = {key: [value[k]] for key, value in more.items()}
        parents, types = (structure.get(key, [None])[0] for key in ("parents", "edge_types"))
        labellings = list(product(range(len(model["labels"])), repeat=len(listed[k])))[::2]
        expected, scores = [], []
        for labels in labellings:
            y = [[model["labels"][label] for label in labels]]
            instances = type(X)(X.template, [X.instances[k]]) if hasattr(X, "template") else [X[k]]
            expected.append(crf.log_likelihood(instances, y, **structure)[0])
            scores.append(score(model, listed[k], labels, parents, types))
        # What is forbidden log_likelihood reads as IOB1, and tells of its IOB2.
        is_allowed = np.isfinite(scores)
        assert is_allowed.all() == (crf.constraints is None)
        scores, expected = (np.array(values)[is_allowed] for values in (scores, expected))
        np.testing.assert_allclose(scores - scores[0], expected - expected[0], **CLOSE)


def test_documented_json_reader_decodes_as_model(tmp_path, monkeypatch, capsys):
    """The data include words that the model has not seen."""
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "model-file.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL)
    namespace = {}
    for block in blocks:
        exec(compile(block, "model-file.md", "exec"), namespace)
    assert max(len(block.splitlines()) for block in blocks) <= 55
    kind = KINDS["linear-words"]
    for arguments in ({}, {"start_end": False}):
        crf = kind.fitted(max_iter=30, **arguments)
        crf.to_json("words.json")
        X, _, _ = kind.data(3)
        model = namespace["read"]("words.json")
        decoded = [namespace["viterbi"](*model, rows) for rows in X]
        assert decoded == [labels.tolist() for labels in crf.predict(X)]
        assert len({label for labels in decoded for label in labels}) == 3


def test_json_scores_of_another_model_differ(tmp_path):
    """The companion: the JSON of another model decodes otherwise."""
    kind = KINDS["linear-words"]
    kind.fitted(max_iter=0).to_json(tmp_path / "model.json")
    model = json.loads((tmp_path / "model.json").read_text(encoding="utf-8"))
    assert model["node_weights"] == []
    assert not np.any(model["transitions"])


def test_to_json_rejects_bases_and_unfitted_models(tmp_path):
    with pytest.raises(ValueError, match="stands on another"):
        KINDS["linear-on-gbcrf"].fitted().to_json(tmp_path / "model.json")
    with pytest.raises(ValueError, match="not fitted"):
        LinearCRF().to_json(tmp_path / "model.json")
    assert not list(tmp_path.iterdir())


def test_to_json_writes_models_of_subclasses(tmp_path):
    class Mine(LinearCRF):
        pass

    Mine(max_iter=2).fit([[["a"], ["b"]]], [["x", "y"]]).to_json(tmp_path / "m.json")
    assert json.loads((tmp_path / "m.json").read_text())["labels"] == ["x", "y"]
