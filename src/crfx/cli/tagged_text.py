"""Labels of a model as text: in the file's own format, alone, or as objects with probabilities."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crfx.io.reading import Reading
    from crfx.io.sentences import Sentence
    from crfx.report.written_labels import WrittenLabels

ABSTAINED = "_"


@dataclass(frozen=True, eq=False)
class Tagger:
    """A model, how files are read for it (None: they are arrays), and what is to be written.

    ``form`` is "file", "labels" or "jsonl"; labels less probable than ``least`` are left open.
    """

    model: Any
    reading: Reading | None
    form: str
    least: float | None

    def texts(self, given: dict[str, Any], sentences: Sequence[Sentence]) -> list[str]:
        """One text per sentence; ``given`` are the arguments of `predict`."""
        if self.form == "jsonl":
            return self._objects(given, sentences)
        found = [
            [ABSTAINED if label is None else str(label) for label in own]
            for own in self._labels(given)
        ]
        if self.form == "labels" or self.reading is None:
            return [_lines(labels) for labels in found]
        written = self.reading.format.written
        return [
            # What has no tokens has its empty lines too.
            _lines(written(sentence, labels), ends=bool(sentence.tokens))
            for sentence, labels in zip(sentences, found, strict=True)
        ]

    def check(self) -> None:
        """Raise ValueError where labels left open could not be told from others."""
        clash = ABSTAINED in map(str, self.model.classes_)
        if self.least is not None and clash and self.form != "jsonl":
            raise ValueError(
                f"--min-probability: {ABSTAINED} is a label of the model, too: use --write jsonl"
            )

    def _labels(self, given: dict[str, Any]) -> list[list[Any]]:
        """As they are written, None where the model is not sure."""
        if self.least is not None:
            return [self._sure(own, p) for own, _, p in self._found(given)]
        return [self._written.found(own) for own in self.model.predict(**given)]

    def _found(self, given: dict[str, Any]) -> Iterator[tuple[list[Any], Any, Any]]:
        from crfx.report.written_labels import found_instances

        return found_instances(self.model, given, self._written)

    def _sure(self, labels: list[Any], probabilities: Any) -> list[Any]:
        least = self.least or 0.0
        pairs = zip(labels, probabilities, strict=True)
        return [label if p >= least else None for label, p in pairs]

    @cached_property
    def _written(self) -> WrittenLabels:
        from crfx.report.written_labels import WrittenLabels

        return WrittenLabels(self.model)

    def _objects(self, given: dict[str, Any], sentences: Sequence[Sentence]) -> list[str]:
        """JSON, one line a sentence."""
        from crfx.structures.label_schemes import scheme_of_labels

        whole = self.model.predict_confidence(**given)
        objects: list[dict[str, Any]] = [
            {
                "labels": self._sure(own, p),
                "probabilities": p.tolist(),
                "probability": each.labelling,
            }
            for (own, _, p), each in zip(self._found(given), whole, strict=True)
        ]
        if self.reading is not None:
            for found, sentence in zip(objects, sentences, strict=True):
                found["tokens"] = sentence.tokens
        if scheme_of_labels(self.model.classes_.tolist()) is not None:
            for found, spans in zip(objects, self.model.predict_spans(**given), strict=True):
                found["spans"] = [span._asdict() for span in spans]
        return [f"{json.dumps(found, ensure_ascii=False)}\n" for found in objects]


def _lines(texts: Sequence[str], *, ends: bool = True) -> str:
    """Lines of a sentence, and the empty one that ends it."""
    return "".join(f"{text}\n" for text in texts) + ("\n" if ends else "")
