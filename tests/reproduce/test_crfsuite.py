"""The peer's door, against a stand-in: what it is asked, and what comes back."""

import sys
from types import SimpleNamespace

import pytest

from reproduce import crfsuite
from reproduce.experiments import Task, tagging
from reproduce.experiments.training import Part

SETTINGS = {"estimator": "CRFsuite", "c2": 1.0, "feature.possible_states": True}
TASK = Task("t", "r", "test", SETTINGS, {})
TRAIN = Part([[["w=a"], ["w=b"]], [["w=a"]]], [["A", "B"], ["A"]])
MODELS = {}


class BaseTrainer:
    """Notes what it is given, and says what CRFsuite says."""

    last = None

    def __init__(self):
        self.appended, BaseTrainer.last = [], self

    def set_params(self, params):
        self.params = params

    def append(self, X, y):
        self.appended.append((X, y))

    def train(self, path):
        MODELS[path] = self
        for line in ("Number of features: 7", "Loss: 3.5", "Line search trials: 1", "Loss: 2.5"):
            self.message(f"{line}\n")


class Tagger:
    """Says A of everything, once a model is open."""

    def open(self, path):
        assert path in MODELS

    def tag(self, X):
        return ["A"] * len(X)


@pytest.fixture
def stand_in(monkeypatch):
    library = SimpleNamespace(BaseTrainer=BaseTrainer, Tagger=Tagger)
    monkeypatch.setitem(sys.modules, "pycrfsuite", library)


def test_settings_and_instances_reach_it(stand_in):
    test = Part([[["w=c"], ["w=a"]]], [["A", "A"]])
    result, figures = tagging._tagged_by_crfsuite(TASK, TRAIN, test)
    assert result == [["A", "A"]]
    assert BaseTrainer.last.params == {"c2": 1.0, "feature.possible_states": True}
    assert BaseTrainer.last.appended == list(zip(TRAIN.X, TRAIN.y, strict=True))
    assert (figures["rounds"], figures["train_instances"], figures["train_positions"]) == (2, 2, 3)


def test_what_it_says_is_noted(stand_in):
    lines = []
    trace = crfsuite.train(TRAIN.X, TRAIN.y, {}, "some model", lines.append)
    assert trace.objectives == [3.5, 2.5]
    assert trace.n_weights == 7
    assert trace.trials == [1]
    assert lines[0] == "Number of features: 7"
    assert trace.first_below(3.0) == 1
    assert trace.first_below(1.0) is None


def test_without_it_the_row_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pycrfsuite", None)
    with pytest.raises(ImportError, match=r"crfx\[bench\]"):
        tagging._tagged_by_crfsuite(TASK, TRAIN, TRAIN)
