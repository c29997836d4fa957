"""The way text files are read for an estimator; model files keep it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from crfx.features import Template
from crfx.io import formats
from crfx.io.formats import Format
from crfx.io.sentences import Sentence

_IN_BIO = {"S": "B", "E": "I"}


@dataclass(frozen=True, eq=False)
class Reading:
    """A format, and a template if tokens have columns.

    ``as_bio`` is True if the model has labels in BIOES while files have them in BIO.  A model that
    ``crfx train`` has trained keeps its own as ``load(path).reading_``.
    """

    format: Format
    template: Template | None = None
    as_bio: bool = False

    def arguments(self, sentences: Sequence[Sentence]) -> dict[str, Any]:
        """Return X, and parents if sentences are forests: arguments of `fit` and `predict`."""
        tokens: Any = [sentence.tokens for sentence in sentences]
        arguments = {"X": tokens if self.template is None else self.template(tokens)}
        if sentences and sentences[0].parents is not None:
            arguments["parents"] = [sentence.parents for sentence in sentences]
        return arguments

    def labels(self, labels: Iterable[Any]) -> list[Any]:
        """Return labels of the model as files have them; None stays."""
        if not self.as_bio:
            return list(labels)
        return [label and _IN_BIO.get(label[0], label[0]) + label[1:] for label in labels]

    def __str__(self) -> str:
        """Describe the format in words, as `crfx train` prints it."""
        columns = self.format.columns
        return self.format.name + ("" if columns is None else f" (columns {', '.join(columns)})")

    def to_plain(self) -> dict[str, Any]:
        """Return plain values for a model file."""
        return {
            "format": formats.to_plain(self.format),
            "template": None if self.template is None else self.template.text,
            "as_bio": self.as_bio,
        }

    @classmethod
    def from_plain(cls, plain: Any) -> Reading:
        """Return the reading that `to_plain` has described; raise ValueError if it is invalid."""
        try:
            format = formats.from_plain(plain["format"])
            text, as_bio = plain["template"], plain["as_bio"]
        except (KeyError, TypeError) as error:
            raise ValueError(f"it does not say how files are read: {error!r}") from None
        if not isinstance(as_bio, bool):
            raise ValueError(f"its labels are in BIO: {as_bio!r}, which is neither true nor false")
        if not isinstance(text, str | None) or (text is None) != (format.columns is None):
            raise ValueError("its template does not suit its format")
        template = (
            None if format.columns is None or text is None else Template(text, format.columns)
        )
        return cls(format, template, as_bio)
