"""Shared code of the harnesses of text formats: read, write back, compare; guess the format."""

from __future__ import annotations

from crfx.io import formats
from crfx.io.lines import open_lines


def there_and_back(name: str, path: str) -> None:
    """Check that writing the labels that were read gives the lines that were read."""
    for labelled in (False, True):
        with open_lines(path) as lines:
            first = lines.peek_block()
            if labelled:
                formats.format_of(first, path)
            format = formats.format_of(first, path, name=name)
            assert formats.from_plain(formats.to_plain(format)) == format
            for sentence in format.read(lines, labelled=labelled):
                _check(format, sentence)


def _check(format: formats.Format, sentence: formats.Sentence) -> None:
    count = len(sentence.tokens)
    assert len(sentence.rows) == count
    assert sentence.labels is None or len(sentence.labels) == count
    assert sentence.parents is None or all(-1 <= parent < count for parent in sentence.parents)
    if format.columns is not None:
        assert all(len(token) == len(format.columns) for token in sentence.tokens)
    if sentence.labels is None or None in sentence.labels:
        return
    texts = [line.text for line in sentence.lines]
    written = format.written(sentence, [str(label) for label in sentence.labels])
    again = [text for text in written if text.strip()]
    assert len(again) <= len(texts) + 1
    if format.name == "conllu":
        assert [text for text in texts if text.strip()] == again
