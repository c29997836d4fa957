"""The page keeps the worst and the most uncertain sequences of a file in constant memory."""

import numpy as np
import pytest

from crfx import LinearCRF
from crfx.metrics import sequence_accuracy
from crfx.report.page.labelling_page import _figures
from crfx.report.page.sequences import (
    CONTEXT,
    LEAST_GAP,
    MOST_TELLING,
    Judgement,
    shown_sequence,
)
from crfx.report.page.templating import percent
from crfx.report.written_labels import Judged

CLASSES = ["A", "B", "C"]


@pytest.fixture(scope="module")
def crf():
    return LinearCRF(n_jobs=1).fit([[["a"], ["b"], ["c"]]], [CLASSES])


def judged(true, predicted, sure=0.95):
    """One sequence: labels as texts of letters, a dot where the truth is not known."""
    p = np.broadcast_to(np.asarray(sure, float), len(predicted))
    marginals = np.repeat((1 - p)[:, None] / 2, 3, axis=1)
    marginals[np.arange(len(predicted)), [CLASSES.index(label) for label in predicted]] = p
    truth = [None if label == "." else label for label in true]
    return Judged(truth, list(predicted), marginals, p)


def added(crf, n_shown, *sequences):
    judgement, made = Judgement(crf, n_shown), []
    for number, sequence in enumerate(sequences, 1):

        def make(number=number, sequence=sequence):
            made.append(number)
            letters = [[label.lower()] for label in sequence.predicted]
            return {"X_i": letters}, [str(k) for k in range(len(letters))], ""

        judgement.add(sequence, make)
    return judgement, made


def numbers(kept):
    return [each.number for each in kept]


def test_the_worst_have_most_labels_wrong(crf):
    sequences = [judged("AAAA", "AAAA"), judged("AAAA", "ABBA"), judged("AAAA", "ABAA", 0.6)]
    sequences += [judged("AAAA", "ABAA", 0.99), judged("....", "BBBB")]
    judgement, _ = added(crf, 3, *sequences)
    assert numbers(judgement.worst()) == [2, 4, 3]  # of equals the surer one
    assert judgement.n_right == 1
    assert judgement.n_sequences == 5
    figures = {name: (number, shown) for name, number, shown in _figures(judgement)}
    share = sequence_accuracy(
        [each.true for each in sequences], [each.predicted for each in sequences]
    )
    assert figures["Sequences all right"] == (percent(share), "1 of 4 with a known label")
    assert judgement.report.n_tokens == 16


def test_the_uncertain_ones_are_others_than_the_worst(crf):
    sequences = [judged("AA", "BB", 0.4), judged("AA", "AA", 0.5), judged("AA", "AA", 0.9)]
    sequences += [judged("AA", "AA", 0.7), judged("A.", "AA", 0.3)]
    judgement, _ = added(crf, 2, *sequences)
    assert numbers(judgement.worst()) == [1]
    assert numbers(judgement.uncertain()) == [5, 2]
    judgement, _ = added(crf, 2, judged("AA", "AB"), *[judged("AA", "BB") for _ in range(3)])
    assert numbers(judgement.worst()) == [2, 3]  # the first of equals


def test_only_what_is_kept_is_made(crf):
    sequences = [judged("A" * 9, "B" * (9 - k) + "A" * k) for k in range(9)]
    judgement, made = added(crf, 1, *sequences)
    assert numbers(judgement.worst()) == [1]
    assert sorted(made) == [1, 2]  # two are kept of the uncertain, which are all alike
    assert added(crf, 0, *sequences)[1] == []


def worst_shown(crf, *args):
    judgement, _ = added(crf, 1, judged(*args))
    return shown_sequence(crf, judgement.worst()[0], judgement.written)


def test_what_is_right_and_sure_is_left_out(crf):
    length = 20
    before, *middle, after = worst_shown(crf, "A" * length, "A" * 9 + "B" + "A" * 10).rows
    assert (before["first"], before["last"]) == (0, 8 - CONTEXT)
    assert [row["number"] for row in middle] == list(range(9 - CONTEXT, 10 + CONTEXT))
    assert (after["first"], after["last"]) == (10 + CONTEXT, length - 1)
    assert before["tokens"] == " ".join(map(str, range(9 - CONTEXT)))
    assert [row["state"] for row in middle] == ["right", "wrong", "right"]
    apart = 2 * CONTEXT + LEAST_GAP
    for between, is_filled in ((apart - 1, True), (apart, False)):  # short gaps are not worth it
        rows = worst_shown(crf, "A" * (between + 2), "B" + "A" * between + "B").rows
        assert all("number" in row for row in rows) == is_filled
        assert any("first" in row for row in rows) != is_filled


def test_the_true_label_is_the_rival_where_it_was_missed(crf):
    assert crf.predict([[["a"], ["b"], ["c"]]])[0].tolist() == CLASSES
    shown = worst_shown(crf, "CB.", "ABC", [0.5, 0.5, 0.5])
    _, first = shown.whys[0]
    assert (first.chosen, first.rival) == ("A", "C")
    assert [token for token, _ in shown.whys] == ["0", "1", "2"]
    assert shown.rows[2]["state"] == "open"


def test_long_sequences_show_the_foremost_positions(crf):
    length = 3 * MOST_TELLING
    sure = np.linspace(0.1, 0.5, length)[::-1]  # the last ones are the least sure
    gap, *rows = worst_shown(crf, "A" * length, "B" * length, sure).rows
    assert gap["n_telling"] == gap["last"] + 1 == length - MOST_TELLING - CONTEXT
    assert len(gap["tokens"].split()) < length / 2
    assert [row["number"] for row in rows] == list(range(gap["last"] + 1, length))
