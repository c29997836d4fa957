"""Models of CRFsuite taken over: they tag as CRFsuite does."""

from pathlib import Path

import numpy as np
import pytest

from crfx import LinearCRF, load
from crfx.estimators.crfsuite_models import from_crfsuite

SAVED = Path(__file__).parents[1] / "saved_models"
CLOSE = {"rtol": 0, "atol": 1e-6}
"""CRFsuite sums in float64, our scores are float32."""
ALGORITHMS = {
    "lbfgs": {"c1": 0.1, "c2": 0.01},
    "l2sgd": {"max_iterations": 20},
    "ap": {"max_iterations": 10},
    "pa": {"max_iterations": 10},
    "arow": {"max_iterations": 10},
}


def _sentences(seed, n_sentences=40):
    random = np.random.default_rng(seed)
    X, y = [], []
    for length in random.integers(1, 15, n_sentences):
        codes = np.cumsum(random.integers(2, size=length)) % 5
        words = [f"w{(random.integers(30) + 5 * code) % 35}" for code in codes]
        X.append(
            [
                {"word": word, "wert": float(random.normal()), "süß": bool(code > 2)}
                if random.random() < 0.5
                else {f"all={word}": 1.0, "more": {"x": 0.5, "y": "z"}}
                for word, code in zip(words, codes, strict=True)
            ]
        )
        y.append([["O", "B-ü", "I ü", "Z", "a"][code] for code in codes])
    return X, y


@pytest.mark.parametrize("possible", [False, True])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_from_crfsuite_predicts_as_crfsuite(tmp_path, algorithm, possible):
    library = pytest.importorskip("pycrfsuite", reason="CRFsuite as witness: crfx[bench]")
    path = str(tmp_path / "model")
    settings = {
        **ALGORITHMS[algorithm],
        "feature.possible_states": possible,
        "feature.possible_transitions": possible,
    }
    trainer = library.Trainer(algorithm, settings, verbose=False)
    for xs, ys in zip(*_sentences(0), strict=True):
        trainer.append(library.ItemSequence(xs), ys)
    trainer.train(path)
    tagger, crf = library.Tagger(), from_crfsuite(path)
    tagger.open(path)
    assert sorted(tagger.labels()) == crf.classes_.tolist()
    X, _ = _sentences(1)  # with words that training has not seen
    for xs, labels, marginals in zip(X, crf.predict(X), crf.predict_marginals(X), strict=True):
        assert tagger.tag(library.ItemSequence(xs)) == labels.tolist()
        expected = [[tagger.marginal(c, t) for c in crf.classes_] for t in range(len(xs))]
        np.testing.assert_allclose(marginals, expected, **CLOSE)


def test_without_crfsuite():
    """The file, and what CRFsuite says of it, are kept: `tests/saved_models/write.py`."""
    crf = from_crfsuite(SAVED / "crfsuite.model")
    with np.load(SAVED / "crfsuite.npz") as expected:
        X = [[str(text).split() for text in expected["X"]]]
        assert crf.predict(X)[0].tolist() == expected["labels"].tolist()
        assert crf.classes_.tolist() == expected["classes"].tolist()
        np.testing.assert_allclose(crf.predict_marginals(X)[0], expected["marginals"], **CLOSE)


def test_from_crfsuite_model_saves_and_warm_starts(tmp_path):
    crf = from_crfsuite(SAVED / "crfsuite.model")
    X, y = _sentences(2)
    X = [[{**row, "sign": "-+"[len(row) > 2]} for row in x] for x in X]
    crf.save(tmp_path / "model.crfx")
    loaded = load(tmp_path / "model.crfx")
    for a, b in zip(crf.predict_marginals(X), loaded.predict_marginals(X), strict=True):
        np.testing.assert_array_equal(a, b)
    y = [[label if label in crf.classes_ else None for label in labels] for labels in y]
    further = LinearCRF(features="observed", start_end=False, max_iter=3)
    further.fit(X, y, init_model=loaded)
    assert set(crf.feature_names_in_) <= set(further.feature_names_in_)
    assert further.log_likelihood(X, y).sum() > crf.log_likelihood(X, y).sum()


def test_from_crfsuite_rejects_other_files(tmp_path):
    (tmp_path / "x.model").write_bytes(b"lCRF")
    with pytest.raises(ValueError, match=r"x\.model is not a model of CRFsuite: its header"):
        from_crfsuite(tmp_path / "x.model")


def test_from_crfsuite_rejects_too_many_labels(tmp_path, monkeypatch):
    monkeypatch.setattr("crfx.model.building.MOST_ENTRIES", 15)
    with pytest.raises(ValueError, match=r"crfsuite\.model cannot be taken over: order=1 with 4"):
        from_crfsuite(SAVED / "crfsuite.model")
