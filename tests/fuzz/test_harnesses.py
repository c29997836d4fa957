"""The harnesses try what they are meant to: their seeds are valid, and the checks can fail."""

import importlib.util
import json
import random
import runpy
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
NAMES = sorted(path.stem for path in HERE.glob("fuzz_*.py"))
HELPERS = ("harness", "texts", "zips")


@pytest.fixture
def beside(monkeypatch):
    """Harnesses import what lies beside them, as programs do."""
    monkeypatch.syspath_prepend(str(HERE))
    yield
    for name in HELPERS:
        sys.modules.pop(name, None)


@pytest.fixture
def helper(beside):
    return lambda name: __import__(name)


@pytest.mark.parametrize("name", NAMES)
def test_harness_takes_its_seeds_and_rejects_broken_ones(beside, name):
    """Seeds cut in two, and bytes that are nothing: ValueError, or fine, and nothing else."""
    harness = runpy.run_path(str(HERE / f"{name}.py"))
    for module in harness["MODULES"]:  # in which coverage is counted
        assert importlib.util.find_spec(module) is not None
    for raw in harness["SEEDS"]:
        harness["TARGET"](raw)
    n_rejected = 0
    for raw in [*(raw[: len(raw) // 2] for raw in harness["SEEDS"]), b"\xff\xfe", b"\0" * 40]:
        try:
            harness["TARGET"](raw)
        except ValueError:
            n_rejected += 1
    assert n_rejected


def test_findings_are_written_down_once(helper, tmp_path):
    note, seen = helper("harness")._note, set()
    (tmp_path / "findings").mkdir()
    for _ in range(2):
        try:
            json.dumps(object())
        except TypeError as error:
            note(tmp_path, seen, error, b"input", "not allowed")
    (written,) = (tmp_path / "findings").glob("*.json")
    assert "TypeError" in json.loads(written.read_text(encoding="utf-8"))["what"]
    assert written.with_suffix("").read_bytes() == b"input"


def test_mutated_zips_are_zips(helper):
    """Nine in ten can be opened: their checksums are right."""
    zips, seed = helper("zips"), (HERE.parent / "saved_models" / "gbcrf-1.crfx").read_bytes()
    change = zips.mutator(lambda raw, size: raw[::-1][:size], [seed])
    result = [change(seed, 1 << 15, number) for number in range(100)]
    whole = [raw for raw in result if zips.unpacked(raw)]
    assert len(whole) > 80
    assert len({*result}) > 50


def test_mutated_trees_are_documents(beside):
    from crfx.potentials import ubjson

    harness = runpy.run_path(str(HERE / "fuzz_trees.py"))
    chance, decoded = random.Random(0), 0
    for number in range(100):
        raw = chance.choice(harness["SEEDS"])
        changed = harness["mutated"](raw, 1 << 15, number, lambda raw, size: raw[:size])
        ubjson.decode(changed[2:])
        decoded += changed != raw
    assert decoded > 60


def test_the_page_tells_what_was_found(helper):
    run = runpy.run_path(str(HERE / "run.py"))
    record = {"command": "c", "minutes": 1.0, "executions": 1000, "coverage": 5, "corpus": 2}
    record |= {"peak_mb": 70, "python": "3", "versions": {"crfx": "0"}, "commit": "x", "date": "d"}
    crash = {"what": "crash", "message": "", "input": ""}
    page = run["page"]({"conll": record | {"findings": [crash]}})
    assert "| conll | 1.0 | 1,000 | 5 | 2 | 70 | crash |" in page
    assert "| none |" in run["page"]({"conll": record | {"findings": []}})
