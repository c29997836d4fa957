"""Pictures of fitted models show their numbers, and are refused where there is nothing to show."""

import numpy as np
import pytest

from crfx import GBCRF, LinearCRF, TreeCRF, report
from crfx.report.description import transition_table
from crfx.testing import make_task

pytest.importorskip("matplotlib", reason="pictures need crfx[plot]")

X, Y = make_task(0, n_instances=12)


@pytest.fixture(scope="module")
def boosted():
    crf = GBCRF(4, max_depth=2, early_stopping_rounds=1, n_jobs=1, random_state=0)
    return crf.fit(X, Y, eval_set=(X[:3], Y[:3]))


@pytest.fixture(scope="module")
def linear():
    return LinearCRF(max_iter=5, n_jobs=1).fit(X, Y)


def texts(axes):
    return [text.get_text() for text in axes.texts]


def test_history_has_a_panel_for_each_curve(boosted, linear):
    objective, metric = report.plot_history(boosted).axes
    assert objective.lines[0].get_ydata().tolist() == boosted.history_["objective"]
    assert metric.lines[0].get_ydata().tolist() == boosted.history_["eval_metric"]
    assert boosted.eval_metric in metric.get_title()
    (both,) = report.plot_history({"a": boosted, "$b$": linear}, names=["objective"]).axes
    assert [line.get_label() for line in both.lines[:2]] == ["a", r"\$b\$"]
    styles = {(line.get_linestyle(), line.get_marker()) for line in both.lines[:2]}
    assert len(styles) == 2  # told apart without colours
    assert both.get_xlabel() == "rounds or iterations"
    (axes,) = report.plot_gamma(boosted).axes
    assert axes.lines[0].get_ydata().tolist() == boosted.history_["gamma"]
    with pytest.raises(ValueError, match="LinearCRF has no γ"):
        report.plot_gamma(linear)


def test_history_marks_the_round_that_was_kept():
    other = [np.roll(labels, 1) for labels in Y]  # what is learned from Y is wrong there
    crf = GBCRF(9, early_stopping_rounds=2, eval_metric="loss", n_jobs=1, random_state=0)
    crf.fit(X, Y, eval_set=(X, other))
    kept = crf.best_iteration_ + 1
    assert kept < len(crf.history_["objective"])
    for axes in report.plot_history(crf).axes:
        (label,) = texts(axes)
        assert label.startswith(f"kept: {kept} (")
    assert f"({crf.history_['eval_metric'][kept - 1]:.4g})" in label


def test_transitions_are_written_in_their_cells(linear):
    axes, _ = report.plot_transitions(linear).axes
    table = linear.transitions_
    np.testing.assert_array_equal(axes.images[0].get_array(), table.astype(np.float64))
    written = [float(text.replace("−", "-")) for text in texts(axes)]
    np.testing.assert_allclose(written, table.ravel(), rtol=0, atol=0.0501)
    assert [label.get_text() for label in axes.get_yticklabels()] == linear.classes_.tolist()
    crf = LinearCRF(constraints="bio", max_iter=3, n_jobs=1)
    crf.fit([[["a"], ["b"], ["c"]]], [["B-X", "I-X", "O"]])
    axes, _ = report.plot_transitions(crf).axes
    (patch,) = axes.patches  # O, I-X is forbidden
    at = crf.classes_.tolist().index
    assert patch.get_hatch()
    assert patch.get_xy() == (at("I-X") - 0.5, at("O") - 0.5)


def test_transitions_of_higher_order_and_types():
    crf = LinearCRF(order=2, max_iter=3, n_jobs=1).fit(X, Y)
    table = transition_table(crf)
    labels = crf.classes_.tolist()
    assert table.rows[1] == (labels[0], labels[1])
    np.testing.assert_array_equal(table.values[1], crf.transitions_[0, 1])
    typed = LinearCRF(max_iter=3, n_jobs=1)
    typed.fit(X, Y, edge_types=[np.arange(len(x)) % 2 for x in X])
    np.testing.assert_array_equal(transition_table(typed, 1).values, typed.transitions_[1])
    for edge_type, message in ((None, "2 types: say which"), (2, "from 0 to 1"), (True, "0 to 1")):
        with pytest.raises(ValueError, match=message):
            transition_table(typed, edge_type)
    with pytest.raises(ValueError, match="have no types"):
        transition_table(crf, 0)


def test_files_are_of_the_kind_they_are_called(linear, tmp_path):
    for ending, magic in ((".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF")):
        path = tmp_path / f"history{ending}"
        report.plot_history(linear, path=path)
        assert path.read_bytes().startswith(magic)
    with pytest.raises(ValueError, match=r"end in \.png, \.svg or \.pdf"):
        report.plot_history(linear, path=tmp_path / "history.gif")
    assert len(list(tmp_path.iterdir())) == 3


def test_models_without_such_a_curve_or_table_are_rejected(linear):
    with pytest.raises(ValueError, match="no history has 'gamma': there are objective"):
        report.plot_history(linear, names=["gamma"])
    with pytest.raises(ValueError, match="no model"):
        report.plot_history({})
    for crf, message in (
        (LinearCRF(edges=None, max_iter=2), "LinearCRF has no edges"),
        (LinearCRF(edges="linear", max_iter=2), "edges that depend on X"),
        (TreeCRF(1, max_leaves=2), "TreeCRF has edges that depend on X"),
        (LinearCRF(order=5, max_iter=1), "243 rows, 100 can be read"),
    ):
        with pytest.raises(ValueError, match=message):
            report.plot_transitions(crf.fit(X, Y))
