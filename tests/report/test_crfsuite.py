"""The peer's adapter, against a stand-in: what it is asked, and what comes back."""

import sys
from types import SimpleNamespace

import pytest

from crfx.report.experiments import Task, crfsuite
from crfx.report.experiments.training import Part

SETTINGS = {"estimator": "CRFsuite", "c2": 1.0, "feature.possible_states": True}
TASK = Task("t", "r", "test", SETTINGS, {})
TRAIN = Part([[["w=a"], ["w=b"]], [["w=a"]]], [["A", "B"], ["A"]])


class Trainer:
    """Notes what it is given."""

    last = None

    def __init__(self, params, verbose):
        self.params, self.appended, Trainer.last = params, [], self
        self.logparser = SimpleNamespace(iterations=[1, 2, 3])

    def append(self, X, y):
        self.appended.append((X, y))

    def train(self, path):
        with open(path, "w", encoding="utf-8") as file:
            file.write("model")


class Tagger:
    """Says A of everything, once a model is open."""

    def open(self, path):
        with open(path, encoding="utf-8") as file:
            assert file.read() == "model"
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def tag(self, X):
        return ["A"] * len(X)


def test_settings_and_instances_reach_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "pycrfsuite", SimpleNamespace(Trainer=Trainer, Tagger=Tagger))
    found, figures = crfsuite.tagged(TASK, TRAIN, Part([[["w=c"], ["w=a"]]], [["A", "A"]]))
    assert found == [["A", "A"]]
    assert Trainer.last.params == {"c2": 1.0, "feature.possible_states": True}
    assert Trainer.last.appended == list(zip(TRAIN.X, TRAIN.y, strict=True))
    assert (figures["rounds"], figures["train_instances"], figures["train_positions"]) == (3, 2, 3)


def test_without_it_the_row_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pycrfsuite", None)
    with pytest.raises(ImportError, match=r"crfx\[bench\]"):
        crfsuite.tagged(TASK, TRAIN, TRAIN)
