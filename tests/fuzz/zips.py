"""Mutations of zip files that keep them whole: members are changed and packed again.

Checksums would else stop nearly every input at the door.
"""

from __future__ import annotations

import io
import json
import random
import zipfile
from collections.abc import Callable
from typing import Any

ODD = [None, "", "x", -1, 0, 1, 2, 10**30, 1e300, 0.5, True, False, [], {}, [1], {"a": 1}, 2**40]
SIGNS = b"()[]{}'\",:<>OVSUL0123456789 \n\\-\x00\xff"


def unpacked(raw: bytes) -> dict[str, bytes]:
    """Members by name; none where the bytes are no zip."""
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            return {name: archive.read(name) for name in archive.namelist()}
    except Exception:
        return {}


def packed(members: dict[str, bytes]) -> bytes:
    """A zip of members."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, raw in members.items():
            archive.writestr(zipfile.ZipInfo(name), raw)
    return buffer.getvalue()


def mutator(mutate: Callable[[bytes, int], bytes], seeds: list[bytes]) -> Any:
    """A custom mutator: one member at a time, of JSON one value, now and then the zip itself."""

    def change(raw: bytes, max_size: int, seed: int) -> bytes:
        chance = random.Random(seed)
        if chance.random() < 0.1:
            return mutate(raw, max_size)
        members = unpacked(raw) or unpacked(chance.choice(seeds))
        for _ in range(chance.choice([1, 1, 1, 2, 3])):
            name = chance.choice(list(members))
            members[name] = _changed(name, members[name], chance, mutate)
        if chance.random() < 0.05:
            members.pop(chance.choice(list(members)))
        if chance.random() < 0.05:
            other = unpacked(chance.choice(seeds))
            name = chance.choice(list(other))
            members[name] = other[name]
        return packed(members or unpacked(seeds[0]))[:max_size]

    return change


def _changed(
    name: str, raw: bytes, chance: random.Random, mutate: Callable[[bytes, int], bytes]
) -> bytes:
    if name.endswith(".json") and chance.random() < 0.8:
        try:
            return json.dumps(_odd(json.loads(raw), chance)).encode()
        except (ValueError, RecursionError):
            return raw
    if name.endswith(".npy") and len(raw) > 10 and chance.random() < 0.3:  # its header
        at = chance.randrange(10, min(len(raw), 90))
        return raw[:at] + bytes([chance.choice(SIGNS)]) + raw[at + 1 :]
    return mutate(raw, 2 * len(raw) + 16)


def _odd(values: Any, chance: random.Random) -> Any:
    """The values with one of them, anywhere, replaced, taken away, doubled or moved."""
    at = values
    while True:
        keys = list(at) if isinstance(at, dict) else list(range(len(at)))
        if not keys:
            return values
        key = chance.choice(keys)
        if isinstance(at[key], dict | list) and at[key] and chance.random() < 0.8:
            at = at[key]
            continue
        break
    move = chance.random()
    if move < 0.6:
        at[key] = chance.choice(ODD)
    elif move < 0.75:
        del at[key]
    elif move < 0.9 and isinstance(at[key], int | float) and not isinstance(at[key], bool):
        at[key] += chance.choice([-1, 1, 0.5, 1000])
    else:
        at[key] = at[chance.choice(keys)]
    return values
