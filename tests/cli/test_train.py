"""`crfx train` as a user meets it: a file in, a model out."""

import gzip
import json
import signal
import time

import numpy as np
import pytest

from crfx import GBCRF, HiddenUnitCRF, LinearCRF, TreeCRF, load
from crfx.cli import INTERRUPTED, main
from crfx.trainers.callbacks import Checkpoint

LINEAR = ["train", "--model", "linear", "--train", "train.txt", "-o", "m.crfx"]
KINDS = {
    "linear": (LinearCRF, ["--set", "max_iter=20"]),
    "gbcrf": (GBCRF, ["--set", "n_estimators=5"]),
    "treecrf": (TreeCRF, ["--set", "n_estimators=5"]),
    "hidden-unit": (HiddenUnitCRF, ["--set", "sweeps=5", "--set", "n_hidden=8"]),
}


@pytest.mark.parametrize("name", KINDS)
def test_every_model_learns_from_a_plain_file(conll, capsys, name):
    kind, settings = KINDS[name]
    arguments = ["train", "--model", name, "--train", "train.txt", "--dev", "dev.txt"]
    assert main([*arguments, "-o", "m.crfx", *settings]) == 0
    output = capsys.readouterr()
    assert output.out == ""
    assert "train.txt: conll (columns word, c1), 60 sequences" in output.err
    assert "saved in m.crfx" in output.err
    assert "s, preparing and watching included" in output.err
    model = load("m.crfx")
    assert type(model) is kind
    assert set(model.classes_) >= {"S-LOC", "S-PER", "B-PER", "E-PER", "O"}
    assert model.constraints == "bioes"
    assert model.history_["eval_metric"][model.best_iteration_] > 0.8
    assert not (conll / "m.checkpoint.crfx").exists()


def test_quiet_and_json_output(conll, capsys):
    assert main([*LINEAR, "-q"]) == 0
    assert capsys.readouterr() == ("", "")
    assert main([*LINEAR, "--dev", "dev.txt", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["class"] == "LinearCRF"
    assert report["sequences"] == 60
    assert report["labels"] == 6  # BIOES
    assert report["dev"]["span_f1"] > 0.9


def test_settings_reach_the_estimator(conll):
    settings = ["--set", "l2=0.5", "--set", "trainer=sgd", "--set", "sweeps=3", "--seed", "7"]
    assert main([*LINEAR, *settings, "--jobs", "1", "-q"]) == 0
    parameters = load("m.crfx").get_params()
    expected = {"l2": 0.5, "trainer": "sgd", "sweeps": 3, "random_state": 7, "n_jobs": 1}
    assert {name: parameters[name] for name in expected} == expected


def test_template_columns_and_label_are_the_users(conll):
    (conll / "t.txt").write_text("form[0]  # nothing else\n")
    options = ["--columns", "form,pos", "--template", "t.txt", "--label", "-1"]
    assert main([*LINEAR, *options, "-q"]) == 0
    model = load("m.crfx")
    assert model.reading_.format.columns == ("form", "pos")
    assert {name.split("=")[0] for name in model.feature_names_in_} == {"form[0]"}


def test_a_compressed_file_on_standard_input(conll, monkeypatch):
    raw = gzip.compress((conll / "train.txt").read_bytes())
    (conll / "train.gz").write_bytes(raw)
    with open("train.gz", "rb") as file:
        monkeypatch.setattr("sys.stdin", type("Stdin", (), {"buffer": file}))
        assert main(["train", "--model", "linear", "--train", "-", "-o", "a.crfx", "-q"]) == 0
    assert main([*LINEAR, "-q"]) == 0
    np.testing.assert_array_equal(
        load("a.crfx").transitions_,
        load("m.crfx").transitions_,
    )


def test_going_on_with_a_model_keeps_its_features(conll):
    assert main([*LINEAR, "--set", "max_iter=5", "-q"]) == 0
    more = ["train", "--model", "linear", "--train", "dev.txt", "--init-model", "m.crfx"]
    assert main([*more, "-o", "n.crfx", "--set", "max_iter=5", "-q"]) == 0
    before, after = load("m.crfx"), load("n.crfx")
    assert set(before.feature_names_in_) <= set(after.feature_names_in_)
    assert after.reading_.to_plain() == before.reading_.to_plain()


BOOSTED = ["train", "--model", "gbcrf", "--train", "train.txt", "-o", "m.crfx", "--jobs", "1"]


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_keeps_what_was_learned(conll, started, stop):
    process = started(*BOOSTED, "--set", "n_estimators=100000")
    while not (conll / "m.checkpoint.crfx").exists():  # the first round is kept at once
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(stop)
    assert process.wait(timeout=60) == INTERRUPTED
    errors = process.stderr.read().decode()
    assert "kept in m.checkpoint.crfx; the same command with --resume goes on" in errors
    assert "Traceback" not in errors
    assert not (conll / "m.crfx").exists()
    assert 0 < load("m.checkpoint.crfx").n_rounds_ < 100000


@pytest.mark.parametrize("watched", [[], ["--dev", "dev.txt", "--patience", "50"]])
def test_interrupted_training_goes_on_to_the_same_model(conll, capsys, monkeypatch, watched):
    def interrupt(self, progress):
        if progress.n_rounds == 7:
            raise KeyboardInterrupt

    arguments = [*BOOSTED, *watched, "--set", "n_estimators=20", "--set", "subsample=0.5"]
    assert main([*arguments, "-q"]) == 0
    whole = load("m.crfx")
    (conll / "m.crfx").unlink()
    with monkeypatch.context() as patched:
        patched.setattr(Checkpoint, "__call__", interrupt)
        assert main(arguments) == INTERRUPTED
    assert "interrupted after 7 rounds" in capsys.readouterr().err
    assert not (conll / "m.crfx").exists()
    assert main([*arguments, "--resume", "-q"]) == 0
    resumed = load("m.crfx")
    assert resumed.n_rounds_ == whole.n_rounds_
    np.testing.assert_array_equal(resumed.transitions_, whole.transitions_)
    assert resumed.history_["objective"] == whole.history_["objective"]
    assert not (conll / "m.checkpoint.crfx").exists()


@pytest.mark.parametrize("model", ["gbcrf", "hidden-unit", "linear"])
def test_training_may_be_interrupted_again_and_again(conll, monkeypatch, model):
    """The checkpoint says what was asked for, not what was left."""
    settings = {"gbcrf": "n_estimators=9", "hidden-unit": "sweeps=9", "linear": "max_iter=40"}
    arguments = ["train", "--model", model, "--train", "train.txt", "--dev", "dev.txt", "-q"]
    arguments += ["-o", "m.crfx", "--jobs", "1", "--set", settings[model]]
    calls = []

    def interrupt(self, progress):
        calls.append(progress.n_rounds)
        if len(calls) % 3 == 0:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Checkpoint, "__call__", interrupt)
        for more in ([], ["--resume"]):
            assert main([*arguments, *more]) == INTERRUPTED
    name, value = settings[model].split("=")
    assert getattr(load("m.checkpoint.crfx"), name) == int(value)
    assert main([*arguments, "--resume"]) == 0
    crf = load("m.crfx")
    assert getattr(crf, name) == int(value)
    (conll / "m.crfx").unlink()
    assert main(arguments) == 0
    whole = load("m.crfx")
    assert crf.history_["objective"] == whole.history_["objective"]
    np.testing.assert_array_equal(crf.transitions_, whole.transitions_)


def test_resume_of_complete_run_changes_nothing(conll, capsys):
    arguments = [*BOOSTED, "--set", "n_estimators=5", "-q"]
    assert main(arguments) == 0
    (conll / "m.crfx").rename(conll / "m.checkpoint.crfx")
    assert main([*arguments, "--resume"]) == 0
    assert load("m.crfx").n_rounds_ == 5
    (conll / "m.crfx").rename(conll / "m.checkpoint.crfx")
    assert main([*arguments, "--resume", "--set", "max_depth=2"]) == 2
    assert "max_depth is 2, but the run that was interrupted had" in capsys.readouterr().err


def test_reading_otherwise_than_the_model_is_refused(conll, capsys):
    assert main([*LINEAR, "-q"]) == 0
    more = ["train", "--model", "linear", "--train", "dev.txt", "--init-model", "m.crfx"]
    assert main([*more, "-o", "n.crfx", "--columns", "form,pos"]) == 2
    assert "--columns: the model to go on with reads conll (columns word, c1)" in (
        capsys.readouterr().err
    )
    assert main([*more, "-o", "n.crfx", "--columns", "word,c1", "-q"]) == 0


def test_init_model_keeps_constraints_and_adds_labels(conll):
    assert main([*LINEAR, "-q"]) == 0
    (conll / "other.txt").write_text("the w O\nold w O\n\nthe w O\n2 n B-NUM\n")
    more = ["train", "--model", "linear", "--train", "other.txt", "--init-model", "m.crfx"]
    assert main([*more, "-o", "n.crfx", "-q"]) == 2
    assert main([*more, "-o", "n.crfx", "-q", "--classes", "B-NUM"]) == 0
    loaded = load("n.crfx")
    assert loaded.constraints == "bioes"
    assert {"B-NUM", "I-NUM", "E-NUM", "S-NUM"} <= set(loaded.classes_)


@pytest.mark.parametrize(("wanted", "labels"), [("bio", "BI"), ("bioes", "BIES"), ("none", "BI")])
def test_the_scheme_is_the_users(conll, capsys, wanted, labels):
    assert main([*LINEAR, "--constraints", wanted, "-q"]) == 0
    loaded = load("m.crfx")
    assert loaded.constraints == (None if wanted == "none" else wanted)
    assert {label[0] for label in loaded.classes_} == {*labels, "O"}
    assert main(["tag", "m.crfx", "plain.txt", "--write", "labels"]) == 0
    assert {line[0] for line in capsys.readouterr().out.split()} <= {*labels, "O"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--device", "cuda:99"], "crfx train: error: device is 'cuda:99'"),
        (["--set", "n_estimators=-1"], "n_estimators is -1: it must be a whole number of 0"),
        (["--set", "eta=0.1"], "GBCRF has no argument 'eta': use learning_rate"),
        (["--device", "cpu"], "no.conll"),
    ],
)
def test_settings_are_checked_before_files_are_read(conll, capsys, options, message):
    words = ["train", "--model", "gbcrf", "--train", "no.conll", "-o", "m.crfx"]
    assert main([*words, *options]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.endswith("or --device cpu\n") == ("cuda:99" in options)


def test_the_device_reaches_the_estimator(conll, monkeypatch, capsys):
    def fit(crf, **arguments):
        raise ValueError(f"trees grow on {crf.device}")

    monkeypatch.setattr("crfx.estimators.support.check_cuda", lambda device: None)
    monkeypatch.setattr(GBCRF, "fit", fit)
    words = ["train", "--model", "gbcrf", "--train", "train.txt", "-o", "m.crfx", "-q"]
    assert main([*words, "--device", "cuda:1"]) == 2
    assert "trees grow on cuda:1" in capsys.readouterr().err
