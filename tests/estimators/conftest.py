"""What tests of several estimators share."""

import io
import json
import zipfile

import numpy as np
import pytest


def _npy(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def _changed(path, manifest=None, arrays=None):
    """The file with another manifest or other arrays (None: without them), checksums right."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
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
