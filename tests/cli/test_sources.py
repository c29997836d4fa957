"""Items as they come."""

import threading
import time
from itertools import chain

import pytest

from crfx.cli.sources import as_they_come


def test_all_come_once_and_in_order():
    items = list(as_they_come(iter(range(1000)), most=64))
    assert list(chain.from_iterable(items)) == list(range(1000))
    assert max(map(len, items)) <= 64


def test_one_does_not_wait_for_the_next():
    gate = threading.Event()

    def slowly():
        yield 1
        gate.wait(60)
        yield 2

    batches = as_they_come(slowly(), most=8)
    assert next(batches) == [1]
    gate.set()
    assert next(batches) == [2]
    assert list(batches) == []


def test_a_source_that_is_ahead_waits():
    seen = []

    def eager():
        for number in range(1000):
            seen.append(number)
            yield number

    batches = as_they_come(eager(), most=4)
    next(batches)
    time.sleep(0.2)
    assert len(seen) <= 4 + 4 + 1  # given, waiting, in hand


def test_an_error_comes_after_what_came_before_it():
    def failing():
        yield from range(3)
        raise ValueError("line 4")

    items = chain.from_iterable(as_they_come(failing(), most=2))
    assert [next(items) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ValueError, match="line 4"):
        next(items)
