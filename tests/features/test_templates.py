"""The template language: what lines stand for, ends of instances, mistakes, speed of the path."""

import numpy as np
import pytest

from crfx import LinearCRF
from crfx.features import Template, Vocabulary
from crfx.features.templates import text_template

COLUMNS = ("word", "pos")
SENTENCE = [("The", "DT"), ("old", "JJ"), ("Cat-5", "NN")]


def test_features_of_a_line():
    for text, expected in (
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
    ):
        assert Template(text, COLUMNS).features(SENTENCE)[1] == expected, text
    assert Template("word[-1]", ["word"]).features(["a", "b"])[1] == ["word[-1]=a"]


def test_encode_streams_instances_and_keeps_empty_ones():
    vocabulary = Vocabulary()
    template = Template("true\nword[0]", COLUMNS)
    X, lengths = template.encode((s for s in (SENTENCE, [], SENTENCE[:1])), vocabulary, learn=True)
    assert lengths == [3, 0, 1]
    assert X.shape == (4, 4)
    np.testing.assert_array_equal(X.sum(axis=1).ravel(), [[2, 2, 2, 2]])
    X, _ = Template("word[0]", COLUMNS).encode([SENTENCE], Vocabulary(["word[0]=old"]))
    np.testing.assert_array_equal(X.toarray(), [[0], [1], [0]])  # others are left out
    bad = [("a", "b"), ("a",)]
    with pytest.raises(ValueError, match=r"instance 1, position 1: it has 1 columns, the templ"):
        template.encode([SENTENCE, bad], vocabulary, learn=True)


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


def test_templates_that_never_end_are_rejected():
    """Found by fuzzing: they took all memory, or ended in an error of the core.

    Other mistakes are in tests/bad_inputs/listed/loaders.py.
    """
    for text, message in (
        ("word[-1..88888888888888]", "line 1: 88888888888888 is too far: numbers go to 100000"),
        ("word[0]\nword[1" + "0" * 24 + "]", "line 2: 1000.* is too far"),
        ("word[-100001]", "-100001 is too far"),
        ("word[" + "9" * 5000 + "]", "line 1: 9+ is too far"),
        ("word[0..10000]", "stands for more than 10000 numbers"),
        ("word[0..9000, 9001..18000]", "stands for more than 10000 numbers"),
        ("suffix(word[0..200], 1..200)", "line 1: there are more than 10000 features"),
        ("word[0..6000]\npos[0..6000]", "line 2: there are more than 10000 features"),
        ("prefix(word[0], 0..2)", "prefix takes 1 letter or more"),
        ("word[-1..1] & pos[0..1]", "but here they have 3 and 2"),
    ):
        with pytest.raises(ValueError, match=message):
            Template(text, COLUMNS)
    (result,) = Template("word[0..9998]\nword[-100000]", ["word"]).features(["x"])
    assert len(result) == 10_000  # just below the limits


# The template for text files.

TAGGED = [
    [("Mr.", "NNP"), ("Smith", "NNP"), ("flew", "VBD"), ("to", "TO"), ("Paris", "NNP")],
    [("She", "PRP"), ("met", "VBD"), ("Mr.", "NNP"), ("Jones", "NNP"), ("in", "IN")],
]
TAGS = [["O", "B-PER", "O", "O", "B-LOC"], ["O", "O", "O", "B-PER", "O"]]


def test_text_template_looks_at_every_column():
    for columns in (["word"], ["form"], ["word", "c1"], ["word", "pos", "chunk"]):
        template = Template(text_template(columns), columns)
        instance = [tuple(f"{name}{place}" for name in columns) for place in "abc"]
        result = set(template.features(instance)[1])
        for name in columns:
            assert {f"{name}[-1]={name}a", f"{name}[0]={name}b", f"{name}[1]={name}c"} <= result
    for columns, message in (
        ([], "there is no column to make features of"),
        (["word", "part-of-speech"], "the column 'part-of-speech' cannot stand in a template"),
        (["0"], "the column '0' cannot stand in a template"),
    ):
        with pytest.raises(ValueError, match=message):
            text_template(columns)


def test_text_template_knows_unseen_words_by_their_look():
    columns = ["word", "pos"]
    template = Template(text_template(columns), columns)
    crf = LinearCRF(l2=0.1).fit(template(TAGGED), TAGS)
    new = [[("Mr.", "NNP"), ("Brown", "NNP"), ("left", "VBD")]]
    assert crf.predict(template(new))[0].tolist() == ["O", "B-PER", "O"]
