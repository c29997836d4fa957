"""Measure a benchmark in every instruction set of the processor, in one run.

A process chooses the core's instruction set once, by the environment variable CRFX_ISA. So a
benchmark runs its tasks in child processes, `SCRIPT --child TASK ARGUMENT...`, which print their
figures as JSON. The sets and the peers take turns in several passes, so that a slow stretch of the
machine hits all of them, and the smallest figures count.

A part of a result that is measured so has these keys:

- command, machine, took: how, where and how long;
- peers: what does not depend on the instruction set;
- sets: the same task by instruction set. A set that this run did not measure is kept from an
  earlier one, with the `command`, `machine`, `took` and `peers` of that run under `earlier`;
- figures: what has a target, by key of the target and instruction set.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from measuring import command_line, host_line, machine, say, verdict, write_json, write_whole

SETS = ("avx512", "avx2", "baseline")
NAMES = {"avx512": "AVX-512", "avx2": "AVX2", "baseline": "baseline"}
CHILD = "--child"
Figures = dict[str, dict[str, float]]
Figure = Callable[[str, dict[str, Any], dict[str, Any]], float]


def available() -> list[str]:
    """Return the instruction sets that this processor has, the widest first."""
    code = "from crfx._core import instruction_set; print(instruction_set())"
    sets = []
    for isa in SETS:
        asked = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "CRFX_ISA": isa},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        if asked.stdout.strip() == isa:  # others fall back to the next below
            sets.append(isa)
    return sets


def sets_of(text: str) -> list[str]:
    """Return the instruction sets named in an option."""
    has, named = available(), text.split(",")
    for isa in named:
        if isa not in has:
            raise argparse.ArgumentTypeError(
                f"the processor has no {isa!r}; choose from {','.join(has)}"
            )
    return [isa for isa in SETS if isa in named]


def parser_of(description: str) -> argparse.ArgumentParser:
    """Return a parser with the options that these benchmarks share."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument(
        "--sets",
        type=sets_of,
        help="instruction sets to measure, for example avx2,avx512 (default: all of the processor)",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="few repeats, for a first look: prints the page and writes no file",
    )
    parser.add_argument("--render", action="store_true", help="only write the page anew")
    return parser


def run_child(tasks: Mapping[str, Callable[..., Any]]) -> bool:
    """Run the task that the parent process asks for; return False in the parent itself."""
    if sys.argv[1:2] != [CHILD]:
        return False
    name, *arguments = sys.argv[2:]
    print(json.dumps(tasks[name](*arguments)))
    return True


def in_child(task: str, *arguments: object, isa: str | None = None) -> Any:
    """Return what a task prints, run in a new process with an instruction set."""
    asked = [sys.executable, "-W", "ignore", sys.argv[0], CHILD, task, *map(str, arguments)]
    environment = os.environ | ({"CRFX_ISA": isa} if isa else {})
    done = subprocess.run(asked, stdout=subprocess.PIPE, text=True, check=True, env=environment)
    return json.loads(done.stdout.splitlines()[-1])


def lowest(one: Any, other: Any) -> Any:
    """Return the smaller of both, number by number; what is no number must be equal.

    >>> lowest({"seconds": [2.0, 5.0], "name": "a"}, {"seconds": [3.0, 4.0], "name": "a"})
    {'seconds': [2.0, 4.0], 'name': 'a'}
    """
    if isinstance(one, dict) and one.keys() == other.keys():
        return {key: lowest(one[key], other[key]) for key in one}
    if isinstance(one, list) and len(one) == len(other):
        return [lowest(a, b) for a, b in zip(one, other, strict=True)]
    if isinstance(one, int | float) and not isinstance(one, bool):
        return min(one, other)
    if one != other:
        raise ValueError(f"runs of a task disagree: {one!r} and {other!r}")
    return one


def in_turns(
    sets: Sequence[str],
    passes: int,
    task: str,
    *arguments: object,
    peers: str | None = None,
    peer_passes: int | None = None,
) -> dict[str, Any]:
    """Run a task in every instruction set, and one of the peers, in turns.

    Parameters
    ----------
    sets
        Instruction sets.
    passes
        How often each runs the task; every pass begins with another one.
    task, arguments
        What `run_child` runs.
    peers
        A task with the same arguments that measures the peers.
    peer_passes
        Passes in which the peers take part, the first ones; None for all.
    """
    fastest: dict[str, Any] = {}
    for number in range(passes):
        turns = list(sets)
        if peers is not None and (peer_passes is None or number < peer_passes):
            turns.append("peers")
        first = number % len(turns)
        for name in turns[first:] + turns[:first]:
            say(f"{task}, pass {number + 1} of {passes}: {name}")
            if name == "peers":
                figures = in_child(str(peers), *arguments)
            else:
                figures = in_child(task, *arguments, isa=name)
            fastest[name] = lowest(fastest[name], figures) if name in fastest else figures
    return {"peers": fastest.pop("peers", {}), "sets": {isa: fastest[isa] for isa in sets}}


def measured(
    sets: Sequence[str],
    measure: Callable[[], dict[str, Any]],
    recorded: Mapping[str, Any],
    targets: Iterable[Target],
    figure: Figure,
) -> dict[str, Any]:
    """Return a part of a result: what ``measure`` returns, how long it took, and where.

    Parameters
    ----------
    sets
        Instruction sets that are measured.
    measure
        Returns `in_turns`, and what else belongs to the part.
    recorded
        The part of an earlier run, or an empty dict: its other sets are kept.
    targets, figure
        ``figure(key, own, peers)`` is the figure of a target, from what was measured in a set.
    """
    part: dict[str, Any] = {"command": command_line(), "machine": machine(sets)}
    begin = time.perf_counter()
    result = measure()
    part |= {"took": time.perf_counter() - begin} | result
    part["sets"] = with_earlier(part, recorded)
    part["figures"] = figures_of(part, targets, figure)
    say(f"took {part['took']:.0f} s")
    return part


def report(
    arguments: argparse.Namespace,
    target: Path,
    measure: Callable[[list[str], dict[str, Any]], dict[str, Any]],
    place: Path,
    page: Callable[[dict[str, Any]], str],
) -> None:
    """Measure as the options ask, write the result and the page, and print the page.

    Parameters
    ----------
    target, place
        Files of the result and of the page.
    measure
        Returns the new result, from the sets to measure and the recorded result.
    page
        Renders a result.
    """
    result = json.loads(target.read_text(encoding="utf-8")) if target.exists() else {}
    if not arguments.render:
        result = measure(arguments.sets or available(), result)
    text = page(result)
    if not arguments.quick:
        write_json(target, result)
        write_whole(place, text)
    print(text)


def report_parts(
    arguments: argparse.Namespace,
    parts: Sequence[str],
    target: Path,
    measure: Callable[[str, list[str], dict[str, Any]], dict[str, Any]],
    place: Path,
    page: Callable[[dict[str, Any]], str],
) -> None:
    """Do the same for a result of several parts, of which some are measured.

    ``measure`` returns a part, from its name, the sets and the result so far.
    """

    def measure_all(sets: list[str], result: dict[str, Any]) -> dict[str, Any]:
        for part in parts:
            result = result | {part: measure(part, sets, result)}
            if not arguments.quick:
                write_json(target, result)  # what follows may fail
        return {part: result[part] for part in parts} if arguments.quick else result

    report(arguments, target, measure_all, place, page)


def with_earlier(part: dict[str, Any], recorded: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sets of a part, and those that only an earlier record has."""
    sets = dict(part["sets"])
    for isa, figures in recorded.get("sets", {}).items():
        if isa not in sets:
            kept = {key: recorded[key] for key in ("command", "machine", "took", "peers")}
            sets[isa] = {"earlier": kept} | figures
    return {isa: sets[isa] for isa in SETS if isa in sets}


def peers_of(part: Mapping[str, Any], isa: str) -> dict[str, Any]:
    """Return the figures of the peers that were measured beside a set."""
    peers: dict[str, Any] = part["sets"][isa].get("earlier", part)["peers"]
    return peers


def figures_of(part: Mapping[str, Any], targets: Iterable[Target], figure: Figure) -> Figures:
    """Return the figures that have targets, by key and instruction set."""
    return {
        target.key: {
            isa: figure(target.key, ours, peers_of(part, isa)) for isa, ours in part["sets"].items()
        }
        for target in targets
    }


@dataclass(frozen=True)
class Target:
    """A figure that has a limit in some instruction sets."""

    key: str
    title: str
    limits: Mapping[str, float]
    at_least: bool = False
    digits: int = 2

    def cell(self, isa: str, value: float) -> str:
        """Return a figure, as it is shown and judged."""
        shown = f"{value:.{self.digits}f}"
        if isa not in self.limits:
            return shown
        limit = self.limits[isa]
        reached = float(shown) >= limit if self.at_least else float(shown) <= limit
        return f"{shown} ({'≥' if self.at_least else '≤'} {limit:g}: {verdict(reached)})"


def everywhere(limit: float) -> dict[str, float]:
    """Return the same limit for all instruction sets."""
    return dict.fromkeys(SETS, limit)


def answers(parts: Iterable[tuple[Mapping[str, Any], Iterable[Target]]]) -> list[str]:
    """Return a table: a row for every target, a column for every instruction set."""
    parts = [(part, list(targets)) for part, targets in parts]
    sets = [isa for isa in SETS if any(isa in part["sets"] for part, _ in parts)]
    lines = [
        "| task | " + " | ".join(NAMES[isa] for isa in sets) + " |",
        "|---" * (len(sets) + 1) + "|",
    ]
    for part, targets in parts:
        for target in targets:
            figures = part["figures"][target.key]
            cells = [target.cell(isa, figures[isa]) if isa in figures else "–" for isa in sets]
            lines.append("| " + " | ".join([target.title, *cells]) + " |")
    return lines


def host_lines(part: Mapping[str, Any], named: tuple[str, ...]) -> list[str]:
    """Return where and when a part was measured, and the sets that an earlier run measured."""
    lines = [host_line(dict(part), named)]
    for isa, figures in part["sets"].items():
        if "earlier" in figures:
            lines += [
                "",
                f"{NAMES[isa]} as recorded earlier: {host_line(figures['earlier'], named)}",
            ]
    return lines
