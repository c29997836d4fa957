"""Files that earlier versions wrote: loaded for ever, with the answers that they gave then."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from crfx import load
from tests.saved_models.kinds import KINDS, TEMPLATE

SAVED = Path(__file__).parents[1] / "saved_models"
FILES = sorted(path.stem for path in SAVED.glob("*.npz") if path.stem != "crfsuite")
CLOSE = {"rtol": 1e-5, "atol": 1e-6}
"""From one machine, and one version of NumPy and XGBoost, to another."""


def question(expected, crf):
    """X and what goes with it, from a file that `write.py` wrote."""
    arrays = {name: expected[name] for name in expected.files}
    if "X" in arrays:
        X = arrays["X"]
    elif crf.columns_.categories:
        rows = json.loads(str(arrays["words"]))
        X = pd.DataFrame([row for x in rows for row in x])
        X = X.astype(dict.fromkeys(crf.columns_.categories, "category"))
    else:
        X = json.loads(str(arrays["words"]))
        if isinstance(X[0][0], str):  # words, which a template looks at
            X = TEMPLATE(X)
    more = {name: arrays[name] for name in ("parents", "edge_types") if name in arrays}
    return X, more | ({"lengths": arrays["lengths"]} if hasattr(X, "shape") else {})


def test_every_kind_has_a_file():
    assert {f"{name}-1" for name in KINDS} <= set(FILES)


@pytest.mark.parametrize("name", FILES)
def test_saved_models(name):
    crf = load(SAVED / f"{name}.crfx")
    with np.load(SAVED / f"{name}.npz") as expected:
        if "scores" in expected:
            np.testing.assert_allclose(crf.predict(expected["X"]), expected["scores"], **CLOSE)
            return
        X, more = question(expected, crf)
        labels, marginals = crf.predict(X, **more), crf.predict_marginals(X, **more)
        if isinstance(labels, list):
            labels, marginals = np.concatenate(labels), np.concatenate(marginals)
        assert labels.tolist() == expected["labels"].tolist()
        np.testing.assert_allclose(marginals, expected["marginals"], **CLOSE)


def test_other_answers_are_seen():
    """The companion: the files differ from one another by far more than rounding."""
    crf, other = (load(SAVED / f"{name}-1.crfx") for name in ("gbcrf", "linear"))
    with np.load(SAVED / "gbcrf-1.npz") as expected:
        X, more = question(expected, crf)
        assert not np.allclose(other.predict_marginals(X, **more), expected["marginals"], atol=0.01)
