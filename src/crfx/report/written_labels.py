"""True and predicted labels side by side, in the scheme of the files or of the caller.

The scheme of a model may differ from that of its files (BIOES for BIO), and files may have an older
one (IOB1).  All evaluations of a model compare labels here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from crfx.batch import Batch
from crfx.features.matrix import stacked, unwrapped
from crfx.inputs.label_codes import flat_labels
from crfx.inputs.passed import Passed, read_input
from crfx.structures.constraints import scheme_of
from crfx.structures.label_schemes import converted
from crfx.tag_report import TagReport

Probabilities = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class WrittenLabels:
    """The labels of a fitted model as they are written in files."""

    model: Any

    @property
    def is_bio(self) -> bool:
        """Whether the model works in BIOES while files have BIO."""
        reading = getattr(self.model, "reading_", None)
        return reading is not None and bool(reading.as_bio)

    @property
    def note(self) -> str:
        """A note for readers of the model's labels; empty if files have the same labels."""
        if not self.is_bio:
            return ""
        return (
            "The model works in BIOES and files have BIO: explanations name the model's own "
            "labels, S- for a span of one position and E- for the end of a longer one."
        )

    @cached_property
    def names(self) -> list[Any]:
        """All labels in the order of ``classes_``, each once."""
        return list(dict.fromkeys(self.as_written(self.model.classes_)))

    @cached_property
    def column_of(self) -> dict[Any, int]:
        """The index of every label in ``names``."""
        return {name: column for column, name in enumerate(self.names)}

    def as_written(self, labels: npt.NDArray[Any]) -> list[Any]:
        """Return predicted labels as they are written."""
        plain: list[Any] = labels.tolist()
        return list(self.model.reading_.labels(plain)) if self.is_bio else plain

    def true(self, labels: Sequence[Any]) -> list[Any]:
        """Return the true labels of one instance, converted to the scheme of the model."""
        scheme = scheme_of(self.model.constraints)
        if scheme is None:
            return list(labels)
        written = "bio" if self.is_bio else scheme
        return converted(written, labels, Batch.from_lengths([len(labels)]))

    def marginals(self, marginals: npt.NDArray[Any]) -> Probabilities:
        """Return (length, names) from (length, classes); labels that are written alike add up."""
        by_name = np.zeros((len(marginals), len(self.names)))
        columns = [self.column_of[name] for name in self.as_written(self.model.classes_)]
        np.add.at(by_name.T, columns, np.asarray(marginals, np.float64).T)
        return by_name


@dataclass(frozen=True)
class Judged:
    """One instance: true labels (None: unknown), predicted labels, (length, names) marginals."""

    true: list[Any]
    predicted: list[Any]
    marginals: Probabilities
    probabilities: Probabilities
    """(length,) probabilities of the predicted labels."""

    @property
    def known(self) -> npt.NDArray[np.bool_]:
        """(length,) whether the true label is known."""
        return np.array([label is not None for label in self.true], bool)

    @property
    def wrong(self) -> npt.NDArray[np.bool_]:
        """(length,) whether the true label is known and another one was predicted."""
        pairs = zip(self.true, self.predicted, strict=True)
        return np.array([true is not None and true != other for true, other in pairs], bool)


def judged_instances(
    model: Any, arguments: dict[str, Any], y: Sequence[Sequence[Any]], written: WrittenLabels
) -> list[Judged]:
    """Label instances that are passed as lists, and return them with their true labels."""
    pairs = zip(y, predicted_instances(model, arguments, written), strict=True)
    return [Judged(written.true(true), *prediction) for true, prediction in pairs]


def predicted_instances(
    model: Any, arguments: dict[str, Any], written: WrittenLabels
) -> Iterator[tuple[list[Any], Probabilities, Probabilities]]:
    """Yield, by instance, predicted labels, (length, names) marginals, and (length,) probabilities
    of the predicted labels.
    """
    pairs = zip(model.predict(**arguments), model.predict_marginals(**arguments), strict=True)
    for codes, by_class in pairs:
        labels, marginals = written.as_written(codes), written.marginals(by_class)
        columns = [written.column_of[label] for label in labels]
        yield labels, marginals, marginals[np.arange(len(columns)), columns]


def as_instances(
    model: Any, X: Any, y: Any, lengths: Any, parents: Any, edge_types: Any
) -> tuple[dict[str, Any], list[list[Any]]]:
    """Return what `fit` takes, stacked or not, as lists with an entry per instance, and labels."""
    if isinstance(X, Iterator):  # it is read more than once below
        X = list(X)
    data = read_input(Passed(X, None, lengths, parents, edge_types), model.columns_)
    labels, ends = flat_labels(y, data), data.batch.offsets.tolist()

    arguments = {
        "X": X if data.as_list else by_instance(stacked(unwrapped(X)), ends),
        "parents": by_instance(data.batch.parents, ends),
        "edge_types": by_instance(data.batch.edge_types, ends),
    }
    return arguments, by_instance(labels, ends)


def by_instance(rows: Any, offsets: Sequence[int]) -> Any:
    """Return rows as a list with an entry per instance; None stays."""
    return None if rows is None else [rows[begin:end] for begin, end in pairwise(offsets)]


def arguments_of_one(arguments: dict[str, Any], at: int) -> dict[str, Any]:
    """Return the arguments of `explain` for one of the instances of `predict`."""
    return {
        "X_i" if name == "X" else name: next(islice(rows, at, None))
        for name, rows in arguments.items()
        if rows is not None
    }


def confusion(report: TagReport, names: Sequence[Any]) -> tuple[list[str], npt.NDArray[np.int64]]:
    """Return labels and (labels, labels) how often a true label (row) was labelled as another.

    Labels of the model that occur come first, then those unknown to it.
    """
    counts, occurring = report.confusion(), list(report.labels())
    known = list(map(str, names))
    labels = [name for name in known if name in occurring]
    labels += [name for name in occurring if name not in known]
    table = [[counts.get(true, {}).get(other, 0) for other in labels] for true in labels]
    return labels, np.array(table, np.int64).reshape(len(labels), len(labels))


def row_shares(counts: npt.NDArray[np.int64]) -> Probabilities:
    """Return counts as shares of their row; 0 in rows without counts."""
    return np.asarray(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1))
