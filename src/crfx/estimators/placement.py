"""The place where methods of estimators run: this process, or a cluster."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, ParamSpec, Protocol, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class Place(Protocol):
    """Somewhere else to work."""

    def run(self, estimator: Any, method: str, arguments: dict[str, Any]) -> Any:
        """Call a method of an estimator there, with arguments by name, and return its result.

        What it changes in the estimator is changed in this process too.
        """
        ...


_PLACE: ContextVar[Place | None] = ContextVar("place", default=None)


@contextmanager
def at(place: Place | None) -> Iterator[None]:
    """Run methods at a place during the context; None: in this process."""
    before = _PLACE.set(place)
    try:
        yield
    finally:
        _PLACE.reset(before)


def placed(method: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Return a method that runs at the place of the context."""
    signature = inspect.signature(method)

    @wraps(method)
    def run(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        place = _PLACE.get()
        if place is None:
            return method(*args, **kwargs)
        estimator, *_ = args
        arguments = dict(signature.bind(*args, **kwargs).arguments)
        arguments.pop("self")
        with at(None):
            result: Result = place.run(estimator, method.__name__, arguments)
        return result

    return run
