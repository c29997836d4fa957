"""The page of a model and data that are there, in Python; ``crfx report`` reads them from files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import date
from functools import partial
from importlib.metadata import version
from typing import Any

from crfx.io.whole_file import whole_text
from crfx.report.page.judging import Instance, Judgement
from crfx.report.page.labelling import labelling_page
from crfx.report.page.templating import check_library
from crfx.report.written_labels import as_instances, judged_instances


def write_page(
    model: Any,
    X: Any,
    y: Any,
    path: str | os.PathLike[str],
    *,
    lengths: Any = None,
    parents: Any = None,
    edge_types: Any = None,
    tokens: Sequence[Sequence[Any]] | None = None,
    n_shown: int = 5,
    title: str | None = None,
) -> None:
    """Write the report page of a fitted model and labelled data, whole or not at all.

    What ``crfx report`` does for files; of a model that ranks, only that.  Needs Jinja2:
    ``pip install 'crfx[report]'``.

    Parameters
    ----------
    model : estimator
        A fitted one that labels.
    X, y, lengths, parents, edge_types
        As in its ``fit``; unknown labels do not count.
    path : str or path
        Of the file to write, HTML.
    tokens : list of lists, optional
        What a reader knows the positions by, words say; without them, numbers.
    n_shown : int
        How many sequences with most mistakes are shown, and how many uncertain ones.
    title : str, optional
        Of the page; None: the name of the class.
    """
    check_library()
    if not hasattr(model, "predict_marginals"):
        raise ValueError(
            f"{type(model).__name__} does not label: write_page is for models that do; "
            "`crfx report` has a page for those that rank"
        )
    given, labels = as_instances(model, X, y, lengths, parents, edge_types)
    words = [None] * len(labels) if tokens is None else _words(tokens, labels)
    judgement = Judgement(model, n_shown)
    judged = judged_instances(model, given, labels, judgement.written)
    for at, own in enumerate(judged):
        judgement.add(own, partial(_instance, given, at, words[at]))
    if not judgement.report.n_tokens:
        raise ValueError("y has no label that is known: there is nothing to report")
    name = type(model).__name__
    text = labelling_page(model, judgement, page_names(title or name, "model", "data"))
    with whole_text(path) as file:
        file.write(text)


def page_names(title: str, model_file: str, data_file: str) -> dict[str, str]:
    """What a page is about, by whom it was written and when."""
    return {
        "title": title,
        "model_file": model_file,
        "data_file": data_file,
        "version": version("crfx"),
        "date": date.today().isoformat(),
    }


def _words(tokens: Sequence[Sequence[Any]], labels: Sequence[Sequence[Any]]) -> list[Any]:
    if len(tokens) != len(labels):
        raise ValueError(f"tokens has {len(tokens)} sequences and y {len(labels)}")
    for at, (own, there) in enumerate(zip(tokens, labels, strict=True)):
        if len(own) != len(there):
            raise ValueError(
                f"tokens[{at}] has {len(own)} entries and sequence {at} {len(there)} positions"
            )
    return [list(map(str, own)) for own in tokens]


def _instance(given: dict[str, Any], at: int, words: list[str] | None) -> Instance:
    own = {name: part[at] for name, part in given.items() if part is not None}
    return Instance({"X_i": own.pop("X"), **own}, words, "")
