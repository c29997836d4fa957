"""Models that commands read, and the sentences they are asked about."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crfx.io.reading import Reading
    from crfx.io.sentences import Sentence


def load_labeller(path: Path, n_jobs: int | None = None) -> Any:
    """A model that labels, to be used on so many threads."""
    from crfx.estimators.labelling import LabellingEstimator

    model = load_model(path, n_jobs)
    if not isinstance(model, LabellingEstimator):
        raise ValueError(f"{path} holds a {type(model).__name__}: `crfx rank` is for those")
    return model


def load_model(path: Path, n_jobs: int | None = None) -> Any:
    """A model of any kind, to be used on so many threads."""
    from crfx.estimators.registry import load

    try:
        model = load(path)
    except ValueError as error:
        if zipfile.is_zipfile(path):
            raise
        raise ValueError(f"{error} (the model comes before the file)") from None
    if n_jobs is not None:
        model.set_params(n_jobs=n_jobs)
    return model


def reading_of(model: Any, path: str) -> Reading:
    """How a model reads text; one that was trained on dicts or texts reads files of CRFsuite."""
    from crfx.io.crfsuite import Crfsuite
    from crfx.io.reading import Reading

    if model.reading_ is not None:
        found: Reading = model.reading_
        return found
    if model.columns_.vocabulary is None:
        raise ValueError(f"the model was trained on arrays: {path} must be a file .npz")
    return Reading(Crfsuite())


def sentences_of(reading: Reading, path: str, *, labelled: bool) -> Iterator[Sentence]:
    """The sentences of a file, one at a time."""
    from crfx.io.lines import open_lines

    with open_lines(path) as lines:
        yield from reading.format.read(lines, labelled=labelled)
