"""Every kind of model gets its page."""

import runpy
from pathlib import Path

import numpy as np
import pytest

from crfx import load
from crfx.io.letor import Rankings
from crfx.report.page.labelling_page import labelling_page
from crfx.report.page.ranking_page import ranking_page
from crfx.report.page.sequences import Judgement
from crfx.report.written_labels import judged_instances

pytest.importorskip("jinja2", reason="the page needs crfx[report]")

SAVED = Path(__file__).parents[2] / "saved_models"
KINDS = runpy.run_path(str(SAVED / "kinds.py"))["KINDS"]
LABELLING = [name for name, kind in KINDS.items() if not kind.ranks]
NAMES = {"title": "T", "model_file": "m", "data_file": "d", "version": "1", "date": "2026-01-01"}


@pytest.mark.parametrize("name", LABELLING)
def test_page_of_models_that_label(name):
    crf = load(SAVED / f"{name}-1.crfx")
    X, y, more = KINDS[name].data(1)
    judgement = Judgement(crf, 2)
    judged = judged_instances(crf, {"X": X, **more}, y, judgement.written)
    for at, (each, X_i) in enumerate(zip(judged, X, strict=True)):
        one = {"X_i": X_i} | {key: values[at] for key, values in more.items()}
        judgement.add(each, lambda one=one: (one, None, ""))
    page = labelling_page(crf, judgement, NAMES)
    assert f"{100 * judgement.report.accuracy:.2f} %" in page
    assert page.count('<details class="sequence"') == 2 * 2
    is_explained = getattr(crf, "votes_", None) is None  # herding has no probabilities
    assert ('<details class="why"' in page) == is_explained
    assert ("No explanation: with herding" in page) == (not is_explained)
    assert ("Scores of transitions" in page) == (name in WITH_TABLE)
    depends = {"linear", "trees"} & {layer.edge_family for layer in crf.model_.layers}
    assert (", a part of the above: to " in page) == bool(depends)
    takes_labels = any(layer.edge_family == "context" for layer in crf.model_.layers)
    assert ("By its own features, given the labels before" in page) == takes_labels


WITH_TABLE = {
    *("gbcrf", "gbcrf-forest", "gbcrf-categories", "gbcrf-words", "gbcrf-on-linear"),
    *("gbcrf-constraints", "gbcrf-typed", "hidden-lbfgs", "hidden-sgd", "hidden-perceptron"),
    *("hidden-large-margin", "hidden-order-2", "hidden-on-linear", "linear", "linear-order-3"),
    *("linear-forest", "linear-words", "linear-template", "linear-constraints", "linear-file"),
    *("linear-hashed", "linear-induction", "linear-sgd", "linear-perceptron", "linear-on-gbcrf"),
}


@pytest.mark.parametrize("name", [name for name, kind in KINDS.items() if kind.ranks])
def test_page_of_models_that_rank(name):
    crf = load(SAVED / f"{name}-1.crfx")
    X, relevance, more = KINDS[name].data(1)
    part = Rankings(X, relevance, more["group"], np.arange(len(more["group"])) + 100)
    page = ranking_page(crf, part, 3, NAMES)
    assert page.count('<details class="sequence"') == 3
    assert f"{crf.score(X, relevance, more['group'], cut=10):.4f}" in page
