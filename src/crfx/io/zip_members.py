"""Members of a zip archive, read with suspicion: none overlap, none expand beyond belief."""

from __future__ import annotations

import stat
import struct
import zipfile
import zlib
from itertools import pairwise

DAMAGED = (
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    zlib.error,
    struct.error,
    OSError,  # an offset that cannot be
    EOFError,
    NotImplementedError,  # a zip version that zipfile does not know
    RuntimeError,  # an encrypted member; values nested too deeply
    KeyError,
    TypeError,
    ValueError,
    AttributeError,
    OverflowError,
)
"""What damaged archives make zipfile, zlib and the reading of values raise."""
_LOCAL_HEADER = 30
_IMPOSSIBLE = 1100
"""Deflate reaches a ratio of 1032."""


def check_members(archive: zipfile.ZipFile) -> None:
    """Refuse what no honest program writes, before anything is read; O(members)."""
    members = archive.infolist()
    if len({member.filename for member in members}) != len(members):
        raise ValueError("a member is there twice")
    taken = sorted(map(_extent, members))
    if any(end > begin for (_, end), (begin, _) in pairwise(taken)):
        raise ValueError("members overlap")
    for member in members:
        _check(member)


def check_expansion(what: str, packed: int, expanded: int, times: int, free: int) -> None:
    """Raise where ``packed`` bytes claim to be more than ``times`` as many, and ``free``."""
    if expanded > free + times * packed:
        raise ValueError(
            f"{what} claim to expand from {packed} to {expanded} bytes: more than {times} times, "
            f"and {free}, are not believed"
        )


def member_bytes(archive: zipfile.ZipFile, name: str) -> bytes:
    """A member whole; one that holds more than it says is not expanded beyond that."""
    size = archive.getinfo(name).file_size
    with archive.open(name) as member:
        raw = member.read(size)
    if len(raw) != size:
        raise ValueError(f"member {name} is cut off")
    return raw


def _extent(member: zipfile.ZipInfo) -> tuple[int, int]:
    """Where a member begins and where it ends at the earliest."""
    size = _LOCAL_HEADER + len(member.orig_filename) + member.compress_size
    return member.header_offset, member.header_offset + size


def _check(member: zipfile.ZipInfo) -> None:
    name = member.filename
    if name != member.orig_filename:
        raise ValueError(f"it has a member {name!r}, which is called otherwise in the archive")
    if stat.S_IFMT(member.external_attr >> 16) not in (0, stat.S_IFREG):
        raise ValueError(f"member {name} is no plain file")
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"member {name} is compressed in an unknown way")
    if member.file_size > _IMPOSSIBLE * max(member.compress_size, 1):
        raise ValueError(f"member {name} claims an impossible size")
