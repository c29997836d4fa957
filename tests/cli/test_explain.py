"""`crfx inspect --explain`: one sequence of a file, by its number."""

import json

import numpy as np
import pytest

from crfx import LinearCRF, load
from crfx.cli import main
from crfx.testing import make_task


@pytest.fixture
def model(conll, capsys):
    train = "train --model linear --train train.txt -o m.crfx -q --set max_iter=20"
    assert main(train.split()) == 0
    capsys.readouterr()
    return load("m.crfx")


def explained(capsys, words):
    assert main(["inspect", *words.split()]) == 0
    return capsys.readouterr().out


def words_of(path, number):
    """The words of one sentence, from 1 on."""
    return [line.split()[0] for line in path.read_text().split("\n\n")[number - 1].splitlines()]


def test_a_sentence_is_explained_by_its_words(model, conll, capsys):
    text = explained(capsys, "m.crfx --explain test.txt:3 --top 2")
    note, first, *blocks = text.strip().split("\n\n")
    assert "S- for a span of one position" in note
    assert first.startswith("weight × value")
    words = words_of(conll / "test.txt", 3)
    assert [block.split(":")[0] for block in blocks] == [
        f"{number} {word}" for number, word in enumerate(words, start=1)
    ]
    for block in blocks:
        assert "other features" in block
        assert "without any feature" in block
        assert " from after" in block
    text = explained(capsys, "m.crfx --explain plain.txt:3:2")  # one position, without labels
    (block,) = text.strip().split("\n\n")[2:]
    assert block.startswith(f"2 {words[1]}: ")


def test_json_is_the_explanation(model, conll, capsys):
    explanation = json.loads(explained(capsys, "m.crfx --explain test.txt:3:2 --json"))
    words = words_of(conll / "test.txt", 3)
    assert (explanation["file"], explanation["number"], explanation["tokens"]) == (
        "test.txt",
        3,
        words,
    )
    assert explanation["classes"] == model.classes_.tolist()
    assert "files have BIO" in explanation["note"]
    assert len(explanation["predicted"]) == len(words)
    (position,) = explanation["positions"]
    assert position["position"] == 1  # as in Python, from 0
    total = np.array(position["base"]) + np.sum(
        [f["contributions"] for f in position["features"]], axis=0
    )
    np.testing.assert_allclose(total, position["score"], rtol=0, atol=1e-4)


def test_arrays_have_numbers_for_words(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    X, y = make_task(0, n_instances=6)
    LinearCRF(max_iter=5, n_jobs=1).fit(X, y).save("l.crfx")
    np.savez("a.npz", X=np.concatenate(X), lengths=[len(x) for x in X])
    text = explained(capsys, "l.crfx --explain a.npz:2")
    assert text.count(", probability ") == len(X[1])
    assert "\n1: L" in text
    assert "f0 = " in text
    explanation = json.loads(explained(capsys, "l.crfx --explain a.npz:2 --json"))
    assert explanation["tokens"] is None
    assert explanation["predicted"] == load("l.crfx").predict([X[1]])[0].tolist()


def test_trees_of_a_file_go_with_its_sentences(conll, capsys):
    rows = ["1\ta\ta\tN\tX\t_\t2\tdep\t_\t_\n", "2\tb\tb\tV\tX\t_\t0\troot\t_\t_\n"]
    (conll / "t.conllu").write_text(("".join(rows) + "\n") * 4)
    train = "train --model linear --train t.conllu --trees -o t.crfx -q --set max_iter=3"
    assert main(train.split()) == 0
    capsys.readouterr()
    text = explained(capsys, "t.crfx --explain t.conllu:2")
    assert "from the parent" in text
    assert "from the children" in text


def test_features_of_crfsuite_have_no_words(conll, capsys):
    (conll / "c.crfsuite").write_text("A\tw=a\tn:0.5\nB\tw=b\n\nA\tw=a\n\n" * 4)
    assert main(["train", "--model", "linear", "--train", "c.crfsuite", "-o", "c.crfx", "-q"]) == 0
    capsys.readouterr()
    text = explained(capsys, "c.crfx --explain c.crfsuite:1")
    assert "\n1: A, probability" in text
    assert "n = 0.5" in text


def test_queries_are_explained_too(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    lines = [f"{k % 3} qid:{k // 6} 1:{k % 3 / 2} 2:{k % 7 / 6}\n" for k in range(60)]
    (tmp_path / "r.txt").write_text("".join(lines))
    assert main(["rank", "train", "r.txt", "--model", "r.crfx", "-q"]) == 0
    capsys.readouterr()
    text = explained(capsys, "r.crfx --explain r.txt:2")
    assert text.count(": rank ") == 6
    assert text.count("rank 1, score") == 1
    assert explained(capsys, "r.crfx --explain r.txt:2:4").count("rank") == 1
