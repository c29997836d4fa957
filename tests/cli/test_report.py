"""`crfx report`: the page has what `crfx eval` says, for every format that it reads."""

import json
import re
import sys

import numpy as np
import pytest

from crfx import LinearCRF
from crfx.cli import main

pytest.importorskip("jinja2", reason="the page needs crfx[report]")

TRAIN = ["train", "-q", "--model", "linear", "--train"]


@pytest.fixture
def model(conll):
    assert main([*TRAIN, "train.txt", "-o", "m.crfx", "--set", "max_iter=5"]) == 0
    return conll


def page_of(*arguments):
    assert main(["report", *arguments, "-o", "page.html", "-q"]) == 0
    with open("page.html", encoding="utf-8") as file:
        return file.read()


def evaluated(capsys, *arguments):
    capsys.readouterr()
    assert main(["eval", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def words(page):
    return " ".join(re.sub("<style>.*?</style>|<[^>]*>", " ", page, flags=re.DOTALL).split())


def test_the_figures_are_those_of_eval(model, capsys):
    page, report = page_of("m.crfx", "test.txt"), evaluated(capsys, "m.crfx", "test.txt")
    shown = words(page)
    assert f"{100 * report['accuracy']:.2f} %" in shown
    assert f"F1 of spans {100 * report['span']['f1']:.2f} %" in shown
    assert f"{report['tokens']} labels in {report['sentences']} sequences" in shown
    for label, scores in report["labels"].items():
        row = f"{label} {100 * scores['f1']:.2f} {100 * scores['precision']:.2f}"
        assert row in shown
    assert "m.crfx on test.txt" in shown


def test_the_title_and_how_many_sequences(model):
    page = page_of("m.crfx", "test.txt", "--worst", "2", "--title", "A & B")
    assert "<title>A &amp; B</title>" in page
    assert "<h1>A &amp; B</h1>" in page
    assert page.count('<details class="sequence"') in (2, 3, 4)
    assert '<details class="sequence"' not in page_of("m.crfx", "test.txt", "--worst", "0")
    text = (model / "test.txt").read_text().splitlines()
    page = page_of("m.crfx", "test.txt", "--worst", "1")
    line = int(re.search(r"Sequence \d+, line (\d+)", page)[1])
    first = text[line - 1].split()[0]
    assert re.search(rf'<bdi class="token">{first}</bdi>|… <bdi>{first}', page)


def test_files_of_crfsuite_and_standard_input(model, monkeypatch):
    assert main(["convert", "train.txt", "-o", "train.crfsuite"]) == 0
    assert (
        main(["train", "--model", "linear", "--train", "train.crfsuite", "-o", "c.crfx", "-q"]) == 0
    )
    page = page_of("c.crfx", "train.crfsuite")
    assert "c.crfx on train.crfsuite" in words(page)
    with open("test.txt", "rb") as file:
        monkeypatch.setattr(sys, "stdin", type("In", (), {"buffer": file})())
        assert "m.crfx on standard input" in words(page_of("m.crfx", "-"))


def test_arrays_and_labels_that_are_numbers(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    X, lengths = random.normal(size=(60, 3)).astype(np.float32), np.array([5] * 12 + [0])
    y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 1)
    LinearCRF(max_iter=4, n_jobs=1).fit(X, y, lengths=lengths).save("m.crfx")
    np.savez("a.npz", X=X, lengths=lengths, y=y)
    shown = words(page_of("m.crfx", "a.npz", "--worst", "20"))
    report = evaluated(capsys, "m.crfx", "a.npz")
    assert f"Labels right {100 * report['accuracy']:.2f} %" in shown


def test_trees_of_conllu(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [("dogs", "NOUN", 2), ("bark", "VERB", 0), ("loudly", "ADV", 2)]
    lines = [f"{k}\t{w}\t_\t{t}\t_\t_\t{h}\t_\t_\t_" for k, (w, t, h) in enumerate(rows, 1)]
    (tmp_path / "t.conllu").write_text("\n".join(lines) + "\n\n")
    assert (
        main(["train", "--model", "linear", "--train", "t.conllu", "--trees", "-o", "m.crfx", "-q"])
        == 0
    )
    assert "from its children" in page_of("m.crfx", "t.conllu")


def test_models_that_rank(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    lines = [f"{k % 3} qid:{k // 6} 1:{k % 5 / 4} 2:{k % 7 / 6} #<b>{k}</b>" for k in range(60)]
    (tmp_path / "test.txt").write_text("\n".join(lines) + "\n")
    assert main(["rank", "train", "test.txt", "--model", "m.crfx", "-q", "--set", "sweeps=2"]) == 0
    shown = words(page := page_of("m.crfx", "test.txt", "--worst", "2"))
    capsys.readouterr()
    assert main(["rank", "eval", "m.crfx", "test.txt", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    for cut in ("1", "3", "5", "10"):
        assert f"NDCG@{cut} {report['ndcg'][cut]:.4f}" in shown
    assert "which is more relevant" in shown
    assert "&lt;b&gt;" in page
    assert "<b>5" not in page
    assert main(["report", "m.crfx", "-", "-o", "page.html"]) == 2
    assert "standard input" in capsys.readouterr().err


def test_memory_is_bounded(model, monkeypatch):
    """Sequences are made only where they are kept, however many there are."""
    from crfx.cli import report

    made, make = [], report._instance
    monkeypatch.setattr(report, "_instance", lambda *args: made.append(args) or make(*args))
    (model / "long.txt").write_text((model / "test.txt").read_text() * 40)
    page_of("m.crfx", "long.txt", "--worst", "2")
    assert len(made) < 60  # of 800


def test_a_library_that_is_missing_is_told_at_once(model, monkeypatch, capsys):
    from crfx.report.page import templating

    templating._environment.cache_clear()
    monkeypatch.setitem(sys.modules, "jinja2", None)
    monkeypatch.setattr("crfx.cli.models.load_model", None)  # is not come to
    assert main(["report", "m.crfx", "test.txt", "-o", "page.html"]) == 2
    text = capsys.readouterr().err
    assert text == "crfx report: error: the page needs Jinja2: pip install 'crfx[report]'\n"
