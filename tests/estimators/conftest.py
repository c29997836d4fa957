"""Fixtures of the tests of several estimators."""

import io
import json
import re
import zipfile
from dataclasses import replace

import numpy as np
import pytest

from crfx.inputs.passed import Passed, read_input
from crfx.testing import enumerate_instances


def _npy(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def _changed(path, manifest=None, arrays=None, without=()):
    """The file with another manifest or other arrays (None: without them), checksums right.

    ``without`` are names of members that are left out.
    """
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist() if name not in without}
    if manifest is not None:
        values = json.loads(members["model.json"])
        manifest(values)
        members["model.json"] = json.dumps(values).encode()
    for name, change in (arrays or {}).items():
        raw = members.pop(f"{name}.npy", None)
        array = change(None if raw is None else np.load(io.BytesIO(raw)))
        if array is not None:
            members[f"{name}.npy"] = _npy(array)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, raw in members.items():
            archive.writestr(name, raw)


@pytest.fixture
def changed():
    """A function that rewrites a model file."""
    return _changed


def _not_refused(attempt, cases, error=ValueError):
    """Return what is wrong: name -> what came of ``attempt(what)``.

    ``cases`` are name -> (what, message); the error must have the message, a regular expression.
    """
    wrong = {}
    for name, (what, message) in cases.items():
        try:
            wrong[name] = f"no error, but {attempt(what)!r}"
        except error as raised:
            if not re.search(message, str(raised)):
                wrong[name] = str(raised)
    return wrong


@pytest.fixture
def not_refused():
    """A function that returns those of many bad inputs that do not raise the error they should."""
    return _not_refused


def _queries(seed=0, n_queries=30, n_features=4):
    """Documents whose relevance (0, 1, 2) grows with the first two features, in noise."""
    random = np.random.default_rng(seed)
    group = random.integers(2, 14, n_queries)
    X = random.normal(size=(group.sum(), n_features)).astype(np.float32)
    worth = 2 * X[:, 0] - X[:, 1] + 0.5 * random.normal(size=len(X))
    return X, np.digitize(worth, [0.5, 2.0]).astype(float), group


@pytest.fixture
def make_queries():
    """A function that makes documents to rank: X, relevance, group."""
    return _queries


def _bio_task(seed=0, lengths=(1, 2, 3, 4, 5, 2, 3, 4, 5, 4), types=("X", "Y")):
    """X and y in IOB2: labels seen through noise, chains of one position and more."""
    random = np.random.default_rng(seed)
    labels = ["O", *(f"{tag}-{kind}" for kind in types for tag in "BI")]
    X, y = [], []
    for length in lengths:
        tags = []
        for _ in range(length):
            inside = [f"I{tags[-1][1:]}"] if tags and tags[-1] != "O" else []
            tags.append(str(random.choice(["O", *(f"B-{kind}" for kind in types), *inside * 2])))
        codes = np.array([labels.index(label) for label in tags])
        X.append((codes[:, None] + random.normal(size=(length, 2))).astype(np.float32))
        y.append(tags)
    return X, y


@pytest.fixture
def bio_task():
    """A function that makes chains with spans: X and y in IOB2."""
    return _bio_task


def _listed(crf, X, forbids, *, parents=None, edge_types=None, allowed=None):
    """All labellings of every instance with the scores of the model itself, those that ``forbids``
    (labels, parents) is true of, or that ``allowed`` has not, at -inf: nothing of the mask is used.
    """
    data = read_input(Passed(X, None, None, parents, edge_types), crf.columns_)
    free = replace(crf.model_, mask=None)
    problem = free.problem(data.batch)
    scores = problem.scores
    labellings = enumerate_instances(
        scores.node,
        scores.edge,
        data.batch.offsets,
        parents=data.batch.parents,
        edge_types=data.batch.edge_types if problem.sharing == "typed" else None,
        start=scores.start,
        end=scores.end,
        order=crf.order,
    )
    result = []
    for instance, enumerated in enumerate(labellings):
        up = None if parents is None else list(parents[instance])
        bad = []
        for codes in enumerated.labels:
            labels = crf.classes_[codes].tolist()
            sets = [None] * len(labels) if allowed is None else allowed[instance]
            outside = any(
                entry is not None and label not in ([entry] if isinstance(entry, str) else entry)
                for entry, label in zip(sets, labels, strict=True)
            )
            bad.append(outside or forbids(labels, up))
        result.append(replace(enumerated, scores=np.where(bad, -np.inf, enumerated.scores)))
    return result


@pytest.fixture
def listed():
    """A function that lists the labellings of X with their scores, as constraints leave them."""
    return _listed
