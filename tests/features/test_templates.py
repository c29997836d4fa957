"""The template language: what lines stand for, ends of instances, mistakes, speed of the path."""

import numpy as np
import pytest

from crfx import LinearCRF
from crfx.features import Template, Vocabulary

COLUMNS = ("word", "pos")
SENTENCE = [("The", "DT"), ("old", "JJ"), ("Cat-5", "NN")]


def features(text, position, instance=SENTENCE):
    return Template(text, COLUMNS).features(instance)[position]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("word[0]", ["word[0]=old"]),
        ("pos[-1]", ["pos[-1]=DT"]),
        ("word[+1]", ["word[1]=Cat-5"]),
        ("word[-1..1]", ["word[-1]=The", "word[0]=old", "word[1]=Cat-5"]),
        ("pos[-1, 1]", ["pos[-1]=DT", "pos[1]=NN"]),
        ("word[-2]", ["word[-2]=<start>"]),
        ("word[2..3]", ["word[2]=<end>", "word[3]=<end>"]),
        ("lower(word[-1])", ["lower(word[-1])=the"]),
        ("shape(word[1])", ["shape(word[1])=Xxx-9"]),
        ("kind(word[-1..1])", ["kind(word[-1])=Xx", "kind(word[0])=x", "kind(word[1])=Xx-9"]),
        ("prefix(word[0], 2)", ["prefix(word[0],2)=ol"]),
        ("suffix(word[0], 1..5)", [f"suffix(word[0],{n})={'old'[-n:]}" for n in (1, 2, 3)]),
        ("word[0] & pos[1]", ["word[0]&pos[1]=old|NN"]),
        ("pos[-1..0] & pos[0..1]", ["pos[-1]&pos[0]=DT|JJ", "pos[0]&pos[1]=JJ|NN"]),
        ("pos[-1..0] & word[0]", ["pos[-1]&word[0]=DT|old", "pos[0]&word[0]=JJ|old"]),
        ("suffix(word[0], 9) & pos[0]", []),
        ("true", ["true"]),
        ("# nothing\n\nword[0] # the word\n", ["word[0]=old"]),
        ("word[0]\npos[0]", ["word[0]=old", "pos[0]=JJ"]),
    ],
)
def test_lines(text, expected):
    assert features(text, 1) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("word[0]\nlemma[0]", "template, line 2: there is no column 'lemma': there are word, pos"),
        ("word", "template, line 1: 'word' is not like word"),
        ("word[x]", "'x' is not a number"),
        ("word[2..1]", "the range '2..1' is empty"),
        ("upper(word[0])", "there is no function 'upper': use lower"),
        ("suffix(word[0])", "suffix needs number of letters"),
        ("lower(word[0], 2)", "lower takes no number of letters"),
        ("prefix(word[0], 0..2)", "prefix takes 1 letter or more"),
        ("word[-1..1] & pos[0..1]", "but here they have 3 and 2"),
        ("word[0]\nword[-1..1]", r"the feature 'word\[0\]' is there twice"),
        ("word[0] &", "'' is not like"),
        ("# only this", "no line that gives features"),
    ],
)
def test_mistakes_name_the_line(text, message):
    with pytest.raises(ValueError, match=message):
        Template(text, COLUMNS)


@pytest.mark.parametrize(
    ("instance", "message"),
    [
        ([("a", "b"), ("a",)], r"instance 1, position 1: it has 1 columns, the template 2"),
        (["a"], r"instance 1, position 0: it has 1 columns, the template 2 \(word, pos\)"),
        ([("a", 3)], r"instance 1, position 0: \('a', 3\) is not all text"),
    ],
)
def test_rows_that_do_not_fit_are_told(instance, message):
    with pytest.raises(ValueError, match=message):
        Template("word[0]", COLUMNS).encode([SENTENCE, instance], Vocabulary(), learn=True)


def test_one_column_may_be_plain_texts():
    assert Template("word[-1]", ["word"]).features(["a", "b"])[1] == ["word[-1]=a"]


def test_instances_are_streamed_and_empty_ones_kept():
    vocabulary = Vocabulary()
    template = Template("true\nword[0]", COLUMNS)
    X, lengths = template.encode((s for s in (SENTENCE, [], SENTENCE[:1])), vocabulary, learn=True)
    assert lengths == [3, 0, 1]
    assert X.shape == (4, 4)
    np.testing.assert_array_equal(X.sum(axis=1).ravel(), [[2, 2, 2, 2]])


def test_what_is_not_learned_is_left_out():
    vocabulary = Vocabulary(["word[0]=old"])
    X, _ = Template("word[0]", COLUMNS).encode([SENTENCE], vocabulary)
    np.testing.assert_array_equal(X.toarray(), [[0], [1], [0]])


def test_estimators_read_through_a_template():
    template = Template("word[-1..0]\nsuffix(word[0], 1..3)", COLUMNS)
    tags = [["D", "A", "N"], ["D"]]
    data = [SENTENCE, SENTENCE[:1]]
    crf = LinearCRF(l2=0.1).fit(template(data), tags)
    assert crf.score(template(iter(data)), tags) == 1
    by_names = LinearCRF(l2=0.1).fit([template.features(s) for s in data], tags)
    assert list(by_names.feature_names_in_) == list(crf.feature_names_in_)
    np.testing.assert_array_equal(
        np.concatenate(crf.predict_marginals(template(data))),
        np.concatenate(by_names.predict_marginals(list(template(data)))),
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("word[-1..88888888888888]", "line 1: 88888888888888 is too far: numbers go to 100000"),
        ("word[0]\nword[1" + "0" * 24 + "]", "line 2: 1000.* is too far"),
        ("word[-100001]", "-100001 is too far"),
        ("word[" + "9" * 5000 + "]", "line 1: 9+ is too far"),
        ("word[0..10000]", "stands for more than 10000 numbers"),
        ("word[0..9000, 9001..18000]", "stands for more than 10000 numbers"),
        ("suffix(word[0..200], 1..200)", "line 1: there are more than 10000 features"),
        ("word[0..6000]\npos[0..6000]", "line 2: there are more than 10000 features"),
    ],
    ids=lambda text: text[:24],
)
def test_templates_that_never_end(text, message):
    """Found by fuzzing: they took all memory, or ended in an error of the core."""
    with pytest.raises(ValueError, match=message):
        Template(text, COLUMNS)


def test_large_templates_are_read():
    """The companion: what is just below the limits."""
    (found,) = Template("word[0..9998]\nword[-100000]", ["word"]).features(["x"])
    assert len(found) == 10_000
