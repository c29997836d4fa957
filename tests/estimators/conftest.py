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
