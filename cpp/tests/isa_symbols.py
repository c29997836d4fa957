"""Fails if an object compiled for one instruction set offers code that others could pick up.

The linker keeps one copy of every weak symbol. Were it one that was compiled with AVX-512, the
baseline would crash where that is missing. So all weak code must lie in the set's own namespace.
Usage: isa_symbols.py NM SET OBJECT...
"""

import subprocess
import sys


def shared_symbols(nm: str, isa: str, objects: list[str]) -> list[str]:
    """Weak symbols (functions W, V; GNU unique objects u) outside crfx::<isa>."""
    listed = subprocess.run([nm, "-C", *objects], capture_output=True, text=True, check=True)
    found = []
    for line in listed.stdout.splitlines():
        kind, _, name = line[16:].strip().partition(" ")
        defined = line[:16].strip() != ""
        if defined and kind in "WVu" and f"crfx::{isa}::" not in name:
            found.append(name)
    # The one that exceptions need is a pointer, not code.
    return [name for name in found if not name.startswith("DW.ref.")]


if __name__ == "__main__":
    shared = shared_symbols(sys.argv[1], sys.argv[2], sys.argv[3:])
    if shared:
        sys.exit("shared between instruction sets: " + ", ".join(shared))
