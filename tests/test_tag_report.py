"""Figures of labels: hand-made cases of CoNLL's rule, and random ones against a slow reference."""

import json
import random

import pytest

from crfx.metrics import span_f1, token_accuracy
from crfx.tag_report import TagReport


def report_of(*sentences, known=None):
    report = TagReport(known)
    for true, predicted in sentences:
        report.add(true.split(), predicted.split())
    return report


def test_spans_are_counted_as_conlleval_does():
    for true, predicted, *expected in (  # right, found, wanted
        ("B-A I-A O", "B-A I-A O", 1, 1, 1),
        ("B-A I-A O", "B-A O O", 0, 1, 1),  # an end that is wrong
        ("B-A I-A O", "B-B I-B O", 0, 1, 1),  # a type that is wrong
        ("I-A I-A B-A", "I-A I-A B-A", 2, 2, 2),  # IOB1: B parts neighbours of a type
        ("I-A I-A B-A", "I-A I-A I-A", 0, 1, 2),
        ("I-A I-B", "I-A I-B", 2, 2, 2),  # another type is another span
        ("B-A I-A", "I-A I-A", 1, 1, 1),  # I after O begins a span: schemes may be mixed
        ("B-A B-A", "B-A I-A", 0, 1, 2),
        ("B-A I-B I-B", "B-A I-B I-B", 2, 2, 2),  # malformed: I of another type
        ("O I-A O", "O B-A O", 1, 1, 1),
        ("S-A B-B E-B", "S-A B-B E-B", 2, 2, 2),  # IOBES
        ("B-A E-A", "B-A I-A", 1, 1, 1),
        ("B-A E-A I-A", "B-A E-A I-A", 2, 2, 2),  # after E begins another
        ("S-A S-A", "B-A I-A", 0, 1, 2),
        ("E-A E-A", "E-A E-A", 2, 2, 2),
        ("O O", "O B-A", 0, 1, 0),
        ("O B-A", "O O", 0, 0, 1),
        ("B-A-B I-A-B", "B-A-B I-A-B", 1, 1, 1),  # types may have hyphens
        ("B I O", "B I O", 1, 1, 1),  # or there is none
    ):
        report = report_of((true, predicted))
        assert report.has_spans()
        of = report.span()
        assert [of.right, of.found, of.wanted] == expected, (true, predicted)
        assert of.f1 == pytest.approx(span_f1([true.split()], [predicted.split()]), abs=1e-15)
    across_sentences = report_of(("I-A", "I-A"), ("I-A", "I-A"))
    assert across_sentences.span().wanted == 2


def test_types_apart_and_together():
    report = report_of(("B-NP I-NP B-VP O", "B-NP I-NP B-VP B-NP"), ("B-NP O B-PP", "B-NP O B-VP"))
    of = report.span()
    assert (of.precision, of.recall) == (3 / 5, 3 / 4)
    assert of.f1 == pytest.approx(2 * 0.6 * 0.75 / 1.35, abs=1e-15)
    kinds = report.spans()
    assert list(kinds) == ["NP", "PP", "VP"]
    assert (kinds["NP"].right, kinds["NP"].found, kinds["NP"].wanted) == (2, 3, 2)
    assert (kinds["PP"].precision, kinds["PP"].recall, kinds["PP"].f1) == (0, 0, 0)
    assert (kinds["VP"].precision, kinds["VP"].recall) == (1 / 2, 1)


def test_plain_figures():
    report = report_of(("B-A O", "B-A B-A"), known=["O"])
    plain = report.to_plain()
    assert json.loads(json.dumps(plain)) == plain
    half = {"precision": 0.5, "recall": 1.0, "f1": 2 / 3}
    assert plain == {
        "sentences": 1,
        "tokens": 2,
        "accuracy": 0.5,
        "span": half,
        "spans": {"A": {**half, "right": 1, "found": 2, "support": 1}},
        "labels": {
            "B-A": {**half, "support": 1},
            "O": {"precision": 0.0, "recall": 0.0, "f1": 0.0, "support": 1},
        },
        "confusion": {"B-A": {"B-A": 1}, "O": {"B-A": 1}},
        "unknown_labels": {"B-A": 1},
    }
    with pytest.raises(ValueError, match="there is no labelled token to judge by"):
        TagReport().to_plain()


def test_labels_that_mark_no_spans_have_no_figures_of_them():
    for true, predicted in (("NN VB", "NN NN"), ("B-A O", "B-A X"), ("O O", "O O"), ("Boy", "O")):
        plain = report_of((true, predicted)).to_plain()
        assert "span" not in plain
        assert "spans" not in plain
        assert "spans" not in report_of((true, predicted)).to_text()
    one_is_enough = report_of(("B-A", "B-A"), ("NN", "B-A"), ("B-A", "B-A"))
    assert not one_is_enough.has_spans()


def test_unknown_labels_are_named_and_missing_ones_left_out():
    report = report_of(("X Y Y", "X X X"), known=["X"])
    assert report.unknown_labels() == {"Y": 2}
    assert "the model does not know the label Y (2 tokens)" in report.to_text()
    assert report_of(("X Y Y", "X X X")).unknown_labels() == {}
    report = TagReport()
    report.add(["B-A", None, "O"], ["B-A", "I-A", "B-A"])
    report.add(["B-A"], ["B-A"])
    assert (report.n_tokens, report.n_unlabelled) == (3, 1)
    assert report.accuracy == 2 / 3
    assert report.span().wanted == 1
    assert report.to_plain()["unlabelled"] == 1
    assert "1 tokens without a label are left out" in report.to_text()
    with pytest.raises(ValueError, match="sentence 2: 2 labels are true, 1 were found"):
        report.add(["O", "O"], ["O"])


def test_text():
    report = report_of(("B-A O O", "B-A B-A O"))
    assert report.to_text() == (
        "3 tokens in 1 sentences, accuracy 66.67 %\n\n"
        "spans  precision   recall       F1    found     true\n"
        "all        50.00   100.00    66.67        2        1\n"
        "A          50.00   100.00    66.67        2        1\n\n"
        "labels  precision   recall       F1    found     true\n"
        "B-A         50.00   100.00    66.67        2        1\n"
        "O          100.00    50.00    66.67        1        2\n\n"
        "most frequent mistakes\n       1  O found as B-A"
    )


def slow_spans(labels):
    """Spans by looking at every pair of ends: a start, an end, no start or end between."""
    parts = [(label[:1], label[2:]) for label in labels]
    n = len(parts)

    def starts(i):
        tag, kind = parts[i]
        before, kind_before = parts[i - 1] if i else ("O", "")
        if tag == "O":
            return False
        return tag in "BS" or before in "OES" or kind != kind_before

    def ends(i):
        return parts[i][0] in "ES" or i + 1 == n or parts[i + 1][0] == "O" or starts(i + 1)

    return {
        (i, j, parts[i][1])
        for i in range(n)
        for j in range(i, n)
        if starts(i)
        and ends(j)
        and all(parts[k][0] != "O" for k in range(i, j + 1))
        and not any(starts(k) for k in range(i + 1, j + 1))
        and not any(ends(k) for k in range(i, j))
    }


def test_random_labels_against_the_slow_way():
    chosen = random.Random(0)
    labels = ["O", *(f"{tag}-{kind}" for tag in "BIES" for kind in "AB")]
    for _ in range(300):
        sentences = [
            tuple([chosen.choice(labels) for _ in range(n)] for _ in range(2))
            for n in (chosen.randrange(9) for _ in range(4))
        ]
        report = TagReport()
        for pair in sentences:
            report.add(*pair)
        if not report.n_tokens:
            continue
        wanted = [slow_spans(true) for true, _ in sentences]
        result = [slow_spans(predicted) for _, predicted in sentences]
        of = report.span()
        assert of.wanted == sum(map(len, wanted))
        assert of.found == sum(map(len, result))
        assert of.right == sum(len(a & b) for a, b in zip(wanted, result, strict=True))
        flat = [pair for true, predicted in sentences for pair in zip(true, predicted, strict=True)]
        assert report.accuracy == sum(a == b for a, b in flat) / len(flat)
        assert report.accuracy == token_accuracy(*map(list, zip(*sentences, strict=True)))
        for label, of in report.labels().items():
            assert of.wanted == sum(a == label for a, _ in flat)
            assert of.found == sum(b == label for _, b in flat)
            assert of.right == flat.count((label, label))
        for a, row in report.confusion().items():
            for b, count in row.items():
                assert count == flat.count((a, b))
        assert sum(n for row in report.confusion().values() for n in row.values()) == len(flat)
