"""The public headers of the C++ core are those listed here, and they include no private one."""

import re
from pathlib import Path

CORE = Path(__file__).parents[1] / "cpp"

PUBLIC_HEADERS = {
    "bins",
    "boosted_trees",
    "context_trees",
    "errors",
    "hidden",
    "inference",
    "isa",
    "linear",
    "names",
    "parallel",
    "permutations",
    "sweeps",
    "views",
    "workspace",
}


def included(path):
    """Paths in quotes that a C++ file includes."""
    return re.findall(r'^\s*#\s*include\s+"([^"]+)"', path.read_text(encoding="utf-8"), re.M)


def private_includes(folder, public):
    """Includes, as "file: include", of files in a folder that are not public headers.

    A file may include those that stand beside it.
    """
    allowed = {f"crfx/{name}.hpp" for name in public}
    files = [path for path in sorted(folder.rglob("*")) if path.suffix in (".hpp", ".cpp")]
    return [
        f"{path.name}: {name}"
        for path in files
        for name in included(path)
        if name not in allowed and not ("/" not in name and (path.parent / name).is_file())
    ]


def test_public_headers_are_those_listed_and_include_no_private_one():
    headers = {
        path.relative_to(CORE / "include").as_posix() for path in CORE.rglob("include/**/*.*")
    }
    assert headers == {f"crfx/{name}.hpp" for name in PUBLIC_HEADERS}
    for folder in ("include", "bindings"):
        assert private_includes(CORE / folder, PUBLIC_HEADERS) == []


def test_private_includes_finds_a_planted_include(tmp_path):
    (tmp_path / "arrays.hpp").write_text("")
    for line, expected in (
        ('#include "crfx/bins.hpp"', []),
        ('#include "arrays.hpp"', []),
        ("#include <vector>", []),
        ('#include "trees/feature_block.hpp"', ["x.hpp: trees/feature_block.hpp"]),
        ('  # include "crfx/cuts.hpp"', ["x.hpp: crfx/cuts.hpp"]),
        ('#include "missing.hpp"', ["x.hpp: missing.hpp"]),
        ('#include "../src/simd/pack.hpp"', ["x.hpp: ../src/simd/pack.hpp"]),
    ):
        (tmp_path / "x.hpp").write_text(f"#pragma once\n{line}\n")
        assert private_includes(tmp_path, {"bins"}) == expected
