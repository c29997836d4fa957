"""Labels of a model as text: in the file's own format, alone, or as objects with probabilities."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from crfx.cli.options import span_scheme

if TYPE_CHECKING:
    from crfx.io.reading import Reading
    from crfx.io.sentences import Sentence

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
        found = self._labels(given)
        if self.form == "labels" or self.reading is None:
            return [_lines(labels) for labels in found]
        written = self.reading.format.written
        return [_lines(written(*pair)) for pair in zip(sentences, found, strict=True)]

    def _labels(self, given: dict[str, Any]) -> list[list[str]]:
        least = {} if self.least is None else {"min_probability": self.least}
        found = self.model.predict(**given, **least)
        return [[ABSTAINED if label is None else str(label) for label in own] for own in found]

    def _objects(self, given: dict[str, Any], sentences: Sequence[Sentence]) -> list[str]:
        """JSON, one line a sentence."""
        labels = self._labels(given)
        sure = self.model.predict_confidence(**given)
        objects: list[dict[str, Any]] = [
            {"labels": own, "probabilities": each.labels.tolist(), "probability": each.labelling}
            for own, each in zip(labels, sure, strict=True)
        ]
        if self.reading is not None:
            for found, sentence in zip(objects, sentences, strict=True):
                found["tokens"] = sentence.tokens
        if span_scheme(self.model.classes_) is not None:
            for found, spans in zip(objects, self.model.predict_spans(**given), strict=True):
                found["spans"] = [span._asdict() for span in spans]
        return [f"{json.dumps(found, ensure_ascii=False)}\n" for found in objects]


def _lines(texts: Sequence[str]) -> str:
    """Lines of a sentence, and the empty one that ends it."""
    return "".join(f"{text}\n" for text in [*texts, ""])
