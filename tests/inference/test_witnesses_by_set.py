"""The core agrees with its witnesses on every instruction set that the machine has.

The other tests use the best set. Here a process of its own runs the witnesses with a lesser one.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from crfx import _core

TESTS = Path(__file__).parents[1]
WITNESSES = (
    "inference/test_witnesses.py",
    "inference/test_edge_curvature.py",
    "objectives/test_ranking.py::test_three_witnesses_agree",
    "objectives/test_ranking.py::test_samples_come_near_the_sums",
    "potentials/test_hidden_unit.py",
    "potentials/test_linear.py",
)
LONGEST = "reference_across_gaps or path or star or twin"
"""Names of witnesses that are left out: others check the same code with fewer problems, and the
reference does not depend on the set.
"""
USED = "import crfx._core; print(crfx._core.instruction_set())"


def run_python(isa, *arguments):
    """Run Python with an instruction set. Options of the pytest around it are not passed on."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    environment |= {"CRFX_ISA": isa, "HYPOTHESIS_PROFILE": "brief"}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=TESTS.parent,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )


@pytest.mark.parametrize("isa", ["baseline", "avx2", "avx512"])
def test_witnesses_agree_on_every_instruction_set(isa):
    if isa == _core.instruction_set():
        pytest.skip(f"the other tests run with {isa}")
    if run_python(isa, "-c", USED).stdout.strip() != isa:
        pytest.skip(f"this machine or this build has no {isa}")
    witnesses = [str(TESTS / name) for name in WITNESSES]
    options = ["-q", "-p", "no:cacheprovider", "-k", f"not ({LONGEST})"]
    result = run_python(isa, "-m", "pytest", *options, *witnesses)
    assert result.returncode == 0, result.stdout
    assert "skipped" not in result.stdout
