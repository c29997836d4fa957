"""Finds the files of a data set on this machine and reads them, compressed or not."""

from __future__ import annotations

import gzip
import hashlib
import os
import zlib
from pathlib import Path
from typing import TextIO


def find(folder: str, name: str, sha256: str | None = None, *, how_to_get: str) -> Path:
    """Return where `folder/name` lies: in `$CRFX_DATA`, else in the user's cache.

    `name.gz` will do for `name`. The sha256 is that of the contents, decompressed: how a copy was
    compressed does not matter, and an original that was never compressed is as good. A file
    with other contents is refused rather than passed over, since somebody meant it to be used.
    """
    for base in _bases():
        for path in (base / folder / name, base / folder / f"{name}.gz"):
            if path.is_file():
                _check(path, sha256)
                return path
    raise FileNotFoundError(_not_found(folder, name, how_to_get))


def find_all(folder: str, sha256s: dict[str, str], *, how_to_get: str) -> list[Path]:
    """Return where the files of a folder lie, given the sha256 of each by its name."""
    return [find(folder, name, sha256, how_to_get=how_to_get) for name, sha256 in sha256s.items()]


def open_text(path: Path) -> TextIO:
    """Open UTF-8 text for reading; `.gz` is decompressed on the way."""
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8")
    return path.open(encoding="utf-8")


def read_blocks(path: Path) -> list[list[str]]:
    """Return the lines of each block of text; empty lines part the blocks."""
    with open_text(path) as file:
        blocks = [block.strip("\n") for block in file.read().split("\n\n")]
    return [block.split("\n") for block in blocks if block]


def _bases() -> list[Path]:
    given = os.environ.get("CRFX_DATA")
    cache = os.environ.get("XDG_CACHE_HOME")
    return [
        *([Path(given).expanduser()] if given else []),
        (Path(cache) if cache else Path.home() / ".cache") / "crfx",
    ]


def _check(path: Path, sha256: str | None) -> None:
    if sha256 is None:
        return
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f"{path}: cannot be decompressed ({error}); get it again") from error
    if found != sha256:
        raise ValueError(
            f"{path}: sha256 of its contents is {found}, expected {sha256}; this is another or a "
            "damaged version, get it again"
        )


def _not_found(folder: str, name: str, how_to_get: str) -> str:
    places = " or ".join(str(base / folder / name) for base in _bases())
    unset = "" if os.environ.get("CRFX_DATA") else " ($CRFX_DATA is not set)"
    return (
        f"{folder}/{name} is not there. {how_to_get} Put it into $CRFX_DATA/{folder}/; "
        f"looked for {places}, and the same with .gz{unset}"
    )
