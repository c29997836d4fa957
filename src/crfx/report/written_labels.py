"""True and found labels side by side, in the words of the files or of the caller.

A model may work in another scheme than its files are written in (BIOES for BIO), and files may be
in an older one (IOB1).  Whatever judges a model compares labels here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from crfx.batch import Batch
from crfx.features.matrix import stacked, unwrapped
from crfx.inputs.label_codes import flat_labels
from crfx.inputs.passed import Passed, read_input
from crfx.structures.constraints import scheme_of
from crfx.structures.label_schemes import converted

Probabilities = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class WrittenLabels:
    """The labels of a fitted model, as they are written."""

    model: Any

    @property
    def is_bio(self) -> bool:
        """Whether the model works in BIOES and files get BIO."""
        reading = getattr(self.model, "reading_", None)
        return reading is not None and bool(reading.as_bio)

    @property
    def note(self) -> str:
        """What a reader of the model's own labels should know; empty where files have the same."""
        if not self.is_bio:
            return ""
        return (
            "The model works in BIOES and files have BIO: explanations name the model's own "
            "labels, S- for a span of one position and E- for the end of a longer one."
        )

    @cached_property
    def names(self) -> list[Any]:
        """All of them, in the order of ``classes_``; each once."""
        return list(dict.fromkeys(self.found(self.model.classes_)))

    @cached_property
    def _column_of(self) -> npt.NDArray[np.intp]:
        at = {name: column for column, name in enumerate(self.names)}
        return np.array([at[name] for name in self.found(self.model.classes_)], np.intp)

    def found(self, labels: npt.NDArray[Any]) -> list[Any]:
        """Labels of the model."""
        plain: list[Any] = labels.tolist()
        return list(self.model.reading_.labels(plain)) if self.is_bio else plain

    def true(self, labels: Sequence[Any]) -> list[Any]:
        """True labels of one instance; those of another scheme are told in this one."""
        scheme = scheme_of(self.model.constraints)
        if scheme is None:
            return list(labels)
        own = "bio" if self.is_bio else scheme
        return converted(own, labels, Batch.from_lengths([len(labels)]))

    def marginals(self, marginals: npt.NDArray[Any]) -> Probabilities:
        """(length, names) from (length, classes): labels that are written alike add up."""
        given = np.asarray(marginals, np.float64)
        found = np.zeros((len(given), len(self.names)))
        np.add.at(found.T, self._column_of, given.T)
        return found


@dataclass(frozen=True)
class Judged:
    """One instance: true labels (None: unknown), found ones, and (length, names) marginals."""

    true: list[Any]
    found: list[Any]
    marginals: Probabilities
    probabilities: Probabilities
    """(length,) of the labels found."""


def judged_instances(
    model: Any, given: dict[str, Any], y: Sequence[Sequence[Any]], written: WrittenLabels
) -> list[Judged]:
    """Label instances that are given as lists, and set the truth beside them."""
    pairs = zip(y, found_instances(model, given, written), strict=True)
    return [Judged(written.true(true), *found) for true, found in pairs]


def found_instances(
    model: Any, given: dict[str, Any], written: WrittenLabels
) -> Iterator[tuple[list[Any], Probabilities, Probabilities]]:
    """Per instance the labels found, (length, names) marginals, and (length,) those of the labels
    found.
    """
    column = {name: number for number, name in enumerate(written.names)}
    pairs = zip(model.predict(**given), model.predict_marginals(**given), strict=True)
    for labels, marginals in pairs:
        own, folded = written.found(labels), written.marginals(marginals)
        at = [column[label] for label in own]
        yield own, folded, folded[np.arange(len(at)), at]


def as_instances(
    model: Any, X: Any, y: Any, lengths: Any, parents: Any, edge_types: Any
) -> tuple[dict[str, Any], list[list[Any]]]:
    """What `fit` takes, stacked or not, as lists with an entry per instance, and the labels."""
    if isinstance(X, Iterator):  # read more than once below
        X = list(X)
    data = read_input(Passed(X, None, lengths, parents, edge_types), model.columns_)
    labels, ends = flat_labels(y, data), data.batch.offsets.tolist()

    def parted(rows: Any) -> Any:
        return None if rows is None else [rows[begin:end] for begin, end in pairwise(ends)]

    given = {
        "X": X if data.as_list else parted(stacked(unwrapped(X))),
        "parents": parted(data.batch.parents),
        "edge_types": parted(data.batch.edge_types),
    }
    return given, parted(labels)
