"""A smoke test of an installed wheel, which the wheels workflow runs without pytest.

python tests/wheel/smoke.py
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import crfx
from crfx import _core
from crfx.inference import reference, sum_product
from crfx.testing import make_task

CLOSE = 1e-5
"""Between float32 sums of the core and float64 ones of the reference."""


def main() -> None:
    """Say what was found, and stop at the first thing that is wrong."""
    threads = _core.available_threads()
    print(f"crfx {crfx.__version__}, {_core.instruction_set()}, {threads} threads, {crfx.__file__}")
    if (os.cpu_count() or 1) > 1 and "OMP_NUM_THREADS" not in os.environ:
        assert threads > 1, "the core was built without OpenMP"
    check_inference()
    with tempfile.TemporaryDirectory() as folder:
        for estimator in (
            crfx.LinearCRF(),
            crfx.GBCRF(5),
            crfx.TreeCRF(5),
            crfx.HiddenUnitCRF(4, sweeps=3, random_state=0),
        ):
            check_estimator(estimator, Path(folder) / "model.crfx")
    subprocess.run([sys.executable, "-m", "crfx", "--version"], check=True)


def check_inference() -> None:
    """The core agrees with its slow twin."""
    random = np.random.default_rng(0)
    node = random.normal(size=(50, 7)).astype(np.float32)
    edge = random.normal(size=(7, 7)).astype(np.float32)
    offsets = [0, 1, 20, 50]
    ours = sum_product(node, edge, offsets)
    theirs = reference.sum_product(node, edge, offsets)
    np.testing.assert_allclose(ours.log_z, theirs.log_z, rtol=CLOSE)
    np.testing.assert_allclose(ours.node, theirs.node, atol=CLOSE)


def check_estimator(estimator: crfx.LinearCRF, path: Path) -> None:
    """It trains, saves, loads, and says the same again."""
    X, y = make_task(0)
    labels = estimator.fit(X, y).predict(X)
    estimator.save(path)
    for before, after in zip(labels, crfx.load(path).predict(X), strict=True):
        assert (before == after).all()
    print(f"{type(estimator).__name__}: {estimator.score(X, y):.3f} of training labels right")


if __name__ == "__main__":
    main()
