"""The committed stub says what the compiled module offers; `make stubs` writes it anew."""

import subprocess
import sys
from pathlib import Path

COMMITTED = Path(__file__).parents[1] / "src/crfx/_core/_native.pyi"


def test_stub_is_the_one_the_compiled_module_gives(tmp_path):
    stub = tmp_path / "_native.pyi"
    subprocess.run(
        [sys.executable, "-m", "nanobind.stubgen", "-q", "-m", "crfx._core._native", "-o", stub],
        check=True,
    )
    assert "def " in stub.read_text()  # an empty module would agree with an empty stub
    assert stub.read_text() == COMMITTED.read_text(), "run `make stubs`"
