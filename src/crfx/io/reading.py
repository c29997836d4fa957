"""How sentences of a file become what an estimator takes; kept in the model file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from crfx.features import Template
from crfx.io import formats
from crfx.io.sentences import Format, Sentence

_IN_BIO = {"S": "B", "E": "I"}


@dataclass(frozen=True, eq=False)
class Reading:
    """A format, and a template where tokens have columns.

    ``as_bio``: the model has labels in BIOES, and files get them in BIO.

    ``load(path).reading_`` is the one a model was trained with by ``crfx train``.
    """

    format: Format
    template: Template | None = None
    as_bio: bool = False

    def arguments(self, sentences: Sequence[Sentence]) -> dict[str, Any]:
        """X, and parents where sentences are forests: arguments of `fit`, `predict` and others."""
        tokens: Any = [sentence.tokens for sentence in sentences]
        arguments = {"X": tokens if self.template is None else self.template(tokens)}
        if sentences and sentences[0].parents is not None:
            arguments["parents"] = [sentence.parents for sentence in sentences]
        return arguments

    def labels(self, labels: Iterable[Any]) -> list[Any]:
        """Return labels of a model as files have them; None stays."""
        if not self.as_bio:
            return list(labels)
        return [label and _IN_BIO.get(label[0], label[0]) + label[1:] for label in labels]

    def __str__(self) -> str:
        """In words, as `crfx train` says it."""
        columns = self.format.columns
        return self.format.name + ("" if columns is None else f" (columns {', '.join(columns)})")

    def to_plain(self) -> dict[str, Any]:
        """What a model file keeps."""
        return {
            "format": self.format.to_plain(),
            "template": None if self.template is None else self.template.text,
            "as_bio": self.as_bio,
        }

    @classmethod
    def from_plain(cls, plain: Any) -> Reading:
        """What `to_plain` gave; ValueError where it is none."""
        try:
            own = formats.from_plain(plain["format"])
            text, as_bio = plain["template"], plain["as_bio"]
        except (KeyError, TypeError) as error:
            raise ValueError(f"it does not say how files are read: {error!r}") from None
        if not isinstance(as_bio, bool):
            raise ValueError(f"its labels are in BIO: {as_bio!r}, which is neither true nor false")
        if not isinstance(text, str | None) or (text is None) != (own.columns is None):
            raise ValueError("its template does not suit its format")
        template = None if own.columns is None or text is None else Template(text, own.columns)
        return cls(own, template, as_bio)
