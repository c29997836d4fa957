"""Bins in files: the room they need is known before; folders of killed processes go."""

import os
import shutil
import subprocess
import sys
import tempfile
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

from crfx.features.matrix import Matrix
from crfx.potentials import external_matrix
from crfx.potentials.external_matrix import new_bins_folder
from crfx.potentials.xgboost_learner import XGBoostLearner


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """Return the folder of temporary files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def dense(n_features, share_missing=0.0):
    random = np.random.default_rng(0)
    X = random.normal(size=(4000, n_features)).astype(np.float32)
    X[random.random(X.shape) < share_missing] = np.nan
    return X


def thin(n_features, share):
    random = np.random.default_rng(0)
    return sparse.random(4000, n_features, share, "csr", np.float32, random)


def bins_of(X, n_chunks, max_bin=256):
    """Return the bins of equal chunks."""
    n = X.shape[0] // n_chunks
    shards = Matrix([n] * n_chunks, X[:0], lambda k: X[k * n : (k + 1) * n])
    return XGBoostLearner(max_bin=max_bin).training_matrix(shards)


@pytest.mark.parametrize(
    ("X", "n_chunks", "max_bin"),
    [
        (dense(1), 2, 16),
        (dense(20, 0.2), 2, 1000),
        (dense(20), 80, 256),
        (thin(20, 0.005), 2, 256),
        (thin(20, 0.19), 2, 256),
        (thin(1000, 0.01), 40, 256),
        (thin(10_000, 0.001), 2, 256),
    ],
)
def test_bins_require_spare_disk_space(X, n_chunks, max_bin, cache, monkeypatch):
    """More is asked for, so that XGBoost never meets a full disk; six times as much is enough."""
    matrix = bins_of(X, n_chunks, max_bin)
    a_chunk = sum(path.stat().st_size for path in cache.glob("*/*")) / n_chunks
    del matrix
    assert not list(cache.iterdir())
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=int(a_chunk)))
    with pytest.raises(OSError, match="too few for the bins"):
        bins_of(X, n_chunks, max_bin)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=int(6 * a_chunk)))
    assert bins_of(X, n_chunks, max_bin).num_row() == 4000


ANOTHER = """
import sys
from crfx.potentials.external_matrix import new_bins_folder
print(new_bins_folder(), flush=True)
sys.stdin.read()
"""


def names(cache):
    return sorted(path.name for path in cache.iterdir())


@pytest.fixture
def ended():
    """The number of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@pytest.mark.skipif(os.name != "posix", reason="asks whether a process lives")
def test_bins_folder_stays_until_process_ends(cache):
    process = subprocess.Popen(
        [sys.executable, "-c", ANOTHER],
        env=os.environ | {"TMPDIR": str(cache)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        theirs = os.path.basename(process.stdout.readline().strip())
        (cache / theirs / "bins").write_text("some")
        first = os.path.basename(new_bins_folder())
        assert names(cache) == sorted([theirs, first])
        process.kill()
    second = os.path.basename(new_bins_folder())
    assert names(cache) == sorted([first, second])


@pytest.mark.skipif(os.name != "posix", reason="asks whether a process lives")
def test_new_bins_folder_keeps_files_of_others(cache, ended, monkeypatch):
    """Folders of other machines and programs stay, and so do plain files."""
    monkeypatch.setattr(external_matrix.socket, "gethostname", lambda: "rack-7-node-3")
    here = external_matrix._place()
    others = [f"crfx-bins-{ended}-{here}x-abc", f"crfx-bins-{ended}-abc", f"x{ended}-{here}-abc"]
    for name in [*others, f"crfx-bins-{ended}-{here}-ab_c"]:  # the last one goes
        (cache / name).mkdir()
    others.append(f"crfx-bins-{ended}-{here}-file")
    (cache / others[-1]).touch()
    folder = new_bins_folder()
    assert "rack-7-node-3" in folder
    assert names(cache) == sorted([*others, os.path.basename(folder)])
