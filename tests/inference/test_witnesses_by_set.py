"""The core agrees with its witnesses on every instruction set that the machine has.

The other tests use the best set. Here a process of its own runs the witnesses with a lesser one.
"""

import os
import platform
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


def has(isa):
    """Return whether Linux says that this processor has what the instruction set is named after."""
    if isa == "baseline":
        return True
    flags = Path("/proc/cpuinfo")
    if platform.machine() not in ("x86_64", "AMD64") or not flags.exists():
        pytest.skip("what the processor has is read from /proc/cpuinfo on x86-64")
    words = flags.read_text(encoding="utf-8").split()
    return {"avx2": "avx2", "avx512": "avx512vl"}[isa] in words


@pytest.mark.parametrize("isa", ["baseline", "avx2", "avx512"])
def test_witnesses_agree_on_every_instruction_set(isa):
    if isa == _core.instruction_set():
        pytest.skip(f"the other tests run with {isa}")
    used = run_python(isa, "-c", USED).stdout.strip()
    if not has(isa):  # each falls back to the next below it
        assert used == ("avx2" if isa == "avx512" and has("avx2") else "baseline")
        pytest.skip(f"this machine has no {isa}")
    assert used == isa
    witnesses = [str(TESTS / name) for name in WITNESSES]
    options = ["-q", "-p", "no:cacheprovider", "-k", f"not ({LONGEST})"]
    result = run_python(isa, "-m", "pytest", *options, *witnesses)
    assert result.returncode == 0, result.stdout
    assert "skipped" not in result.stdout


def test_an_unknown_instruction_set_raises():
    result = run_python("AVX512", "-c", USED)
    assert result.returncode != 0
    assert "choose baseline, avx2 or avx512" in result.stdout
