"""`crfx tag`: labels for a file, in a pipe, sentence by sentence."""

import gzip
import io
import json
import signal
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest

from crfx import GBCRF, load
from crfx.cli import main
from crfx.io.arrays import Arrays, write

TRAIN = ["train", "--model", "linear", "--train", "train.txt", "-o", "m.crfx", "-q"]


@pytest.fixture
def model(conll):
    assert main(TRAIN) == 0
    return load("m.crfx")


def labels_of(text):
    return [line.split(" ")[-1] for line in text.splitlines() if line]


def tagged(capsys, *arguments):
    capsys.readouterr()
    assert main(["tag", "m.crfx", *arguments]) == 0
    return capsys.readouterr().out


def test_labels_replace_those_of_the_file(model, conll, capsys):
    output = tagged(capsys, "test.txt")
    before = (conll / "test.txt").read_text()
    words = [line.rsplit(" ", 1)[0] for line in before.splitlines()]
    assert [line.rsplit(" ", 1)[0] for line in output.splitlines()] == words
    assert np.mean(np.array(labels_of(output)) == labels_of(before)) > 0.95


def test_a_file_without_labels_gets_them_added_or_alone(model, capsys):
    with_words = tagged(capsys, "test.txt")
    assert tagged(capsys, "plain.txt") == with_words
    assert labels_of(tagged(capsys, "test.txt", "--write", "labels")) == labels_of(with_words)


def test_a_file_is_written_whole_and_compressed_by_its_name(model, conll, capsys):
    expected = tagged(capsys, "test.txt")
    assert main(["tag", "m.crfx", "test.txt", "-o", "out.txt.gz"]) == 0
    output = capsys.readouterr()
    assert output.out == ""
    assert "20 sequences" in output.err
    assert gzip.decompress((conll / "out.txt.gz").read_bytes()).decode() == expected


def test_tag_labels_sentences_as_they_arrive(model, started):
    process = started("tag", "m.crfx", "-")
    for _ in range(3):
        process.stdin.write(b"Ada n\nleft w\n\n")
        process.stdin.flush()
        # Would wait for ever, were the sentence held back; the suite's own limit ends that.
        lines = [process.stdout.readline() for _ in range(3)]
        assert lines == [b"Ada n B-PER\n", b"left w O\n", b"\n"]
    process.stdin.close()
    assert process.wait(timeout=60) == 0


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM, None])
def test_an_end_while_the_next_sentence_is_awaited(model, started, stop):
    """Ctrl-C, a signal, or a reader that goes: no abort, although a thread still reads."""
    process = started("tag", "m.crfx", "-")
    process.stdin.write(b"Ada n\nleft w\n\n")
    process.stdin.flush()
    assert process.stdout.readline() == b"Ada n B-PER\n"
    if stop is None:
        process.stdout.close()
        process.stdin.write(b"Ada n\nleft w\n\n")
        process.stdin.flush()
    else:
        process.send_signal(stop)
    code, errors = process.wait(timeout=60), process.stderr.read()
    assert (code, errors) == ((0, b"") if stop is None else (130, b"crfx tag: interrupted\n"))


def test_a_reader_that_has_enough_is_no_error(model, conll):
    (conll / "long.txt").write_text((conll / "plain.txt").read_text() * 500)
    process = subprocess.Popen(
        f"{sys.executable} -m crfx tag m.crfx long.txt | head -1",
        shell=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=conll,
    )
    out, errors = process.communicate(timeout=120)
    assert out.count(b"\n") == 1
    assert errors == b""


def test_objects_with_probabilities(model, conll, capsys):
    text = tagged(capsys, "plain.txt", "--write", "jsonl")
    objects = [json.loads(line) for line in text.splitlines()]
    assert len(objects) == 20
    X = model.reading_.template([instance["tokens"] for instance in objects])
    labels = [label for instance in objects for label in instance["labels"]]
    assert labels == labels_of(tagged(capsys, "plain.txt"))
    written = np.array(model.reading_.labels(model.classes_.tolist()))
    for instance, marginals in zip(objects, model.predict_marginals(X), strict=True):
        # Labels of the model are written alike.
        is_predicted = written == np.array(instance["labels"])[:, None]
        np.testing.assert_allclose(
            instance["probabilities"], (marginals * is_predicted).sum(axis=1), rtol=1e-5
        )
        assert 0 < instance["probability"] <= min(instance["probabilities"]) + 1e-6
        for span in instance["spans"]:
            assert instance["labels"][span["start"]] == f"B-{span['label']}"
            assert 0 < span["probability"] <= 1


def test_labels_that_are_not_sure_are_left_open(model, capsys):
    sure = labels_of(tagged(capsys, "plain.txt", "--min-probability", "0.99"))
    assert "_" in sure
    assert "_" not in labels_of(tagged(capsys, "plain.txt", "--min-probability", "0"))
    objects = map(json.loads, tagged(capsys, "plain.txt", "--write", "jsonl").splitlines())
    expected = [p >= 0.99 for instance in objects for p in instance["probabilities"]]
    assert [label != "_" for label in sure] == expected


def test_a_model_of_crfsuite_becomes_a_tagger(conll, capsys):
    crfsuite = pytest.importorskip("pycrfsuite", reason="needs python-crfsuite (bench extra)")
    trainer = crfsuite.Trainer(verbose=False)
    X = [[["w=Ada"], ["w=left"]], [["w=the"], ["w=old"], ["w=Bo"]]]
    for tokens, labels in zip(X, (["PER", "O"], ["O", "O", "PER"]), strict=True):
        trainer.append(tokens, labels)
    trainer.train("m.crfsuite")
    assert main(["convert", "m.crfsuite", "-o", "m.crfx"]) == 0
    (conll / "test.crfsuite").write_text("\tw=Ada\n\tw=left\n\n\tw=the\n\tw=old\n\tw=Bo\n\n")
    output = tagged(capsys, "test.crfsuite", "--write", "labels")
    assert output.split() == ["PER", "O", "O", "O", "PER"]


def test_words_may_hold_blanks_where_tabs_part_columns(conll, capsys):
    (conll / "t.txt").write_text("New York\tB-LOC\nsaw\tO\n\nAda L\tB-PER\nsaw\tO\n\n" * 4)
    assert main(["train", "--model", "linear", "--train", "t.txt", "-o", "m.crfx", "-q"]) == 0
    (conll / "plain.txt").write_text("New York\nsaw\n\n")
    assert tagged(capsys, "plain.txt") == "New York\tB-LOC\nsaw\tO\n\n"


def test_lines_without_tokens_are_written_back_and_not_counted(model, conll, capsys):
    (conll / "d.txt").write_text("Ada n\nleft w\n\n-DOCSTART- -X-\n\n")
    assert tagged(capsys, "d.txt") == "Ada n B-PER\nleft w O\n\n-DOCSTART- -X-\n\n"
    assert len(tagged(capsys, "d.txt", "--write", "jsonl").splitlines()) == 1
    assert main(["tag", "m.crfx", "d.txt", "-o", "o.txt"]) == 0
    assert "1 sequences, 2 positions" in capsys.readouterr().err


def test_a_label_that_looks_open(conll, capsys):
    (conll / "f.conllu").write_text("1\ta\t_\t_\t_\t_\t0\troot\t_\t_\n\n" * 3)
    train = ["train", "--model", "linear", "--train", "f.conllu", "--label", "feats", "-q"]
    assert main([*train, "-o", "m.crfx"]) == 0
    assert main(["tag", "m.crfx", "f.conllu", "--min-probability", "0.5"]) == 2
    assert "_ is a label of the model, too: use --write jsonl" in capsys.readouterr().err


def test_arrays(conll, capsys):
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 3)).astype(np.float32)
    y = np.where(X[:, 0] > 0, "up", "down")
    write("a.npz", Arrays(X, np.array([20, 30, 10]), y))
    assert main(["train", "--model", "gbcrf", "--train", "a.npz", "-o", "m.crfx", "-q"]) == 0
    predicted = [line for line in tagged(capsys, "a.npz").splitlines() if line]
    assert predicted == y.tolist()
    assert isinstance(load("m.crfx"), GBCRF)


def test_standard_input(model, conll, capsys, monkeypatch):
    raw = io.BytesIO((conll / "plain.txt").read_bytes())
    monkeypatch.setattr("sys.stdin", type("Stdin", (), {"buffer": raw}))
    assert tagged(capsys, "-") == tagged(capsys, "plain.txt")


def test_memory_does_not_grow_with_the_file(model, conll, monkeypatch):
    """Sentences are let go once they are labelled, whether labels go to a file or not."""
    monkeypatch.setattr("crfx.cli.sources.MOST_AT_ONCE", 32)
    text = (conll / "plain.txt").read_text()  # 20 sentences
    peaks = []
    for times in (10, 10, 80):  # the first run pays for imports and caches
        (conll / "long.txt").write_text(text * times)
        tracemalloc.start()
        assert main(["tag", "m.crfx", "long.txt", "-o", "labels.txt"]) == 0
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert (conll / "labels.txt").stat().st_size > 20 * 80
    assert peaks[2] < 1.5 * peaks[1]
