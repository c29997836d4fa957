"""Dicts and texts to sparse matrices: names, values, mistakes, generators, pickles."""

import pickle

import numpy as np
import pytest

from crfx.features import HashedVocabulary, Vocabulary
from crfx.features.words import peek

FIRST = [[{"w": "the", "n": 3, "t": True}, {"w": "cat", "t": False}], [], [{"w": "the"}]]


def as_dicts(matrix, names):
    """One dict of values per row; a name that occurs twice counts twice."""
    rows = []
    for row in range(matrix.shape[0]):
        entries = slice(matrix.indptr[row], matrix.indptr[row + 1])
        result = {}
        for index, value in zip(matrix.indices[entries], matrix.data[entries], strict=True):
            result[names[index]] = result.get(names[index], 0) + value
        rows.append(result)
    return rows


def test_encode_makes_rows_of_dicts():
    vocabulary = Vocabulary()
    X, lengths = vocabulary.encode(FIRST, learn=True)
    assert lengths == [2, 0, 1]
    assert vocabulary.names() == ["w:the", "n", "t", "w:cat"]
    assert X.dtype == np.float32
    rows = [{"w:the": 1, "n": 3, "t": 1}, {"w:cat": 1, "t": 0}, {"w:the": 1}]
    assert as_dicts(X, vocabulary.names()) == rows
    names = [f"w:{k}" for k in range(5000)]
    vocabulary = Vocabulary()
    X, _ = vocabulary.encode([[[name] for name in names]], learn=True)
    np.testing.assert_array_equal(X.indices, np.arange(5000))
    assert vocabulary.names() == names
    again, _ = Vocabulary(names).encode([[{"w": str(k)} for k in range(5000)]])
    np.testing.assert_array_equal(again.indices, X.indices)
    copied = pickle.loads(pickle.dumps(Vocabulary(["a", "b:c"])))
    assert copied.names() == ["a", "b:c"]
    assert copied.encode([[{"b": "c"}]])[0].indices.tolist() == [1]


def test_encode_takes_positions_of_many_kinds():
    for position, expected in (
        (["a", "b", "a"], {"a": 2, "b": 1}),
        (("a",), {"a": 1}),
        ({"a"}, {"a": 1}),
        ("a", {"a": 1}),
        ([], {}),
        ({}, {}),
        ({"k": ["x", "y"]}, {"k:x": 1, "k:y": 1}),
        ({"k": {"x": "y", "z": 2.5}}, {"k:x:y": 1, "k:z": 2.5}),
        ({"k": {"x": {"y": 1}}}, {"k:x:y": 1}),
        ({"k": ""}, {"k:": 1}),
        ({"": "v"}, {":v": 1}),
        ({"ü": "日本"}, {"ü:日本": 1}),
        ({"k": np.float32(0.5), "m": np.int64(2), "b": np.bool_(1)}, {"k": 0.5, "m": 2, "b": 1}),
        ({"a": np.array(["x", "y"]), "b": np.zeros(0), "c": []}, {"a:x": 1, "a:y": 1}),
    ):
        vocabulary = Vocabulary()
        X, lengths = vocabulary.encode([[["first"], position]], learn=True)
        assert lengths == [2]
        assert as_dicts(X, vocabulary.names())[1] == expected
    vocabulary = Vocabulary()
    ways = [{"w": "a:b"}, ["w:a:b"], {"w:a": "b"}, {"w": {"a": "b"}}]
    X, _ = vocabulary.encode([ways], learn=True)
    assert vocabulary.names() == ["w:a:b"]  # one name, written in four ways
    np.testing.assert_array_equal(X.toarray(), np.ones((4, 1)))


def test_a_vector_is_a_dict_of_its_places():
    as_dict = {"w": "a", "v": {"0": 1, "1": -0.5, "2": 0}, "n": np.float32(2)}
    hashed = HashedVocabulary(97)
    numbers = [1, -0.5, 0]
    arrays = np.array(numbers), np.array(numbers, np.float32)
    for vector in (as_dict["v"], numbers, (1.0, np.float32(-0.5), False), *arrays):
        position, vocabulary = as_dict | {"v": vector}, Vocabulary()
        X, _ = vocabulary.encode([[position]], learn=True)
        assert vocabulary.names() == ["w:a", "v:0", "v:1", "v:2", "n"]
        np.testing.assert_array_equal(X.toarray(), [[1, 1, -0.5, 0, 2]])
        assert X.nnz == 5  # zeros are values
        same = (hashed.encode([[each]])[0].indices.tolist() for each in (as_dict, position))
        assert len(set(map(tuple, same))) == 1


def test_unknown_names_are_left_out_and_counted():
    vocabulary = Vocabulary(["w:the", "n"])
    X, _ = vocabulary.encode([[{"w": "the", "n": 2, "x": "y"}, ["z"]]])
    assert X.shape == (2, 2)
    assert as_dicts(X, vocabulary.names()) == [{"w:the": 1, "n": 2}, {}]
    assert vocabulary.count_unknown([[{"w": "the", "n": 2, "x": "y"}, ["z"]]]) == 2
    assert len(vocabulary) == 2


def test_encode_names_the_place_of_a_mistake():
    """Other mistakes are in tests/bad_inputs/listed/words.py."""
    endless = {}
    endless["a"] = endless
    for position, message in (
        ({"a": None}, "the feature 'a' is None: it must be text"),
        ({"a": float("inf")}, "the feature 'a' is inf: it must be finite"),
        ({"a": {"b": float("nan")}}, "the feature 'a:b' is nan"),
        ({1: "a"}, "a feature has the name 1"),
        ({"a": ["b", 1]}, "the feature 'a' holds 1 among texts: a list holds texts, or numbers"),
        ({"a": (1.5, "b")}, "the feature 'a' holds 'b' among numbers: a list holds texts, or"),
        ({"a": {1}}, "the feature 'a' holds 1 in a set, which has no order"),
        ({"a": [1, None]}, "the feature 'a:1' is None: it must be text, .*a list of texts or of n"),
        ({"a": np.array([1.0, np.inf])}, "the feature 'a:1' is inf: it must be finite"),
        ({"a": np.zeros((1, 2))}, "the feature 'a' is an array of 2 axes: a vector has one"),
        ([2], "its features hold 2: they must be texts"),
        (None, "its features are None"),
        (["\ud800"], r"the text '\\ud800' has half"),
        (endless, "dicts within dicts go too deep"),
    ):
        with pytest.raises(ValueError, match=f"instance 1, position 2: {message}"):
            Vocabulary().encode([[["a"]], [["a"], ["b"], position]], learn=True)


def test_peek_tells_whether_positions_hold_words():
    for instances, expected in (
        ([[{"a": 1}]], True),
        ([[["a"]]], True),
        ([["a", "b"]], True),
        ([[], [[]], [[], {"a": 1}]], True),
        ([[[1.0, 2.0]]], False),
        ([np.zeros((1, 2))], False),
        ([{"a": 1}], False),
        ([], False),
        ([[[]]], False),
    ):
        assert peek(instances)[0] is expected
    is_text, instances = peek(iter([[], [{"a": 1}], [{"b": 1}]]))
    assert is_text
    assert list(instances) == [[], [{"a": 1}], [{"b": 1}]]  # a generator loses nothing


def test_encode_survives_input_that_changes_or_fails():
    class Rude:
        def __float__(self):
            features.clear()
            return 1.0

    features = {"a": Rude(), "b": Rude(), "c": 1.0}
    X, _ = Vocabulary().encode([[features]], learn=True)
    assert X.shape[0] == 1

    def instances():
        yield [["a"]]
        raise RuntimeError("the file is gone")

    with pytest.raises(RuntimeError, match="the file is gone"):
        Vocabulary().encode(instances(), learn=True)


def test_encode_template_checks_columns():
    for columns, lines, message in (
        ([("a", "b")], [("x=", [(0, 0)])], "a column must be a list"),
        ([["a", "b"], ["c"]], [("x=", [(1, 1)])], "equally long"),
        ([["a"]], [("x=", [(1, 0)])], "a column that does not exist"),
        ([[3]], [("x=", [(0, 0)])], "columns hold texts or None"),
    ):
        with pytest.raises(ValueError, match=message):
            Vocabulary().encode_template([columns], lines, learn=True)
