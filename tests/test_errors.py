"""Errors about one instance: their place is kept in fields, and put into words once."""

import pickle

import numpy as np
import pytest

from crfx.batch import Batch
from crfx.errors import BadInstance, about, located


def test_text_of_a_bad_instance():
    in_eval_set = BadInstance(3, "it is bad", file="2.npz", argument="eval_set")
    for error, text in (
        (BadInstance(3, "it is bad"), "instance 3: it is bad"),
        (BadInstance(3, "it is bad", 4), "instance 3, position 4: it is bad"),
        (BadInstance(3, "it is bad", 0, unit="query"), "query 3, document 0: it is bad"),
        (BadInstance(3, "it is bad", 4, "a/2.npz"), "a/2.npz: instance 3, position 4: it is bad"),
        (in_eval_set, "eval_set: 2.npz: instance 3: it is bad"),
        (BadInstance(3, "unlike {other}, {x}"), "instance 3: unlike instance 0, {x}"),
    ):
        assert isinstance(error, ValueError)
        assert str(error) == text
        assert str(pickle.loads(pickle.dumps(error))) == text


def test_after_counts_the_instances_before():
    error = BadInstance(3, "unlike {other}", 4, "2.npz").after(10)
    assert str(error) == "2.npz: instance 13, position 4: unlike instance 10"
    error = BadInstance(1, "y holds 'instance 5'").after(10)
    assert str(error) == "instance 11: y holds 'instance 5'"


def test_located_reads_the_place_from_errors_of_the_core():
    error = located(ValueError("instance 2, position 5: a feature\nis no text"))
    assert isinstance(error, BadInstance)
    assert (error.instance, error.position) == (2, 5)
    assert error.reason == "a feature\nis no text"
    assert located(ValueError("instance 2: empty")).position is None
    other = ValueError("lengths: instance 2 has -1 rows")
    assert located(other) is other


def test_about_names_the_argument():
    with pytest.raises(BadInstance, match=r"^eval_set: instance 2: bad"), about("eval_set"):
        raise BadInstance(2, "bad")
    with pytest.raises(ValueError, match=r"^eval_set: bad"), about("eval_set"):
        raise ValueError("bad")


def test_bad_row_has_instance_and_position():
    error = Batch(np.array([0, 3, 3, 5])).bad_row(4, "it is bad")
    assert (error.instance, error.position, error.file) == (2, 1, None)
