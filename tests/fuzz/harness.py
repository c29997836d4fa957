"""Shared code of the harnesses: seeds on disk, a target that may raise some errors, findings.

A harness is one file, fuzz_NAME.py, that calls `fuzz`.  An error that is not allowed is a finding:
it is written down, once for each place in the code, and the run goes on.  A crash of the process, a
hang or too much memory ends it; `run.py` writes that down and starts it anew.
"""

from __future__ import annotations

import argparse
import atexit
import hashlib
import json
import os
import shutil
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FunctionType

ONE_INPUT_SECONDS = 20
MOST_MEGABYTES = 3000
Mutator = Callable[[bytes, int, int], bytes]


def fuzz(
    target: Callable[[bytes], object],
    seeds: Iterable[bytes],
    modules: Iterable[str],
    *,
    allowed: tuple[type[Exception], ...] = (ValueError,),
    mutator: Mutator | None = None,
    max_len: int = 4096,
) -> None:
    """Run the fuzzer on a target, as the command line says; `run.py` calls it.

    ``modules`` are those whose branches count as coverage.
    """
    import atheris

    instrument(*modules)
    options = _options()
    folder = Path(options.folder)
    for raw in seeds:
        (folder / "corpus" / hashlib.sha1(raw).hexdigest()).write_bytes(raw)
    seen: set[str] = set()

    def once(raw: bytes) -> None:
        try:
            target(raw)
        except allowed as error:
            if "\n" in str(error):
                _note(folder, seen, error, raw, "told in more than one line")
        except Exception as error:
            _note(folder, seen, error, raw, "not allowed")

    arguments = [
        sys.argv[0],
        str(folder / "corpus"),
        f"-max_total_time={options.seconds}",
        f"-timeout={ONE_INPUT_SECONDS}",
        f"-rss_limit_mb={MOST_MEGABYTES}",
        f"-max_len={max_len}",
        f"-seed={options.seed}",
        f"-artifact_prefix={folder / 'crashes'}{os.sep}",
        "-print_final_stats=1",
        "-close_fd_mask=1",
    ]
    if mutator is None:
        atheris.Setup(arguments, once)
    else:
        atheris.Setup(arguments, once, custom_mutator=mutator)
    atheris.Fuzz()


def instrument(*modules: str) -> None:
    """Let the fuzzer see which branches of these modules, and of what they are in, inputs reach.

    Functions are changed after their import: an editable installation has a loader of its own, and
    what atheris does at import does not see through it.
    """
    import importlib

    import atheris

    for name in modules:
        module = importlib.import_module(name)
        for part in list(vars(module).values()):
            for function in vars(part).values() if isinstance(part, type) else [part]:
                function = getattr(function, "fget", None) or function
                function = getattr(function, "__func__", function)
                if isinstance(function, FunctionType) and function.__module__ == name:
                    atheris.instrument_func(function)


def on_disk(read: Callable[[str], object], ending: str = "") -> Callable[[bytes], object]:
    """A target that reads a file of these bytes."""
    memory = "/dev/shm"  # a folder in memory, where the system has one
    folder = tempfile.mkdtemp(prefix="crfx-fuzz-", dir=memory if os.path.isdir(memory) else None)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = os.path.join(folder, "input" + ending)

    def target(raw: bytes) -> object:
        with open(path, "wb") as file:
            file.write(raw)
        return read(path)

    return target


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", required=True)
    parser.add_argument("--seconds", type=int, required=True)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def _note(folder: Path, seen: set[str], error: Exception, raw: bytes, what: str) -> None:
    """Write a finding down, unless one of the same kind from the same place is known."""
    frames = traceback.extract_tb(error.__traceback__)
    own_frames = [frame for frame in frames if f"{os.sep}crfx{os.sep}" in frame.filename] or frames
    place = f"{Path(own_frames[-1].filename).name}:{own_frames[-1].lineno}" if own_frames else "?"
    key = f"{type(error).__name__} at {place}, {what}"
    if key in seen:
        return
    seen.add(key)
    name = hashlib.sha1(key.encode()).hexdigest()[:12]
    (folder / "findings" / name).write_bytes(raw)
    finding = {"what": key, "message": str(error)[:300], "input": raw[:200].hex()}
    (folder / "findings" / f"{name}.json").write_text(json.dumps(finding), encoding="utf-8")
