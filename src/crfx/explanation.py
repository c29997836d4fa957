"""Explanations: scores as sums over features, and what the neighbours added.

A score is ``base`` plus a term per feature.  Only differences between labels matter to a label's
probability, so the terms of a label are shown less the mean of those of the other labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crfx.terms import Terms

Array64 = npt.NDArray[np.float64]


class Contribution(NamedTuple):
    """The contribution of one feature to a label: above 0 for it, below 0 against it."""

    feature: str
    input: Any
    contribution: float


def towards(values: Any, place: int) -> Any:
    """Return (...) the values (..., labels) of one label less the mean of the others.

    Labels that are ruled out (-inf) do not count; inf where no other is left.  One label alone
    counts as it is.
    """
    values = np.asarray(values, np.float64)
    if values.shape[-1] == 1:
        return values[..., 0]
    others = np.delete(values, place, axis=-1)
    finite = np.isfinite(others)
    counts = finite.sum(axis=-1)
    mean = np.where(finite, others, 0.0).sum(axis=-1) / np.maximum(counts, 1)
    return np.where(counts > 0, values[..., place] - mean, np.inf)


@dataclass(frozen=True, eq=False, kw_only=True)
class ExplainedScores(Terms):
    """Terms with the scores (labels,) that they add up to, to 1e-4."""

    classes: npt.NDArray[Any]
    score: Array64

    def _place(self, label: Any) -> int:
        classes = self.classes.tolist()
        if label not in classes:
            known = ", ".join(map(repr, classes[:10]))
            raise ValueError(f"label {label!r} is not one of the model's: {known}")
        place: int = classes.index(label)
        return place

    def _strongest(self, place: int, n: int) -> list[Contribution]:
        if n < 0:
            raise ValueError(f"{n} features are asked for: it must be 0 or more")
        values = towards(self.contributions, place)
        foremost = np.argsort(-np.abs(values), kind="stable")[:n]
        return [Contribution(self.features[k], self.inputs[k], float(values[k])) for k in foremost]

    def to_plain(self) -> dict[str, Any]:
        """Return the scores for JSON."""
        return {
            "score": numbers(self.score),
            "base": numbers(self.base),
            "features": [
                {"feature": name, "column": int(column), "input": value, "contributions": shares}
                for name, column, value, shares in zip(
                    self.features,
                    self.columns,
                    map(_plain, self.inputs),
                    map(numbers, self.contributions),
                    strict=True,
                )
            ],
        }


@dataclass(frozen=True, eq=False, kw_only=True)
class ExplainedEdge(ExplainedScores):
    """The score of the edge into a position, for every label that the position might have.

    The edge comes from the labels predicted ``before``, oldest first; it depends on features.
    """

    before: list[Any]


@dataclass(frozen=True, eq=False, kw_only=True)
class ExplainedPosition(ExplainedScores):
    """One position: what its features say, and what its neighbours add.

    ``alone`` (labels,) are the probabilities by ``score`` alone, ``marginal`` those with edges.
    ``alone_given`` has the predicted labels before, oldest first, where ``score`` takes them as
    given (`TreeCRF`); it is empty where it takes none.
    ``messages`` are what the two sides add to the score, (labels,) each, centred to a mean of 0
    over what is finite: "before" and "after" in chains, "parent" and "children" in forests; -inf
    where constraints leave no labelling of that side.  In chains of order 1 and in forests
    softmax(score + all messages) over the ``allowed`` labels is ``marginal``.  In chains of higher
    order a message is of the part of the chain that ends, or begins, at the position: edges that
    reach over it belong to neither side.

    Of a ranking there are no probabilities and no messages; ``predicted`` is the rank, from 1.
    """

    position: int
    predicted: Any
    marginal: Array64 | None = None
    alone: Array64 | None = None
    alone_given: list[Any] = field(default_factory=list)
    allowed: npt.NDArray[np.bool_] | None = None
    messages: dict[str, Array64] = field(default_factory=dict)
    edge: ExplainedEdge | None = None

    @property
    def place(self) -> int:
        """The index of the predicted label in ``classes``."""
        return self._place(self.predicted) if len(self.classes) > 1 else 0

    def strongest(self, label: Any = None, n: int = 5) -> list[Contribution]:
        """Return the features that contribute most for or against a label.

        Each counts by what it adds to the label's score, less the mean of what it adds to the
        others.

        Parameters
        ----------
        label : optional
            One of ``classes``; None: the predicted label.
        n : int, default 5
            The number of features.

        Returns
        -------
        list of Contribution, the largest first
        """
        return self._strongest(self.place if label is None else self._place(label), n)

    def edge_contributions(self, label: Any = None, n: int = 5) -> list[Contribution]:
        """Return the `strongest` features of the edge into the position.

        Parameters
        ----------
        label, n
            As in `strongest`.

        Returns
        -------
        list of Contribution
            Empty if edges are tables, or if no edge ends here.
        """
        if self.edge is None:
            return []
        return self.edge._strongest(self.place if label is None else self._place(label), n)

    def to_plain(self) -> dict[str, Any]:
        """Return the position for JSON; what is -inf, or missing, is None."""
        plain = {"position": self.position, "predicted": _plain(self.predicted)}
        plain |= super().to_plain()
        if self.marginal is not None and self.alone is not None:
            plain |= {"marginal": numbers(self.marginal), "alone": numbers(self.alone)}
            plain["alone_given"] = [_plain(label) for label in self.alone_given]
        if self.allowed is not None:
            plain["allowed"] = self.allowed.tolist()
        plain["messages"] = {side: numbers(message) for side, message in self.messages.items()}
        if self.edge is not None:
            before = [_plain(label) for label in self.edge.before]
            plain["edge"] = {"before": before, **self.edge.to_plain()}
        return plain


@dataclass(frozen=True, eq=False, kw_only=True)
class Explanation:
    """The reasons for the labels of one instance, or for the order of one query.

    ``method`` names how scores were shared out among features; ``predicted`` (length,) are the
    labels (ranks) of all positions, ``positions`` those that were asked for.
    """

    method: str
    classes: npt.NDArray[Any]
    predicted: npt.NDArray[Any]
    positions: list[ExplainedPosition]

    def as_text(self, top: int = 5, tokens: Sequence[str] | None = None, *, first: int = 0) -> str:
        """Return the explanation as text for the terminal.

        The lines of a position, up to what it has without any feature, add up to its score for the
        predicted label, less the mean of the others; then comes what its neighbours add.

        Parameters
        ----------
        top : int, default 5
            The number of features of each position.
        tokens : (length,) list of str, optional
            Words to show.
        first : int, default 0
            The number of the first position.

        Returns
        -------
        str
        """
        if tokens is not None and len(tokens) != len(self.predicted):
            raise ValueError(
                f"there are {len(tokens)} tokens, but the instance has {len(self.predicted)} "
                "positions"
            )
        against = ", less the mean of the other labels" if len(self.classes) > 1 else ""
        lines = [f"{self.method}; numbers are scores of the predicted label{against}"]
        if len(self.classes) == 1:
            lines = [self.method]
        for position in self.positions:
            token = "" if tokens is None else f" {tokens[position.position]}"
            lines += ["", *_position_lines(position, top, f"{position.position + first}{token}")]
        return "\n".join(lines)

    def to_plain(self) -> dict[str, Any]:
        """Return the explanation for JSON; labels other than text and numbers become text."""
        return {
            "method": self.method,
            "classes": [_plain(label) for label in self.classes.tolist()],
            "predicted": [_plain(label) for label in self.predicted.tolist()],
            "positions": [position.to_plain() for position in self.positions],
        }


def _position_lines(explained: ExplainedPosition, top: int, begin: str) -> list[str]:
    place = explained.place
    term_lines = _term_lines(explained, top, place)
    if explained.marginal is None or explained.alone is None:
        rank = f"{begin}: rank {explained.predicted}, score {explained.score[0]:.4g}"
        return [rank, *term_lines]
    p, alone = explained.marginal[place], explained.alone[place]
    how = "given the labels before" if explained.alone_given else "without edges"
    lines = [f"{begin}: {explained.predicted}, probability {p:.3f}, {how} {alone:.3f}"]
    lines += term_lines
    lines += [
        f"  {towards(message, place):+8.3f}  from {_SIDES[side]}"
        for side, message in explained.messages.items()
        if np.ptp(message[np.isfinite(message)]) > 0 or not np.isfinite(message).all()
    ]
    if explained.edge is not None:
        lines.append(f"  the edge from {' '.join(map(str, explained.edge.before))}")
        lines += [f"  {line}" for line in _term_lines(explained.edge, top, place)]
    return lines


_SIDES = {
    "before": "before",
    "after": "after",
    "parent": "the parent",
    "children": "the children",
}


def _term_lines(terms: ExplainedScores, top: int, place: int) -> list[str]:
    """Return lines for the strongest features, the others, and the score without features."""
    foremost = terms._strongest(place, top)
    lines = [
        f"  {each.contribution:+8.3f}  {each.feature}{_shown_input(each.input)}"
        for each in foremost
    ]
    n_rest = len(terms.features) - len(foremost)
    if n_rest:
        rest = towards(terms.contributions, place).sum() - sum(
            each.contribution for each in foremost
        )
        lines.append(f"  {rest:+8.3f}  {n_rest} other feature{'s' * (n_rest > 1)}")
    return [*lines, f"  {towards(terms.base, place):+8.3f}  without any feature"]


def _shown_input(value: Any) -> str:
    if value is None:
        return " (missing)"
    if isinstance(value, float):
        return "" if value == 1.0 else f" = {value:.4g}"
    return f" = {value}"


def numbers(values: Any) -> list[float | None]:
    """Return numbers for JSON, with None for infinity."""
    return [float(value) if np.isfinite(value) else None for value in values]


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | bool | type(None)) else str(value)
