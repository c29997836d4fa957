"""`crfx eval` and `crfx inspect`: how good a model is, and what it is."""

import json

import numpy as np
import pytest

from crfx import GBCRF, HiddenUnitCRF, LinearCRF, RankingCRF, TreeCRF, load
from crfx.cli import main
from crfx.metrics import span_f1, token_accuracy

TRAIN = ["train", "--model", "linear", "--train", "train.txt", "-o", "m.crfx", "-q"]


@pytest.fixture
def model(conll):
    assert main([*TRAIN, "--dev", "dev.txt"]) == 0
    return load("m.crfx")


def sentences(path):
    blocks = path.read_text().strip().split("\n\n")
    return [[line.split(" ") for line in block.split("\n")] for block in blocks]


def test_figures_are_those_of_the_metrics(model, conll, capsys):
    capsys.readouterr()
    assert main(["eval", "m.crfx", "test.txt", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    rows = sentences(conll / "test.txt")
    y = [[row[2] for row in sentence] for sentence in rows]
    X = model.reading_.template([[tuple(row[:2]) for row in sentence] for sentence in rows])
    predicted = [model.reading_.labels(labels) for labels in model.predict(X)]
    assert report["tokens"] == sum(map(len, y))
    assert report["accuracy"] == pytest.approx(token_accuracy(y, predicted))
    assert report["span"]["f1"] == pytest.approx(span_f1(y, predicted))
    assert set(report["labels"]) == {"B-LOC", "B-PER", "I-PER", "O"}
    assert main(["eval", "m.crfx", "test.txt"]) == 0
    assert f"accuracy {100 * report['accuracy']:.2f} %" in capsys.readouterr().out


def test_iob1_is_judged_in_the_scheme_of_the_model(model, conll, capsys):
    """B- only where an entity follows another of its type: so in CoNLL-2003."""
    lines, before = [], "O"
    for line in (conll / "test.txt").read_text().split("\n"):
        words, _, label = line.rpartition(" ")
        if label.startswith("B-") and before[1:] != label[1:]:
            line = f"{words} I{label[1:]}"
        lines.append(line)
        before = label or "O"
    (conll / "iob1.txt").write_text("\n".join(lines))
    assert (conll / "iob1.txt").read_text().count("B-") < 5
    capsys.readouterr()
    reports = []
    for name in ("test.txt", "iob1.txt"):
        assert main(["eval", "m.crfx", name, "--json"]) == 0
        reports.append(json.loads(capsys.readouterr().out))
    assert reports[0] == reports[1]
    assert main([*TRAIN[:4], "iob1.txt", "-o", "n.crfx", "-q"]) == 0
    assert load("n.crfx").classes_.tolist() == model.classes_.tolist()


def test_labels_that_the_model_does_not_know_are_told(model, conll, capsys):
    text = (conll / "test.txt").read_text().replace("B-LOC", "B-GPE")
    (conll / "other.txt").write_text(text)
    capsys.readouterr()
    assert main(["eval", "m.crfx", "other.txt", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["unknown_labels"] == {"B-GPE": text.count("B-GPE")}
    assert report["labels"]["B-GPE"]["recall"] == 0


def test_eval_reads_files_without_entities(model, conll, capsys):
    (conll / "d.txt").write_text("the w O\nold w O\n\n-DOCSTART- -X- O\n\n")
    capsys.readouterr()
    assert main(["eval", "m.crfx", "d.txt", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["sentences"], report["tokens"]) == (1, 2)
    assert report["span"] == {"precision": 0, "recall": 0, "f1": 0}


def test_eval_skips_missing_labels(conll, capsys):
    rows = ["1\tcats\t_\tN\t_\t_\t0\troot\t_\t_\n", "2\tsleep\t_\tV\t_\t_\t1\tx\t_\t_\n"]
    (conll / "t.conllu").write_text("".join(rows) + "\n" + "".join(rows).replace("\tV", "\t_"))
    train = ["train", "--model", "linear", "--train", "t.conllu", "-o", "m.crfx", "-q"]
    assert main(train) == 0
    capsys.readouterr()
    assert main(["eval", "m.crfx", "t.conllu", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["tokens"], report["unlabelled"], report["accuracy"]) == (3, 1, 1.0)


def test_inspect_tells_what_was_learned(model, capsys):
    capsys.readouterr()
    assert main(["inspect", "m.crfx", "--top", "3", "--json"]) == 0
    output = json.loads(capsys.readouterr().out)
    assert output["class"] == "LinearCRF"
    assert output["labels"] == model.classes_.tolist()
    assert len(output["transitions"]) == 3
    strongest = np.abs(model.transitions_).max()
    assert max(abs(entry["score"]) for entry in output["transitions"]) == pytest.approx(strongest)
    weights = model.coef_.tocoo()
    foremost = output["important"]["features"][0]
    at = np.abs(weights.data).argmax()
    assert foremost["value"] == pytest.approx(weights.data[at])
    assert foremost["feature"] == model.feature_names_in_[weights.col[at]]
    assert foremost["label"] == model.classes_[weights.row[at]]
    assert output["training"]["eval_metric"]["kept"] > 0.9
    assert main(["inspect", "m.crfx", "--top", "3"]) == 0
    text = capsys.readouterr().out
    assert f"{len(model.classes_)} labels: {' '.join(model.classes_)}" in text
    assert foremost["feature"] in text


OTHERS = {
    "no edges": GBCRF(3, max_depth=2, edges=None),
    "order 2": GBCRF(3, max_depth=2, order=2),
    "trees": GBCRF(3, max_depth=2, edges="trees"),
    "treecrf": TreeCRF(3),
    "hidden": HiddenUnitCRF(3, sweeps=2, random_state=0),
    "linear units": HiddenUnitCRF(0, skip=True, sweeps=2, random_state=0),
}


def test_inspect_knows_every_estimator(tmp_path, capsys):
    random = np.random.default_rng(0)
    X = [random.normal(size=(6, 3)).astype(np.float32) for _ in range(8)]
    y = [(each[:, 1] > 0).astype(int) for each in X]
    path = tmp_path / "m.crfx"
    for name, estimator in OTHERS.items():
        estimator.fit(X, y).save(path)
        assert main(["inspect", str(path)]) == 0
        text = capsys.readouterr().out
        assert "f1" in text, name  # the column that matters
        has_table = name not in ("no edges", "treecrf", "trees")
        assert ("Strongest transitions" in text) == has_table, name
        assert ("Most important to edges" in text) == (name in ("treecrf", "trees")), name


def test_inspect_knows_rankings(tmp_path, capsys):
    X = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    for scorer in ("linear", "trees"):
        model = RankingCRF(scorer=scorer).fit(X, (X[:, 1] > 0).astype(int), group=[10] * 4)
        model.save(tmp_path / "m.crfx")
        assert main(["inspect", str(tmp_path / "m.crfx")]) == 0
        assert "f1" in capsys.readouterr().out


def test_instances_of_arrays_are_counted_over_the_whole_file(tmp_path, monkeypatch, capsys):
    """They are looked at a few hundred at a time."""
    monkeypatch.chdir(tmp_path)
    X, lengths = np.ones((700, 2), np.float32), np.ones(700, np.int64)
    y = np.array(["A", "B"] * 350)
    LinearCRF(max_iter=2).fit(X, y, lengths=lengths).save("m.crfx")
    np.savez("good.npz", X=X, lengths=lengths, y=y)
    assert main(["eval", "m.crfx", "good.npz", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["sentences"] == 700
    X[600, 1] = np.inf
    np.savez("bad.npz", X=X, lengths=lengths, y=y)
    assert main(["eval", "m.crfx", "bad.npz"]) == 2
    assert "instance 600" in capsys.readouterr().err
