"""Files of data sets on this machine: where they are, and how to read them, compressed or not."""

from __future__ import annotations

import gzip
import hashlib
import os
from pathlib import Path
from typing import TextIO

from crfx.io.lines import DAMAGED_GZIP


def find(folder: str, name: str, sha256: str | None = None, *, how_to_get: str) -> Path:
    """Return the path of `folder/name` in `$CRFX_DATA`, else in the user's cache.

    `name.gz` is accepted for `name`. The sha256 is that of the decompressed contents. A file with
    other contents raises ValueError and is not skipped, since it was put there on purpose.
    """
    for base in _bases():
        for path in (base / folder / name, base / folder / f"{name}.gz"):
            if path.is_file():
                if sha256 is not None:
                    _check(path, sha256)
                return path
    places = " or ".join(str(base / folder / name) for base in _bases())
    unset = "" if os.environ.get("CRFX_DATA") else " ($CRFX_DATA is not set)"
    raise FileNotFoundError(
        f"{folder}/{name} is not there. {how_to_get} Put it into $CRFX_DATA/{folder}/; "
        f"looked for {places}, and the same with .gz{unset}"
    )


def find_all(folder: str, sha256s: dict[str, str], *, how_to_get: str) -> list[Path]:
    """Return the paths of the files of a folder, given the sha256 of each by its name."""
    return [find(folder, name, sha256, how_to_get=how_to_get) for name, sha256 in sha256s.items()]


def open_text(path: Path) -> TextIO:
    """Open UTF-8 text for reading; `.gz` is decompressed."""
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8")
    return path.open(encoding="utf-8")


def read_blocks(path: Path) -> list[list[str]]:
    """Return the lines of each block of text; blocks are separated by empty lines."""
    with open_text(path) as file:
        blocks = [block.strip("\n") for block in file.read().split("\n\n")]
    return [block.split("\n") for block in blocks if block]


def _bases() -> list[Path]:
    """Return the folders where data sets may be."""
    data, cache = os.environ.get("CRFX_DATA"), os.environ.get("XDG_CACHE_HOME")
    home = (Path(cache) if cache else Path.home() / ".cache") / "crfx"
    return [Path(data).expanduser(), home] if data else [home]


def _check(path: Path, sha256: str) -> None:
    """Raise ValueError if a file has other contents."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            actual = hashlib.file_digest(file, "sha256").hexdigest()
    except DAMAGED_GZIP as error:
        raise ValueError(f"{path}: cannot be decompressed ({error}); get it again") from error
    if actual != sha256:
        raise ValueError(
            f"{path}: sha256 of its contents is {actual}, expected {sha256}; this is another or a "
            "damaged version, get it again"
        )
