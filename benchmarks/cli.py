"""How good is a tagger from two commands, and how fast do commands answer?

Entities of CoNLL-2003 (in $CRFX_DATA): `crfx train` on eng.train with nothing but the file, then
`crfx eval` on eng.testa and eng.testb, for every model. Then the time of `crfx --help`, and of
`crfx tag` on ten lines, from the start of the process to its end.

    python benchmarks/cli.py                        # all, some twenty minutes
    python benchmarks/cli.py --models linear        # a part; the others stay as they were measured
    python benchmarks/cli.py --render               # only write the page anew

Writes reports/results/cli.json and from it reports/cli.md.
"""

from __future__ import annotations

import argparse
import gzip
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from measuring import (
    RESULTS,
    ROOT,
    command_line,
    fastest,
    host_line,
    machine,
    verdict,
    write_json,
    write_whole,
)

from crfx.datasets.conll2003 import find_conll2003

TARGET = RESULTS / "cli.json"
PAGE = ROOT / "reports" / "cli.md"
MODELS = ("linear", "hidden-unit", "gbcrf", "treecrf")
LEAST_F1, MOST_SECONDS_HELP, MOST_SECONDS_TAG = 0.84, 0.3, 1.5
REPEATS = 10


def crfx(*arguments: str) -> str:
    """Run a command as a user does; what it prints."""
    command = [sys.executable, "-m", "crfx", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def measure_model(name: str, folder: Path) -> dict[str, Any]:
    """Train with nothing but the file, and judge."""
    files = {part: str(find_conll2003(f"eng.{part}")) for part in ("train", "testa", "testb")}
    model = str(folder / f"{name}.crfx")
    begin = time.perf_counter()
    crfx("train", "--model", name, "--train", files["train"], "-o", model, "-q")
    seconds = time.perf_counter() - begin
    result: dict[str, Any] = {"seconds": seconds, "bytes": Path(model).stat().st_size}
    for part in ("testa", "testb"):
        evaluation = json.loads(crfx("eval", model, files[part], "--json"))
        result[part] = {"f1": evaluation["span"]["f1"], "accuracy": evaluation["accuracy"]}
    return result | {"tag_ten_lines": measure_tagging(model, files["testb"], folder)}


def measure_tagging(model: str, path: str, folder: Path) -> float:
    """Seconds of the process that tags the first ten lines that are tokens."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        tokens = [line for line in file if line.strip() and not line.startswith("-DOCSTART-")]
    few = folder / "ten.txt"
    few.write_text("".join(tokens[:10]), encoding="utf-8")
    return fastest({"tag": lambda: crfx("tag", model, str(few))}, REPEATS)["tag"]


def measure(models: list[str], before: dict[str, Any]) -> dict[str, Any]:
    """Measure the requested models, and the time of `crfx --help`."""
    begin = time.perf_counter()
    trained = dict(before.get("models", {}))
    with tempfile.TemporaryDirectory() as folder:
        for name in models:
            trained[name] = measure_model(name, Path(folder))
            print(name, trained[name], file=sys.stderr, flush=True)
    return {
        "command": command_line(),
        "machine": machine(),
        "help": fastest({"help": lambda: crfx("--help")}, REPEATS)["help"],
        "models": trained,
        "took": time.perf_counter() - begin,
    }


def page(result: dict[str, Any]) -> str:
    """Return the report, rendered from the measurements."""
    lines = [
        "# From a file to a tagger",
        "",
        "Rendered by `benchmarks/cli.py` from [results/cli.json](results/cli.json).",
        "",
        host_line(result, ("crfx", "numpy", "xgboost")),
        "",
        "CoNLL-2003, English entities. `crfx train --model … --train eng.train.gz -o m.crfx`, "
        "no other options: features of the default template, the command's defaults, no word "
        "lists, no vectors, no development file. Then `crfx eval m.crfx eng.testb.gz`. Settings "
        "were chosen on testa ([text-template.md](text-template.md)). Seconds of training are of "
        "the whole command.",
        "",
        "| model | testa F1 | testb F1 | testb tokens right | training | model file | "
        "tag ten lines |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, row in result["models"].items():
        tag = f"{row['tag_ten_lines']:.2f} s (≤ {MOST_SECONDS_TAG}): " + verdict(
            row["tag_ten_lines"] <= MOST_SECONDS_TAG
        )
        f1 = f"{100 * row['testb']['f1']:.2f}"
        if name == "linear":
            f1 += f" (≥ {100 * LEAST_F1:.0f}): {verdict(row['testb']['f1'] >= LEAST_F1)}"
        lines.append(
            f"| {name} | {100 * row['testa']['f1']:.2f} | {f1} | "
            f"{100 * row['testb']['accuracy']:.2f} % | {row['seconds']:.0f} s | "
            f"{row['bytes'] / 1e6:.1f} MB | {tag} |"
        )
    answered = verdict(result["help"] <= MOST_SECONDS_HELP)
    lines += [
        "",
        f"`crfx --help` answers in {result['help']:.2f} s (≤ {MOST_SECONDS_HELP}): {answered}.",
        "",
        f"Times are those of the whole process, the fastest of {REPEATS}.",
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--render", action="store_true", help="only write the page anew")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    arguments = parser.parse_args()
    if not arguments.render:
        before = json.loads(TARGET.read_text(encoding="utf-8")) if TARGET.exists() else {}
        write_json(TARGET, measure(arguments.models, before))
    text = page(json.loads(TARGET.read_text(encoding="utf-8")))
    write_whole(PAGE, text)
    print(text)


if __name__ == "__main__":
    main()
