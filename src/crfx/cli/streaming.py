"""What comes, as soon as it comes: one by one from a slow source, many at once from a fast one."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

Item = TypeVar("Item")
_END = object()
MOST_AT_ONCE = 512
"""Sentences that are labelled together, where so many are there already."""


def as_they_come(items: Iterable[Item], most: int) -> Iterator[list[Item]]:
    """Lists of the items that are there already, one item or more, ``most`` at most.

    They are read in a thread of their own, ``most`` ahead: so memory stays bounded, and nobody
    waits for a second sentence before the first is labelled.
    """
    waiting: queue.Queue[Any] = queue.Queue(maxsize=most)
    threading.Thread(target=_fill, args=(waiting, items), daemon=True).start()
    while True:
        found = [waiting.get()]
        while len(found) < most and found[-1] is not _END:
            try:
                found.append(waiting.get_nowait())
            except queue.Empty:
                break
        failed = [item for item in found if isinstance(item, BaseException)]
        good = [item for item in found if item is not _END and not isinstance(item, BaseException)]
        if good:
            yield good
        if failed:
            raise failed[0]
        if found[-1] is _END:
            return


def _fill(waiting: queue.Queue[Any], items: Iterable[Any]) -> None:
    try:
        for item in items:
            waiting.put(item)
    except BaseException as error:  # told where the items are taken, not here
        waiting.put(error)
    waiting.put(_END)
