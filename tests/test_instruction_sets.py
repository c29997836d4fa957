"""Benchmarks measure every instruction set of the processor in one run."""

import argparse
import importlib
import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def sets(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    yield importlib.import_module("instruction_sets")
    for name in ("instruction_sets", "measuring"):
        sys.modules.pop(name, None)


def test_lowest_takes_each_number_apart(sets):
    one, other = {"a": [1.0, 5], "b": "x"}, {"a": [2.0, 4], "b": "x"}
    assert sets.lowest(one, other) == {"a": [1.0, 4], "b": "x"}
    for one, other in (("x", "y"), ({"a": 1}, {"b": 1}), ([1], [1, 2]), (True, False)):
        with pytest.raises(ValueError, match="disagree"):
            sets.lowest(one, other)


def test_instruction_sets_take_turns_and_keep_minima(sets, monkeypatch):
    turns, seconds = [], iter([3.0, 9.0, 5.0, 8.0, 4.0, 2.0, 7.0])

    def in_child(task, *arguments, isa=None):
        turns.append((task, isa, arguments))
        return {"seconds": next(seconds)}

    monkeypatch.setattr(sets, "in_child", in_child)
    result = sets.in_turns(["avx512", "avx2"], 3, "core", 7, peers="peer", peer_passes=1)
    core = [isa for task, isa, _ in turns if task == "core"]
    assert core == ["avx512", "avx2", "avx2", "avx512", "avx512", "avx2"]
    assert [number for number, turn in enumerate(turns) if turn[0] == "peer"] == [2]
    assert turns[0] == ("core", "avx512", (7,))
    assert result == {
        "peers": {"seconds": 5.0},
        "sets": {"avx512": {"seconds": 2.0}, "avx2": {"seconds": 7.0}},
    }


CHILD = """
import json, sys
sys.path.insert(0, {folder!r})
from instruction_sets import available, in_turns, run_child

def core(word):
    from crfx._core import instruction_set
    print("chatter of a library")
    return {{"set": instruction_set(), "word": word}}

if not run_child({{"core": core}}):
    print(json.dumps([available(), in_turns(available(), 1, "core", "hello")]))
"""


def test_children_run_in_the_instruction_set_asked_for(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(CHILD.format(folder=str(BENCHMARKS))))
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    available, result = json.loads(done.stdout)
    assert available[-1] == "baseline"
    assert result["sets"] == {isa: {"set": isa, "word": "hello"} for isa in available}


def test_unknown_sets_are_rejected_with_those_that_there_are(sets, monkeypatch):
    monkeypatch.setattr(sets, "available", lambda: ["avx2", "baseline"])
    assert sets.sets_of("baseline,avx2") == ["avx2", "baseline"]
    with pytest.raises(argparse.ArgumentTypeError, match="no 'avx512'; choose from avx2,baseline"):
        sets.sets_of("avx2,avx512")


def test_figures_are_judged_as_they_are_shown(sets):
    target = sets.Target("key", "title", {"avx512": 1.06, "avx2": 1.1})
    assert target.cell("avx512", 1.064) == "1.06 (≤ 1.06: reached)"
    assert target.cell("avx512", 1.066) == "1.07 (≤ 1.06: **missed**)"
    assert target.cell("avx2", 1.066) == "1.07 (≤ 1.1: reached)"
    assert target.cell("baseline", 1.066) == "1.07"


TARGET_ROW = "| title | 4.00 (≥ 5: **missed**) | 2.00 |"


@pytest.fixture
def measured(sets, monkeypatch):
    """Measure a part in some sets, with seconds of its peer."""
    monkeypatch.setattr(sys, "argv", [str(BENCHMARKS / "inference.py")])
    targets = [sets.Target("key", "title", {"avx512": 5}, at_least=True)]

    def measure(isas, peer, recorded):
        def run():
            return {"peers": {"s": peer}, "sets": {isa: {"s": 1.0} for isa in isas}}

        def figure(key, seconds, peers):
            return peers["s"] / seconds["s"]

        return sets.measured(isas, run, recorded, targets, figure)

    return measure, targets


def test_sets_of_an_earlier_run_are_kept_with_its_peers(sets, measured):
    measure, targets = measured
    earlier = measure(["avx512", "avx2"], 4.0, {})
    part = measure(["avx2"], 2.0, earlier)
    assert part["figures"] == {"key": {"avx512": 4.0, "avx2": 2.0}}
    assert part["machine"]["instruction_sets"] == ["avx2"]
    assert sets.answers([(part, targets)])[2:] == [TARGET_ROW]
    lines = "\n".join(sets.host_lines(part, ("crfx",)))
    assert "AVX-512 as recorded earlier: *`python benchmarks/inference.py`" in lines
    again = measure(["avx2"], 3.0, part)
    assert again["figures"] == {"key": {"avx512": 4.0, "avx2": 3.0}}
    assert "earlier" not in measure(["avx512"], 6.0, again)["sets"]["avx512"]


def test_quick_runs_write_nothing(sets, measured, tmp_path, capsys):
    measure, _ = measured
    result, page = tmp_path / "result.json", tmp_path / "page.md"

    def report(**options):
        arguments = argparse.Namespace(render=False, sets=["avx2"], **options)
        sets.report(
            arguments,
            result,
            lambda isas, recorded: measure(isas, 2.0, recorded),
            page,
            lambda part: f"figure {part['figures']['key']['avx2']}",
        )

    report(quick=True)
    assert not result.exists()
    assert capsys.readouterr().out == "figure 2.0\n"
    report(quick=False)
    assert json.loads(result.read_text())["figures"] == {"key": {"avx2": 2.0}}
    assert page.read_text() == "figure 2.0"
