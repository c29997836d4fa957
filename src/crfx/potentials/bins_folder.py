"""A folder for bins among temporary files that tells whose it is: those of the dead are removed."""

from __future__ import annotations

import os
import re
import shutil
import socket
import tempfile
from contextlib import suppress
from pathlib import Path

_NAME = re.compile(r"crfx-bins-(?P<process>\d+)-(?P<place>.+)-[^-]+")


def new_bins_folder() -> str:
    """A new folder where temporary files go (the environment variable TMPDIR says where).

    Who makes it removes it.  Killed processes could not, so before that the folders go that
    processes of this machine left behind which have ended.
    """
    parent, place = Path(tempfile.gettempdir()), _place()
    if os.name == "posix":  # to ask whether a process lives would end it on Windows
        _remove_left_behind(parent, place)
    return tempfile.mkdtemp(prefix=f"crfx-bins-{os.getpid()}-{place}-", dir=parent)


def _place() -> str:
    """Where the numbers of processes mean the same: this machine, and on Linux this container."""
    space = 0
    with suppress(OSError):
        space = os.stat("/proc/self/ns/pid").st_ino
    return f"{space}-{socket.gethostname()}"


def _remove_left_behind(parent: Path, place: str) -> None:
    with suppress(OSError):  # what cannot be listed stays, as does what belongs to others
        for folder in list(parent.iterdir()):
            found = _NAME.fullmatch(folder.name)
            if found and found["place"] == place and not _lives(int(found["process"])):
                shutil.rmtree(folder, ignore_errors=True)


def _lives(process: int) -> bool:
    """Whether there is a process of this number, whoever's it is."""
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # somebody else's
        pass
    return True
