"""Importing crfx keeps waiting threads from spinning long, unless the user says how they wait."""

import os
import subprocess
import sys

import pytest

SHOW = "import os, crfx; print(os.environ.get('GOMP_SPINCOUNT'))"


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ({}, "3000"),
        ({"GOMP_SPINCOUNT": "7"}, "7"),
        ({"OMP_WAIT_POLICY": "active"}, "None"),
    ],
)
def test_what_the_user_says_holds(said, found):
    names = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")
    clean = {name: value for name, value in os.environ.items() if name not in names}
    shown = subprocess.run(
        [sys.executable, "-c", SHOW], env=clean | said, capture_output=True, text=True, check=True
    )
    assert shown.stdout.strip() == found
