"""One instance of a file, by its number, and why a model labels or orders it as it does."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from crfx.explanation import Explanation
    from crfx.io.reading import Reading
    from crfx.io.sentences import Sentence

_ASKED = re.compile(r"(.+?):([0-9]{1,15})(?::([0-9]{1,15}))?")


class Asked(NamedTuple):
    """FILE:NUMBER or FILE:NUMBER:POSITION; both count from 1, as editors do."""

    path: str
    number: int
    position: int | None

    @property
    def positions(self) -> list[int] | None:
        """For `explain`, which counts from 0."""
        return None if self.position is None else [self.position - 1]


class Found(NamedTuple):
    """Arguments of `explain`, how many positions there are, and words to show, if there are any."""

    arguments: dict[str, Any]
    length: int
    tokens: list[str] | None = None


def asked(text: str) -> Asked:
    """The argument of --explain."""
    match = _ASKED.fullmatch(text)
    if match is None:
        raise argparse.ArgumentTypeError(
            f"{text} is not FILE:NUMBER: name the file and which sequence of it, from 1 on"
        )
    path, number, position = match[1], int(match[2]), match[3] and int(match[3])
    if number == 0 or position == 0:
        raise argparse.ArgumentTypeError(f"{text}: sequences and positions count from 1")
    return Asked(path, number, position or None)


def explained(model: Any, wanted: Asked) -> tuple[Explanation, list[str] | None]:
    """The explanation, and the words of the positions where the file has some."""
    found = _query(model, wanted) if not hasattr(model, "classes_") else _instance(model, wanted)
    if wanted.position is not None and wanted.position > found.length:
        raise ValueError(
            f"{wanted.path}:{wanted.number} has {found.length} positions: there is no "
            f"number {wanted.position}"
        )
    return model.explain(**found.arguments, positions=wanted.positions), found.tokens


def _instance(model: Any, wanted: Asked) -> Found:
    from crfx.cli.models import reading_of
    from crfx.cli.sources import arguments_of_one, array_instances, wants_arrays

    if wants_arrays(wanted.path, None):
        given, _ = array_instances(wanted.path)
        _check_count(wanted, len(given["X"]))
        own = arguments_of_one(given, wanted.number - 1)
        return Found(own, own["X_i"].shape[0])
    reading = reading_of(model, wanted.path)
    sentence = _sentence(reading, wanted)
    own = arguments_of_one(reading.arguments([sentence]), 0)
    tokens = None
    if reading.format.columns is not None:
        tokens = [str(columns[0]) for columns in sentence.tokens]
    return Found(own, len(sentence.tokens), tokens)


def _sentence(reading: Reading, wanted: Asked) -> Sentence:
    """Lines without tokens do not count."""
    from crfx.cli.models import sentences_of

    count = 0
    for sentence in sentences_of(reading, wanted.path, labelled=False):
        count += bool(sentence.tokens)
        if count == wanted.number:
            return sentence
    raise _too_few(wanted, count)


def _query(model: Any, wanted: Asked) -> Found:
    from crfx.io import letor

    rankings = letor.read(wanted.path, n_features=model.n_features_in_)
    _check_count(wanted, len(rankings.group))
    end = int(rankings.group[: wanted.number].sum())
    length = int(rankings.group[wanted.number - 1])
    return Found({"X_q": rankings.X[end - length : end]}, length)


def _check_count(wanted: Asked, count: int) -> None:
    if count < wanted.number:
        raise _too_few(wanted, count)


def _too_few(wanted: Asked, count: int) -> ValueError:
    return ValueError(f"{wanted.path} has {count} sequences: there is no number {wanted.number}")
