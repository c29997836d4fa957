"""The usual measures of labels, counted sentence by sentence, in constant memory.

Spans are counted by the rule of CoNLL's shared tasks (the script conlleval): right are those whose
first and last position and type are right; see `crfx.metrics.spans` for what a span is.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from crfx.metrics import spans

OUTSIDE = "O"
_SPAN_LABEL = re.compile(r"O|[BIES](-.*)?", re.DOTALL)
_MOST_CONFUSIONS = 10


@dataclass(frozen=True)
class Counts:
    """The number of true items (``wanted``), of predicted ones (``found``), and of both."""

    right: int
    found: int
    wanted: int

    @property
    def precision(self) -> float:
        """The share of predicted items that is right; 0 if there are none."""
        return self.right / self.found if self.found else 0.0

    @property
    def recall(self) -> float:
        """The share of true items that was predicted; 0 if there are none."""
        return self.right / self.wanted if self.wanted else 0.0

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall, 2 right / (found + wanted)."""
        total = self.found + self.wanted
        return 2 * self.right / total if total else 0.0

    def to_plain(self) -> dict[str, float]:
        """Return precision, recall and F1, from 0 to 1."""
        return {"precision": self.precision, "recall": self.recall, "f1": self.f1}


class TagReport:
    """Measures of predicted labels beside the true ones.

    ``known`` are the labels of a model: other true labels are counted by name, as the model cannot
    predict them.  Positions whose true label is None do not count; sentences with such a position
    do not count for spans.

    >>> report = TagReport()
    >>> report.add(["B-PER", "I-PER", "O"], ["B-PER", "I-PER", "B-LOC"])
    >>> report.n_tokens, report.accuracy, report.span().f1
    (3, 0.6666666666666666, 0.6666666666666666)
    """

    def __init__(self, known: Iterable[str] | None = None) -> None:
        self._known = None if known is None else frozenset(known)
        self._pairs: Counter[tuple[str, str]] = Counter()
        self._spans: dict[str, Counter[str]] = {
            name: Counter() for name in ("right", "found", "wanted")
        }
        self._has_spans = True
        self.n_sentences = self.n_tokens = self.n_unlabelled = 0

    def add(self, true: Sequence[str | None], found: Sequence[str]) -> None:
        """Count one sentence: its true and its predicted labels."""
        if len(true) != len(found):
            raise ValueError(
                f"sentence {self.n_sentences}: {len(true)} labels are true, {len(found)} were found"
            )
        pairs = [(str(a), str(b)) for a, b in zip(true, found, strict=True) if a is not None]
        self._pairs.update(pairs)
        self.n_sentences += 1
        self.n_tokens += len(pairs)
        self.n_unlabelled += len(true) - len(pairs)
        if self._has_spans and not all(_marks_span(label) for pair in pairs for label in pair):
            self._has_spans = False
        if self._has_spans and len(pairs) == len(true):
            self._add_spans(spans([a for a, _ in pairs]), spans([b for _, b in pairs]))

    def _add_spans(
        self,
        true_spans: Collection[tuple[int, int, str]],
        predicted_spans: Collection[tuple[int, int, str]],
    ) -> None:
        for name, counted in (("wanted", true_spans), ("found", predicted_spans)):
            self._spans[name].update(kind for _, _, kind in counted)
        self._spans["right"].update(kind for *_, kind in set(true_spans) & set(predicted_spans))

    @property
    def accuracy(self) -> float:
        """The share of positions whose label is right."""
        if self.n_tokens == 0:
            raise ValueError("there is no labelled token to judge by")
        right = sum(n for (true, predicted), n in self._pairs.items() if true == predicted)
        return right / self.n_tokens

    def has_spans(self) -> bool:
        """Return whether all labels mark spans: O, and B-, I-, E- or S- with a type."""
        seen = {label for pair in self._pairs for label in pair} | (self._known or set())
        marked = any(label != OUTSIDE for label in seen)
        return self._has_spans and marked and all(map(_marks_span, seen))

    def span(self) -> Counts:
        """Return the counts of spans of all types together."""
        return Counts(*(self._spans[name].total() for name in ("right", "found", "wanted")))

    def spans(self) -> dict[str, Counts]:
        """Return the counts of spans of every type."""
        kinds = sorted({*self._spans["found"], *self._spans["wanted"]})
        return {
            kind: Counts(*(self._spans[name][kind] for name in ("right", "found", "wanted")))
            for kind in kinds
        }

    def labels(self) -> dict[str, Counts]:
        """Return the counts of every label, position by position."""
        true: Counter[str] = Counter()
        predicted: Counter[str] = Counter()
        for (a, b), count in self._pairs.items():
            true[a] += count
            predicted[b] += count
        return {
            label: Counts(self._pairs[label, label], predicted[label], true[label])
            for label in sorted({*true, *predicted})
        }

    def confusion(self) -> dict[str, dict[str, int]]:
        """Return how often a true label (outer key) was predicted as each label (inner key)."""
        rows: dict[str, dict[str, int]] = {}
        for (true, predicted), count in sorted(self._pairs.items()):
            rows.setdefault(true, {})[predicted] = count
        return rows

    def unknown_labels(self) -> dict[str, int]:
        """Return the true labels that the model does not know, and how often they occur."""
        if self._known is None:
            return {}
        counts = {label: of.wanted for label, of in self.labels().items()}
        return {label: n for label, n in counts.items() if n and label not in self._known}

    def to_plain(self) -> dict[str, Any]:
        """Return all measures, as `crfx eval --json` prints them; spans if labels mark some."""
        plain: dict[str, Any] = {
            "sentences": self.n_sentences,
            "tokens": self.n_tokens,
            "accuracy": self.accuracy,
        }
        if self.has_spans():
            plain["span"] = self.span().to_plain()
            plain["spans"] = {
                kind: of.to_plain() | {"right": of.right, "found": of.found, "support": of.wanted}
                for kind, of in self.spans().items()
            }
        plain["labels"] = {
            label: of.to_plain() | {"support": of.wanted} for label, of in self.labels().items()
        }
        plain["confusion"] = self.confusion()
        if self.n_unlabelled:
            plain["unlabelled"] = self.n_unlabelled
        if unknown := self.unknown_labels():
            plain["unknown_labels"] = unknown
        return plain

    def to_text(self) -> str:
        """Return the measures in tables, percentages with two digits."""
        parts = [
            f"{self.n_tokens} tokens in {self.n_sentences} sentences, "
            f"accuracy {100 * self.accuracy:.2f} %"
        ]
        if self.n_unlabelled:
            parts[0] += f"; {self.n_unlabelled} tokens without a label are left out"
        for label, count in self.unknown_labels().items():
            parts[0] += f"\nthe model does not know the label {label} ({count} tokens)"
        if self.has_spans():
            parts.append(_table("spans", {"all": self.span(), **self.spans()}))
        parts.append(_table("labels", self.labels()))
        if wrong := [(n, a, b) for (a, b), n in self._pairs.items() if a != b]:
            most = sorted(wrong, key=lambda entry: (-entry[0], entry[1:]))[:_MOST_CONFUSIONS]
            lines = [f"{count:>8}  {true} found as {predicted}" for count, true, predicted in most]
            parts.append("\n".join(["most frequent mistakes", *lines]))
        return "\n\n".join(parts)


def _marks_span(label: str) -> bool:
    return _SPAN_LABEL.fullmatch(label) is not None


def _table(title: str, rows: dict[str, Counts]) -> str:
    width = max(len(title), *map(len, rows))
    lines = [f"{title:<{width}} {'precision':>10} {'recall':>8} {'F1':>8} {'found':>8} {'true':>8}"]
    for name, of in rows.items():
        figures = f"{100 * of.precision:>10.2f} {100 * of.recall:>8.2f} {100 * of.f1:>8.2f}"
        lines.append(f"{name:<{width}} {figures} {of.found:>8} {of.wanted:>8}")
    return "\n".join(lines)
