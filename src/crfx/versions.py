"""Versions of crfx and of what it runs on, as a report of a bug needs them."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version

from crfx import _core

PACKAGES = (
    "numpy",
    "scipy",
    "scikit-learn",
    "threadpoolctl",
    "xgboost",
    "rich",
    "pandas",
    "pyarrow",
    "dask",
    "distributed",
    "matplotlib",
    "jinja2",
    "torch",
)
"""Packages whose versions are shown if they are installed, by their names on PyPI."""

INSTRUCTION_SETS = ("avx512", "avx2", "baseline")
"""The instruction sets of the compiled core, the widest first; each processor has all after its
widest one.
"""


def instruction_set() -> str:
    """Return the instruction set that the compiled core uses in this process.

    It is the widest one that the processor has, or the one that the environment variable CRFX_ISA
    names.  The core reads the variable once, when it first computes.

    Returns
    -------
    str
        "avx512", "avx2" or "baseline".

    Examples
    --------
    >>> import crfx
    >>> crfx.instruction_set() in ("avx512", "avx2", "baseline")
    True
    """
    return _core.instruction_set()


def available_instruction_sets() -> tuple[str, ...]:
    """Return the instruction sets that CRFX_ISA may name on this processor, the widest first."""
    widest = instruction_set()
    if "CRFX_ISA" in os.environ:  # another process chooses freely
        environment = {name: value for name, value in os.environ.items() if name != "CRFX_ISA"}
        code = "from crfx._core import instruction_set; print(instruction_set())"
        child = subprocess.run(
            [sys.executable, "-c", code],
            env=environment | {"PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        )
        widest = child.stdout.strip()
    return INSTRUCTION_SETS[INSTRUCTION_SETS.index(widest) :]


def show_versions() -> None:
    """Print the versions of crfx and of what it runs on, for a report of a bug.

    These are the version of crfx, the instruction set in use and those available, the number of
    threads, Python, the platform, and the packages that crfx uses, as far as they are installed.

    Examples
    --------
    >>> import crfx
    >>> crfx.show_versions()  # doctest: +ELLIPSIS
    crfx: ...
    instruction set: ...
    threads: ...
    """
    entries = {
        "crfx": version("crfx"),
        "instruction set": f"{instruction_set()} of {', '.join(available_instruction_sets())}",
        "threads": str(_core.available_threads()),
        "python": f"{platform.python_version()} ({platform.python_implementation()})",
        "platform": platform.platform(),
    }
    for name in PACKAGES:
        entries[name] = _installed(name)
    for name, value in entries.items():
        print(f"{name}: {value}")


def _installed(package: str) -> str:
    """Return the version of a package, found without an import of it."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
