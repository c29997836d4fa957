"""Threads of this process as the workers of a cluster: for tests, and to count what they tell."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import Any, TypeVar

from crfx.distributed.collective import member, tracker
from crfx.workers import WorkerLost, Workers

Result = TypeVar("Result")


def together(n_workers: int, work: Callable[[Workers], Result]) -> list[Result]:
    """What ``work`` gives in each of so many threads that train together.

    Where one fails, its error is raised; the others have lost a worker then.

    >>> import numpy as np
    >>> together(3, lambda workers: int(workers.sum(np.array([workers.rank]))[0]))
    [3, 3, 3]
    """
    results: list[Any] = [None] * n_workers
    errors: list[BaseException | None] = [None] * n_workers

    def run(number: int, arguments: dict[str, Any]) -> None:
        try:
            with member(arguments, number) as communicator:
                results[number] = work(communicator)
        except BaseException as error:
            errors[number] = error

    with tracker(n_workers, "127.0.0.1") as arguments:
        threads = [
            threading.Thread(target=copy_context().run, args=(run, number, arguments))
            for number in range(n_workers)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for error in sorted(filter(None, errors), key=lambda each: isinstance(each, WorkerLost)):
        raise error
    return results
