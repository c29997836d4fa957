"""Pictures of a model at work show what `predict` and `predict_marginals` say."""

import numpy as np
import pytest

from crfx import LinearCRF, report
from crfx.calibration import expected_calibration_error
from crfx.testing import make_task

pytest.importorskip("matplotlib", reason="pictures need crfx[plot]")

X, Y = make_task(0, n_instances=12)


@pytest.fixture(scope="module")
def crf():
    return LinearCRF(max_iter=4, n_jobs=1).fit(X, Y)


def texts(axes):
    return [text.get_text() for text in axes.texts]


def test_confusion_counts_all_positions(crf):
    axes, _ = report.plot_confusion(crf, X, Y).axes
    pairs = list(zip(np.concatenate(Y), np.concatenate(crf.predict(X)), strict=True))
    labels = [label.get_text() for label in axes.get_xticklabels()]
    expected = [str(pairs.count((a, b)) or "") for a in labels for b in labels]
    assert texts(axes) == [text for text in expected if text]
    assert f"{100 * crf.score(X, Y):.2f} %" in axes.get_title()


def test_confusion_of_stacked_rows_and_unknown_labels(crf, monkeypatch):
    y = [list(labels) for labels in Y]
    y[0][0], y[1][0] = "new", None
    lengths = [len(x) for x in X]
    flat = [label for labels in y for label in labels]
    axes, _ = report.plot_confusion(crf, np.concatenate(X), flat, lengths=lengths).axes
    assert axes.get_yticklabels()[-1].get_text() == "new"
    assert sum(map(int, texts(axes))) == len(flat) - 1
    monkeypatch.setattr("crfx.report.plots.drawing.MOST_NUMBERS", 1)
    axes, _ = report.plot_confusion(crf, X, Y).axes
    assert texts(axes) == []  # too many to read


def test_data_that_cannot_be_drawn_is_rejected(crf):
    with pytest.raises(ValueError, match="no labelled token"):
        report.plot_confusion(crf, X, [[None] * len(x) for x in X])
    many = np.resize(X[0], (301, X[0].shape[1]))
    for instance, tokens, message in (
        (X[0], ["a"], "tokens has 1 entries, the instance has"),
        (X[0][:0], None, "no positions"),
        (X, None, r"plot_marginals takes one instance, for example X\[0\]"),
        (many, None, "has 301 positions, 300 can be drawn"),
    ):
        with pytest.raises(ValueError, match=message):
            report.plot_marginals(crf, instance, tokens=tokens)


def test_reliability_tells_the_error(crf, tmp_path):
    figure = report.plot_reliability(crf, X, Y, n_bins=5, path=tmp_path / "reliability.svg")
    p = [confidence.labels for confidence in crf.predict_confidence(X)]
    error = expected_calibration_error(Y, crf.predict(X), p, n_bins=5)
    assert f"{error:.4f}" in figure.axes[0].get_title()
    heights = [bar.get_height() for bar in figure.axes[1].patches]
    assert len(heights) == 5
    assert sum(heights) == sum(map(len, Y))
    assert (tmp_path / "reliability.svg").exists()


def test_marginals_of_one_instance(crf):
    axes, _ = report.plot_marginals(crf, X[0], Y[0], tokens=[f"${k}$" for k in Y[0]]).axes
    shown = axes.images[0].get_array()
    np.testing.assert_array_equal(shown.T, crf.predict_marginals(X[:1])[0].astype(np.float64))
    at = crf.classes_.tolist().index
    frames = [(round(patch.get_x() + 0.45), round(patch.get_y() + 0.45)) for patch in axes.patches]
    assert frames == [(k, at(label)) for k, label in enumerate(crf.predict(X[:1])[0])]
    assert len(axes.lines) == len(Y[0])  # dots
    assert axes.get_xticklabels()[0].get_text() == rf"\${Y[0][0]}\$"
    words = [[["a"], ["b"]] * 3]  # labels that are sure have a number too
    sure = LinearCRF(l2=1e-4, n_jobs=1).fit(words, [["A", "B"] * 3])
    axes, _ = report.plot_marginals(sure, words[0]).axes
    assert sure.predict_marginals(words)[0].max(axis=1).min() > 0.995
    assert texts(axes) == ["1.0"] * 6
    figure = report.plot_marginals(crf, np.concatenate(X)[:35])  # goes on in another row
    assert [axes.images[0].get_array().shape[1] for axes in figure.axes[:2]] == [30, 5]
