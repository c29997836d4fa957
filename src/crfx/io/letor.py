"""Files of LETOR and SVMlight for ranking: one document per line, grouped by query.

::

    2 qid:10032 1:0.056537 2:0.000000 ... 46:0.076923 #docid = GX029-35-5894638 inc = 0.0119

Relevance (0 or more), query, features with rising numbers from 1, and a comment.  A feature that is
not in a line is 0.  Scikit-learn's parser reads a block of lines at a time, some 10 MB a second,
`.gz` too; only if a block is invalid are its lines checked one by one.
"""

from __future__ import annotations

import io
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from crfx.io.lines import open_bytes
from crfx.io.whole_file import whole_text

_BLOCK_BYTES = 1 << 24
_ROWS_AT_ONCE = 4096
MOST_FEATURES = 1_000_000
"""Limit, since rows are dense."""
_LARGEST = float(np.finfo(np.float32).max)

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False, slots=True)
class Rankings:
    """Documents, query by query, as `RankingCRF.fit` takes them.

    ``X`` (documents, features), ``relevance`` (documents,), ``group`` (queries,) the number of
    documents of each query, ``query_ids`` (queries,) their numbers in the file, and ``comments``
    (documents,) if they were read.
    """

    X: npt.NDArray[np.float32]
    relevance: npt.NDArray[np.float64]
    group: Integers
    query_ids: Integers
    comments: list[str] | None = None


def read(
    path: str | os.PathLike[str], *, n_features: int | None = None, comments: bool = False
) -> Rankings:
    r"""Read a file of queries and documents.

    Parameters
    ----------
    path : str or path
        A text file, or one compressed with gzip.
    n_features : int, optional
        The width of ``X``; None: the greatest feature number in the file.
    comments : bool, default False
        Keep the comments of the documents.

    Returns
    -------
    Rankings

    Raises
    ------
    ValueError
        If a line is invalid; the error names it.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "train.txt"
    ...     _ = path.write_text("2 qid:7 1:0.5 2:1\n0 qid:7 1:0.1 2:0\n")
    ...     rankings = read(path)
    >>> rankings.X.shape, rankings.relevance.tolist(), rankings.group.tolist()
    ((2, 2), [2.0, 0.0], [2])
    """
    blocks = []
    with open_bytes(path) as file:
        for first_line, text in _blocks(file):
            numbers = _parsed(text, f"{os.fspath(path)}, line", first_line)
            blocks.append((*numbers, _comments(text) if comments else []))
    if not any(len(block[1]) for block in blocks):
        raise ValueError(f"{os.fspath(path)} has no documents: one a line, 'RELEVANCE qid:ID 1:…'")
    features, relevance, query_ids, texts = zip(*blocks, strict=True)
    ids = np.concatenate(query_ids).astype(np.int64)
    starts = np.flatnonzero(np.r_[True, ids[1:] != ids[:-1]])
    _check_adjacent(path, ids[starts], starts)
    return Rankings(
        X=_dense(path, features, n_features),
        relevance=np.concatenate(relevance).astype(np.float64),
        group=np.diff(np.r_[starts, len(ids)]),
        query_ids=ids[starts],
        comments=list(chain(*texts)) if comments else None,
    )


def join(parts: Sequence[Rankings]) -> Rankings:
    """Join parts as if their files had been concatenated.

    Parameters
    ----------
    parts : list of Rankings
        Narrow ones are padded with zeros.

    Returns
    -------
    Rankings

    Examples
    --------
    >>> X, relevance, group = np.array([[0.5]], np.float32), np.array([2.0]), np.array([1])
    >>> parts = [Rankings(X, relevance, group, np.array([number])) for number in (7, 8)]
    >>> join(parts).query_ids.tolist()
    [7, 8]
    """
    if not parts:
        raise ValueError("there are no parts to join: one or more")
    ids = np.concatenate([part.query_ids for part in parts])
    numbers, counts = np.unique(ids, return_counts=True)
    if (counts > 1).any():
        raise ValueError(f"query {numbers[counts > 1][0]} is in two of the parts")
    width = max(part.X.shape[1] for part in parts)
    padded = [np.pad(part.X, ((0, 0), (0, width - part.X.shape[1]))) for part in parts]
    comments = [part.comments for part in parts if part.comments is not None]
    return Rankings(
        X=np.concatenate(padded),
        relevance=np.concatenate([part.relevance for part in parts]),
        group=np.concatenate([part.group for part in parts]),
        query_ids=ids,
        comments=list(chain(*comments)) if len(comments) == len(parts) else None,
    )


def write(path: str | os.PathLike[str], rankings: Rankings) -> None:
    """Write a file, whole or not at all.

    Parameters
    ----------
    path : str or path
        The file; it is compressed if the name ends in ``.gz``.
    rankings : Rankings
        Reading the file returns the same numbers.

    Examples
    --------
    >>> import tempfile
    >>> X, relevance, group = np.array([[0.5]], np.float32), np.array([2.0]), np.array([1])
    >>> rankings = Rankings(X, relevance, group, query_ids=np.array([7]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "train.txt.gz")
    ...     write(path, rankings)
    ...     read(path).X.tolist()
    [[0.5]]
    """
    _check_writable(rankings)
    with whole_text(path) as file:
        file.writelines(_lines(rankings))


def _blocks(file: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield some megabytes of whole lines and the number of the first of them."""
    line, rest = 1, b""
    while piece := file.read(_BLOCK_BYTES):
        head, newline, tail = piece.rpartition(b"\n")
        if not newline:
            rest += tail
            continue
        text = rest + head + newline
        yield line, text
        line, rest = line + text.count(b"\n"), tail
    if rest:
        yield line, rest


def _parsed(text: bytes, place: str, first_line: int) -> tuple[Any, Any, Any]:
    """Return features in CSR, relevance and query of every document in some lines."""
    from sklearn.datasets import load_svmlight_file

    try:
        X, relevance, query_ids = load_svmlight_file(
            io.BytesIO(text), dtype=np.float32, zero_based=False, query_id=True
        )
        problem = "documents without a query" if len(query_ids) != len(relevance) else ""
    except (ValueError, OverflowError) as error:
        problem = str(error)
    if not problem and X.shape[1] > MOST_FEATURES:
        problem = f"there are features beyond {MOST_FEATURES}"
    is_legal = not problem and ((relevance >= 0) & (relevance < np.inf)).all()
    if not is_legal or not np.isfinite(X.data).all():
        for number, line in enumerate(text.split(b"\n"), first_line):
            if mistake := _mistake(line):
                raise ValueError(f"{place} {number}: {mistake}")
        raise ValueError(f"{place}s from {first_line} on: {problem or 'not finite'}")
    return X, relevance, query_ids


def _comments(text: bytes) -> list[str]:
    """Return the comment of every document in some lines."""
    parts = (line.partition(b"#") for line in text.split(b"\n"))
    return [
        comment.strip().decode("utf-8", "replace") for before, _, comment in parts if before.strip()
    ]


def _mistake(line: bytes) -> str:
    """Return in words what is wrong with a line; empty if it is valid."""
    label, *rest = line.partition(b"#")[0].decode("utf-8", "replace").split() or [""]
    if not label:
        return ""
    if not 0 <= _number(label) < math.inf:
        return f"relevance is {label!r}: it must be a number of 0 or more"
    if not rest or not rest[0].startswith("qid:"):
        return "there is no query: write qid:NUMBER after the relevance"
    if not _is_whole(rest[0][4:]):
        return f"query is {rest[0][4:]!r}: it must be a whole number"
    before = 0
    for pair in rest[1:]:
        number, colon, value = pair.partition(":")
        if not colon or not _is_whole(number) or int(number) < 1:
            return f"{pair!r} is no feature: write NUMBER:VALUE, numbers from 1 on"
        if int(number) > MOST_FEATURES:
            return f"feature {number} is one too many: numbers go to {MOST_FEATURES}"
        if int(number) <= before:
            return f"feature {number} comes after feature {before}: numbers must rise"
        if not abs(_number(value)) <= _LARGEST:
            return f"feature {number} is {value!r}: it must be a number (32 bits)"
        before = int(number)
    return ""


def _number(text: str) -> float:
    """Return text as a number; NaN if it is not one."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def _is_whole(text: str) -> bool:
    return text.removeprefix("-").isdecimal() and abs(int(text)) < 1 << 62


def _check_adjacent(path: str | os.PathLike[str], runs: Integers, starts: Integers) -> None:
    """Raise ValueError if a query comes back after others; only then is the file read again."""
    _, first = np.unique(runs, return_index=True)
    again = np.setdiff1d(np.arange(len(runs)), first)
    if not len(again):
        return
    document = int(starts[again[0]])
    with open_bytes(path) as file:
        lines = (number for number, line in enumerate(file, 1) if line.partition(b"#")[0].strip())
        line = next((number for count, number in enumerate(lines) if count == document), None)
    # A pipe cannot be read again.
    place = f"document {document + 1}" if line is None else f"line {line}"
    raise ValueError(
        f"{os.fspath(path)}, {place}: query {runs[again[0]]} comes back after others: lines "
        "of a query must be adjacent, sort the file by query"
    )


def _dense(
    path: str | os.PathLike[str], blocks: Sequence[Any], n_features: int | None
) -> npt.NDArray[np.float32]:
    # The width of a parsed block is the greatest feature number in it.
    greatest = max(block.shape[1] for block in blocks)
    width = greatest if n_features is None else n_features
    if greatest > width:
        raise ValueError(f"{os.fspath(path)} has a feature {greatest}: there may be {width}")
    X = np.zeros((sum(block.shape[0] for block in blocks), width), np.float32)
    row = 0
    for block in blocks:
        X[row : row + block.shape[0], : block.shape[1]] = block.toarray()
        row += block.shape[0]
    return X


def _check_writable(rankings: Rankings) -> None:
    n_documents = len(rankings.X)
    comments = rankings.comments
    if rankings.group.sum() != n_documents or len(rankings.group) != len(rankings.query_ids):
        raise ValueError(
            f"{len(rankings.group)} groups of {rankings.group.sum()} documents in all, "
            f"{len(rankings.query_ids)} query_ids and {n_documents} rows of X do not fit together"
        )
    if len(rankings.relevance) != n_documents or len(comments or rankings.X) != n_documents:
        raise ValueError(f"relevance and comments must have one entry for {n_documents} documents")
    if len(np.unique(rankings.query_ids)) != len(rankings.query_ids):
        raise ValueError("query_ids has a number twice: every query needs its own")
    if not (np.isfinite(rankings.X).all() and (rankings.relevance >= 0).all()):
        raise ValueError("X must be finite and relevance 0 or more")
    if any("\n" in text or "\r" in text for text in comments or ()):
        raise ValueError("a comment has more than one line")


def _lines(rankings: Rankings) -> Iterator[str]:
    ids = np.repeat(rankings.query_ids, rankings.group)
    for begin in range(0, len(ids), _ROWS_AT_ONCE):
        rows = slice(begin, begin + _ROWS_AT_ONCE)
        # NumPy writes the fewest digits that give the same number back.
        texts = rankings.X[rows].astype(np.str_).tolist()
        levels = (f"{level:.17g}" for level in rankings.relevance[rows].tolist())
        for row, (level, query, values) in enumerate(
            zip(levels, ids[rows].tolist(), texts, strict=True), begin
        ):
            pairs = " ".join(f"{number}:{value}" for number, value in enumerate(values, 1))
            comment = f" #{rankings.comments[row]}" if rankings.comments else ""
            yield f"{level} qid:{query} {pairs}{comment}\n"
