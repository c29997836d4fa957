"""`crfx rank` as a user meets it: train, predict, eval."""

import gzip
import json
import re

import numpy as np
import pytest

from crfx import LinearCRF, RankingCRF, load
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
    told = out(capsys)
    assert "80 queries" in told
    skipped = n_of_one_level(lists(0)) + n_of_one_level(lists(1))
    assert skipped > 0
    assert f"{skipped} queries with one level of relevance skipped; 5 rounds" in told
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


def test_scores_go_to_standard_output(model, capsys):
    capsys.readouterr()
    assert main(["rank", "predict", "m.crfx", "test.txt"]) == 0
    scores = [float(line) for line in out(capsys).splitlines()]
    assert scores == load(model).predict(lists(2).X).tolist()


@pytest.mark.parametrize("definition", ["usual", "letor"])
@pytest.mark.parametrize("gain", ["linear", "exponential"])
def test_eval_as_json(model, capsys, definition, gain):
    capsys.readouterr()
    options = ["--definition", definition, "--gain", gain, "--cuts", "3,10", "--json"]
    assert main(["rank", "eval", "m.crfx", "test.txt", *options]) == 0
    told = json.loads(out(capsys))
    test = lists(2)
    scores = load(model).predict(test.X)
    expected = {
        str(cut): pytest.approx(
            ndcg(test.relevance, scores, test.group, cut=cut, definition=definition, gain=gain)
        )
        for cut in (3, 10)
    }
    assert told == {
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
    told = json.loads(out(capsys))
    train, test, model = lists(0), lists(2), load("m.crfx")
    twin = RankingCRF(temperature=0.1, sweeps=30, early_stopping_rounds=3, random_state=7).fit(
        train.X,
        train.relevance,
        group=train.group,
        eval_set=(test.X, test.relevance, test.group),
    )
    np.testing.assert_array_equal(model.coef_, twin.coef_)
    reached = ndcg(test.relevance, model.predict(test.X), test.group)
    assert told == {
        "model": "m.crfx",
        "queries": 40,
        "documents": len(train.X),
        "features": 3,
        "skipped_queries": n_of_one_level(train),
        "rounds": twin.n_rounds_,
        "validation_ndcg": pytest.approx(reached),
    }


def test_trees_and_other_arguments(files):
    given = ["n_estimators=5", "max_depth=2", "cut=3", "gain=linear"]
    options = [part for setting in given for part in ("--set", setting)]
    command = ["rank", "train", "a.txt", "--model", "m.crfx", "--scorer", "trees", *options]
    assert main([*command, "--jobs", "1"]) == 0
    model = load("m.crfx")
    named = ("scorer", "n_estimators", "max_depth", "cut", "gain", "n_jobs", "random_state")
    assert [model.get_params()[name] for name in named] == ["trees", 5, 2, 3, "linear", 1, 0]


def test_a_file_may_be_narrower_than_the_model(model, capsys):
    (model.parent / "narrow.txt").write_text("1 qid:1 1:0.5\n0 qid:1 2:0.25\n")
    capsys.readouterr()
    assert main(["rank", "predict", "m.crfx", "narrow.txt"]) == 0
    X = np.array([[0.5, 0, 0], [0, 0.25, 0]], np.float32)
    assert [float(line) for line in out(capsys).splitlines()] == load(model).predict(X).tolist()


def test_scores_may_be_compressed(files, capsys):
    test = lists(2)
    text = "".join(f"{value}\n" for value in test.relevance)
    (files / "s.txt.gz").write_bytes(gzip.compress(text.encode()))
    assert main(["rank", "eval", "--scores", "s.txt.gz", "test.txt", "--json"]) == 0
    assert json.loads(out(capsys))["ndcg"]["10"] == pytest.approx(1)


def save_another(path):
    LinearCRF(max_iter=2).fit([np.eye(2)], [["a", "b"]]).save(path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "none.txt", "--model", "n.crfx"], "none.txt: no such file"),
        (["train", "a.txt", "a.txt", "--model", "n.crfx"], "query 0 is in two of the parts"),
        (["train", "bad.txt", "--model", "n.crfx"], "bad.txt, line 2: relevance is '-1'"),
        (["train", "a.txt", "--model", "no/n.crfx"], "there is no folder no to write the model in"),
        (["train", "flat.txt", "--model", "n.crfx"], "there is no order to learn"),
        (["train", "a.txt", "--model", "n.crfx", "--temperature", "0"], "temperature is 0"),
        (["train", "a.txt", "--model", "n.crfx", "--set", "depth=3"], "no argument 'depth'"),
        (["train", "a.txt", "--model", "n.crfx", "--set", "scorer=trees"], "option of its own"),
        (["train", "a.txt", "--model", "n.crfx", "--set", "max_depth=3"], "it is an argument of"),
        (["train", "a.txt", "--model", "n.crfx", "--patience", "3"], "needs --validation"),
        (["train", "a.txt", "--model", "n.crfx", "--validation", "wide.txt"], "a feature 9"),
        (["predict", "m.crfx", "wide.txt"], "wide.txt has a feature 9: there may be 3"),
        (["predict", "test.txt", "test.txt"], "is not a model file of crfx"),
        (["predict", "other.crfx", "test.txt"], "holds a LinearCRF: rank needs a RankingCRF"),
        (["predict", "m.crfx", "test.txt", "-o", "no/s.txt"], "there is no folder no"),
        (["eval", "test.txt"], "name a model, or pass --scores"),
        (["eval", "m.crfx", "test.txt", "--scores", "s.txt"], "one of the two"),
        (["eval", "--scores", "s.txt", "test.txt"], "s.txt has 2 scores for"),
        (["eval", "--scores", "words.txt", "test.txt"], "words.txt, line 2: 'high' is not a score"),
        (["eval", "--scores", "cut.gz", "test.txt"], "cut.gz cannot be decompressed"),
        (["eval", "m.crfx", "none-relevant.txt"], "no query has a relevant document"),
    ],
)
def test_an_error_is_one_line_and_exit_code_2(model, capsys, arguments, message):
    texts = {
        "bad.txt": "1 qid:1 1:1\n-1 qid:1 1:2\n",
        "flat.txt": "1 qid:1 1:1\n1 qid:1 1:2\n",
        "wide.txt": "1 qid:1 9:1\n0 qid:1 1:2\n",
        "none-relevant.txt": "0 qid:1 1:1\n0 qid:1 1:2\n",
        "s.txt": "1\n2\n",
        "words.txt": "1\nhigh\n",
    }
    for name, text in texts.items():
        (model.parent / name).write_text(text)
    (model.parent / "cut.gz").write_bytes(gzip.compress(b"1\n2\n")[:-9])
    save_another(model.parent / "other.crfx")
    before = sorted(path.name for path in model.parent.iterdir())
    capsys.readouterr()
    assert main(["rank", *arguments]) == 2
    told, err = capsys.readouterr()
    assert told == ""
    assert re.fullmatch(r"crfx rank: error: .+\n", err)
    assert message in err
    assert sorted(path.name for path in model.parent.iterdir()) == before


@pytest.mark.parametrize(
    "arguments",
    [
        ["rank"],
        ["rank", "train"],
        ["rank", "train", "a.txt"],
        ["rank", "train", "a.txt", "--model", "m", "--set", "sweeps"],
        ["rank", "train", "a.txt", "--model", "m", "--objective", "hinge"],
        ["rank", "eval", "m", "f", "--cuts", "1,0"],
        ["rank", "eval", "m", "f", "--cuts", "few"],
    ],
)
def test_bad_usage_is_one_line_too(arguments, capsys):
    with pytest.raises(SystemExit) as exit:
        main(arguments)
    assert exit.value.code == 2
    told, err = capsys.readouterr()
    assert told == ""
    assert re.fullmatch(r"crfx rank.*: error: .+\n", err)


@pytest.mark.parametrize(
    ("action", "words"),
    [("train", "Train a RankingCRF"), ("predict", "Write the score"), ("eval", "Print NDCG of")],
)
def test_help_says_what_each_does(action, words, capsys):
    with pytest.raises(SystemExit) as exit:
        main(["rank", action, "--help"])
    assert exit.value.code == 0
    assert words in out(capsys)


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


def test_written_scores_may_be_compressed(model):
    assert main(["rank", "predict", "m.crfx", "test.txt", "-o", "scores.txt.gz"]) == 0
    written = (model.parent / "scores.txt.gz").read_bytes()
    assert gzip.decompress(written).count(b"\n") > 10
    assert main(["rank", "eval", "--scores", "scores.txt.gz", "test.txt"]) == 0


def test_scores_that_are_not_compressed(files, capsys):
    (files / "scores.txt.gz").write_text("1.0\n")
    assert main(["rank", "eval", "--scores", "scores.txt.gz", "test.txt"]) == 2
    assert "scores.txt.gz cannot be decompressed" in capsys.readouterr().err


def test_a_device_that_cannot_be_used_stops_before_files_are_read(files, capsys):
    words = ["rank", "train", "no.txt", "--model", "m.crfx"]
    assert main([*words, "--scorer", "trees", "--device", "cuda:99"]) == 2
    told = capsys.readouterr().err
    assert told.startswith("crfx rank: error: device is 'cuda:99'")
    assert told.endswith("or --device cpu\n")
    assert main([*words, "--device", "cuda"]) == 2
    assert "it is an argument of scorer='trees'" in capsys.readouterr().err


def test_the_device_reaches_the_estimator(files):
    words = ["rank", "train", "a.txt", "--model", "m.crfx", "--scorer", "trees", "-q"]
    assert main([*words, "--set", "n_estimators=2", "--device", "cpu"]) == 0
    assert load("m.crfx").device == "cpu"
