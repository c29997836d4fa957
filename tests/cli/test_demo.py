"""The command line as a user meets it: in a process of its own."""

import re
import subprocess
import sys

from crfx import load

# The installed script's entry point, without depending on where the script was installed.
CRFX = [sys.executable, "-c", "import sys; from crfx.cli import main; sys.exit(main())"]


def crfx(*arguments):
    return subprocess.run([*CRFX, *arguments], capture_output=True, text=True, timeout=120)


def test_demo_shows_that_structure_helps(tmp_path):
    result = crfx("demo", "--output", str(tmp_path / "demo"))
    assert (result.returncode, result.stderr) == (0, "")
    alone, first_order, second_order = map(float, re.findall(r"([\d.]+)%", result.stdout))
    assert 88 < alone < 96
    assert first_order > alone + 3
    assert second_order > first_order
    assert "wrong digits in brackets" in result.stdout
    names = sorted(path.name for path in (tmp_path / "demo").iterdir())
    assert names == ["digits.crfx", "learning-curve.png"]
    assert load(tmp_path / "demo" / "digits.crfx").order == 2
    assert (tmp_path / "demo" / "learning-curve.png").read_bytes().startswith(b"\x89PNG")


def test_help_and_version_answer():
    assert "demo" in crfx("--help").stdout
    assert "--seed" in crfx("demo", "--help").stdout
    assert re.fullmatch(r"crfx \d+\.\d+\.\d+\S*\n", crfx("--version").stdout)


def test_help_does_not_import_what_is_heavy():
    program = (
        "import sys, crfx.cli\n"
        "try: crfx.cli.main(['--help'])\n"
        "except SystemExit: pass\n"
        "print({'numpy', 'scipy', 'sklearn', 'rich'} & set(sys.modules) or 'light')"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert result.stdout.splitlines()[-1] == "light", result.stdout + result.stderr
