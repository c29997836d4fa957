"""`crfx rank` as a user meets it: train, predict, eval."""

import gzip
import json

import numpy as np
import pytest

from crfx import RankingCRF, load
from crfx.cli import main
from crfx.io import letor
from crfx.io.letor import Rankings
from crfx.ndcg import ndcg

TRAIN = ["rank", "train", "a.txt", "b.txt.gz", "--model", "m.crfx", "--set", "sweeps=5"]


def lists(seed, n_queries=40, first=0):
    random = np.random.default_rng(seed)
    group = random.integers(2, 9, size=n_queries)
    X = random.uniform(size=(group.sum(), 3)).astype(np.float32)
    signal = X[:, 0] - X[:, 2] + 0.2 * random.normal(size=len(X))
    relevance = np.digitize(signal, [0.1, 0.5]).astype(np.float64)
    return Rankings(X, relevance, group, first + np.arange(n_queries))


def n_of_one_level(part):
    levels = np.split(part.relevance, np.cumsum(part.group)[:-1])
    return sum(len(set(each)) == 1 for each in levels)


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Two files to train on, one of them .gz, and one to test on; the folder is the current one."""
    monkeypatch.chdir(tmp_path)
    letor.write("a.txt", lists(0))
    letor.write("b.txt.gz", lists(1, first=100))
    letor.write("test.txt", lists(2, first=200))
    return tmp_path


@pytest.fixture
def model(files):
    assert main(TRAIN) == 0
    return files / "m.crfx"


def out(capsys):
    return capsys.readouterr().out


def test_train_predict_eval(files, capsys):
    assert main(TRAIN) == 0
    output = out(capsys)
    assert "80 queries" in output
    skipped = n_of_one_level(lists(0)) + n_of_one_level(lists(1))
    assert skipped > 0
    assert f"{skipped} queries with one level of relevance skipped; 5 rounds" in output
    assert main(["rank", "predict", "m.crfx", "test.txt", "-o", "scores.txt"]) == 0
    assert out(capsys) == ""
    test = lists(2)
    expected = load("m.crfx").predict(test.X)
    np.testing.assert_array_equal(np.loadtxt("scores.txt"), expected)
    assert main(["rank", "eval", "m.crfx", "test.txt"]) == 0
    by_model = out(capsys)
    assert main(["rank", "eval", "--scores", "scores.txt", "test.txt"]) == 0
    assert out(capsys) == by_model
    assert f"NDCG@5   {ndcg(test.relevance, expected, test.group, cut=5):.4f}" in by_model
    assert ndcg(test.relevance, expected, test.group, cut=5) > 0.9


def test_predict_writes_to_standard_output_and_pads_narrow_files(model, capsys):
    (model.parent / "narrow.txt").write_text("1 qid:1 1:0.5\n0 qid:1 2:0.25\n")
    narrow = np.array([[0.5, 0, 0], [0, 0.25, 0]], np.float32)
    for name, X in (("test.txt", lists(2).X), ("narrow.txt", narrow)):
        capsys.readouterr()
        assert main(["rank", "predict", "m.crfx", name]) == 0
        scores = [float(line) for line in out(capsys).splitlines()]
        assert scores == load(model).predict(X).tolist()


def test_scores_may_be_compressed(model, capsys):
    assert main(["rank", "predict", "m.crfx", "test.txt", "-o", "scores.txt.gz"]) == 0
    written = gzip.decompress((model.parent / "scores.txt.gz").read_bytes())
    assert written.count(b"\n") == len(lists(2).X)
    capsys.readouterr()
    evaluated = []
    for options in (["m.crfx"], ["--scores", "scores.txt.gz"]):
        assert main(["rank", "eval", *options, "test.txt", "--json"]) == 0
        evaluated.append(json.loads(out(capsys)))
    assert evaluated[0] == evaluated[1]


@pytest.mark.parametrize(("definition", "gain"), [("usual", "linear"), ("letor", "exponential")])
def test_eval_as_json(model, capsys, definition, gain):
    capsys.readouterr()
    options = ["--definition", definition, "--gain", gain, "--cuts", "3,10", "--json"]
    assert main(["rank", "eval", "m.crfx", "test.txt", *options]) == 0
    report = json.loads(out(capsys))
    test = lists(2)
    scores = load(model).predict(test.X)
    expected = {
        str(cut): pytest.approx(
            ndcg(test.relevance, scores, test.group, cut=cut, definition=definition, gain=gain)
        )
        for cut in (3, 10)
    }
    assert report == {
        "queries": 40,
        "documents": len(test.X),
        "definition": definition,
        "gain": gain,
        "ndcg": expected,
    }


def test_train_as_json_with_validation(files, capsys):
    options = ["--validation", "test.txt", "--patience", "3", "--set", "sweeps=30", "--json"]
    arguments = ["--scorer", "linear", "--objective", "kl", "--temperature", "0.1", "--seed", "7"]
    assert main(["rank", "train", "a.txt", "--model", "m.crfx", *options, *arguments]) == 0
    report = json.loads(out(capsys))
    train, test, model = lists(0), lists(2), load("m.crfx")
    twin = RankingCRF(temperature=0.1, sweeps=30, early_stopping_rounds=3, random_state=7).fit(
        train.X,
        train.relevance,
        group=train.group,
        eval_set=(test.X, test.relevance, test.group),
    )
    np.testing.assert_array_equal(model.coef_, twin.coef_)
    reached = ndcg(test.relevance, model.predict(test.X), test.group)
    assert report == {
        "model": "m.crfx",
        "queries": 40,
        "documents": len(train.X),
        "features": 3,
        "skipped_queries": n_of_one_level(train),
        "rounds": twin.n_rounds_,
        "validation_ndcg": pytest.approx(reached),
    }


def test_trees_and_other_arguments(files):
    settings = ["n_estimators=5", "max_depth=2", "cut=3", "gain=linear"]
    options = [part for setting in settings for part in ("--set", setting)]
    command = ["rank", "train", "a.txt", "--model", "m.crfx", "--scorer", "trees", *options]
    assert main([*command, "--jobs", "1"]) == 0
    model = load("m.crfx")
    named = ("scorer", "n_estimators", "max_depth", "cut", "gain", "n_jobs", "random_state")
    assert [model.get_params()[name] for name in named] == ["trees", 5, 2, 3, "linear", 1, 0]


def test_progress_is_told_unless_quiet(files, capsys):
    assert main([*TRAIN, "-q"]) == 0
    assert capsys.readouterr().err == ""
    assert main(TRAIN) == 0
    assert "5/5: objective" in capsys.readouterr().err


def test_a_prediction_that_fails_leaves_the_old_scores(model, monkeypatch, capsys):
    (model.parent / "scores.txt").write_text("old\n")
    monkeypatch.setattr("os.fsync", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    assert main(["rank", "predict", "m.crfx", "test.txt", "-o", "scores.txt"]) == 2
    assert "disk full" in capsys.readouterr().err
    assert (model.parent / "scores.txt").read_text() == "old\n"


def test_device_is_checked_first_and_passed_on(files, capsys):
    words = ["rank", "train", "--model", "m.crfx", "--set", "n_estimators=2", "-q"]
    assert main([*words, "no.txt", "--scorer", "trees", "--device", "cuda:99"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("crfx rank: error: device is 'cuda:99'")
    assert error.endswith("or --device cpu\n")
    assert main(["rank", "train", "no.txt", "--model", "m.crfx", "--device", "cuda"]) == 2
    assert "it is an argument of scorer='trees'" in capsys.readouterr().err
    assert main([*words, "a.txt", "--scorer", "trees", "--device", "cpu"]) == 0
    assert load("m.crfx").device == "cpu"
