"""What does a round of GBCRF cost beside a round of plain XGBoost, and how much memory?

Both grow trees from the same matrix with the same settings; GBCRF adds inference (node and edge
steps). Short runs of both take turns in one process (round by round they would cool each other's
caches); each figure is the fastest of all rounds. OCR letters, CoNLL-2003 and word vectors come
from $CRFX_DATA.

    python benchmarks/boosting.py

Writes reports/results/boosting.json and from it reports/boosting.md.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time

import numpy as np
from measuring import (
    RESULTS,
    ROOT,
    command_line,
    machine,
    peak_memory,
    verdict,
    write_json,
    write_whole,
)

from crfx import GBCRF
from crfx.datasets import load_ocr
from crfx.report.experiments import conll2003

MOST_RATIO = 1.10
TURNS = 12
MOST_MEMORY = 3.0
MOST_DIFFERENCE = 1e-5
PAGE = ROOT / "reports" / "boosting.md"


def ocr_task() -> tuple[list, list]:
    """All OCR letters."""
    letters = load_ocr()
    return letters.X, letters.y


def conll_task() -> tuple[list, list]:
    """The sentences that CoNLL-2003 trains on, as vectors of three words."""
    train = conll2003.part(conll2003.load().train, conll2003.Options())
    return train.X, train.y


CASES = (
    ("OCR, K = 26, depth 6", ocr_task, 6),
    ("OCR, K = 26, depth 10", ocr_task, 10),
    ("CoNLL-2003, K = 9, depth 6", conll_task, 6),
)


def one_case(index: int, rounds: int) -> dict[str, object]:
    """Seconds of the fastest round of both, in this process; they take turns run by run."""
    name, task, depth = CASES[index]
    X, y = task()
    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(TURNS):
        theirs += xgboost_rounds(X, y, depth, rounds)
        ours += GBCRF(rounds, max_depth=depth, random_state=0).fit(X, y).history_["seconds"][1:]
    return {
        "case": name,
        "ours": min(ours),
        "theirs": min(theirs),
        "median_ratio": float(np.median(ours) / np.median(theirs)),
        "rounds": rounds,
        "turns": TURNS,
    }


def xgboost_settings(n_classes: int, depth: int) -> dict[str, object]:
    """What GBCRF's defaults are called there."""
    return {
        "objective": "multi:softprob",
        "num_class": n_classes,
        "eta": 0.3,
        "max_depth": depth,
        "base_score": 0.0,
        "disable_default_eval_metric": True,
        "max_bin": 256,
    }


def xgboost_rounds(X: list, y: list, depth: int, rounds: int) -> list[float]:
    """Seconds of every round but the first, which prepares."""
    import xgboost

    classes, codes = np.unique(np.concatenate(y), return_inverse=True)
    data = xgboost.QuantileDMatrix(np.concatenate(X), codes, max_bin=256)
    booster = xgboost.Booster(xgboost_settings(len(classes), depth), [data])
    seconds = []
    for number in range(rounds):
        begin = time.perf_counter()
        booster.update(data, number)
        seconds.append(time.perf_counter() - begin)
    return seconds[1:]


def one_margins(rounds: int) -> dict[str, object]:
    """How far the scores of GBCRF without edges lie from those of `multi:softprob`, on OCR."""
    import xgboost

    X, y = ocr_task()
    crf = GBCRF(rounds, max_depth=6, edges=None, random_state=0).fit(X, y)
    rows, codes = np.concatenate(X), np.searchsorted(crf.classes_, np.concatenate(y))
    settings = xgboost_settings(len(crf.classes_), 6)
    booster = xgboost.train(settings, xgboost.QuantileDMatrix(rows, codes, max_bin=256), rounds)
    theirs = booster.predict(xgboost.DMatrix(rows), output_margin=True)
    ours = crf.model_.node.scores(rows, len(rows))
    return {
        "rounds": rounds,
        "largest_difference": float(np.abs(ours - theirs).max()),
        "largest_margin": float(np.abs(theirs).max()),
    }


def one_memory(rounds: int) -> dict[str, object]:
    """Peak memory above the loaded input: 1 M positions, 50 float32 features, 10 labels."""
    random = np.random.default_rng(0)
    X = random.standard_normal((1_000_000, 50), dtype=np.float32)
    y = 3 * (X[:, 0] > 0) + 2 * (X[:, 1] > 0.5) + random.integers(0, 5, len(X))
    lengths = np.full(50_000, 20)
    GBCRF(1, max_depth=2).fit(X[:200], y[:200], lengths=[20] * 10)  # libraries are loaded
    before = peak_memory()
    GBCRF(rounds, max_depth=6, random_state=0).fit(X, y, lengths=lengths)
    return {"input": X.nbytes, "peak_above": peak_memory() - before, "labels": len(np.unique(y))}


def in_new_process(*arguments: str) -> dict[str, object]:
    asked = [sys.executable, __file__, *arguments]
    return json.loads(subprocess.run(asked, stdout=subprocess.PIPE, text=True, check=True).stdout)


def page(result: dict) -> str:
    """The report, rendered from what was measured."""
    host, memory, margins = result["machine"], result["memory"], result["margins"]
    versions = ", ".join(f"{name} {v}" for name, v in host["versions"].items() if v)
    share = memory["peak_above"] / memory["input"]
    lines = [
        "# Boosting: what a round costs",
        "",
        "Rendered by `benchmarks/boosting.py` from [results/boosting.json](results/boosting.json); "
        f"command: `{result['command']}`.",
        "",
        f"Machine: {host['processor']}, {host['cores']} cores, {host['instruction_set']}; "
        f"{host['system']}, Python {host['python']}; {versions}; commit {host['commit']}, "
        f"{host['date']}.",
        "",
        "One round of GBCRF (trees, and inference for the node and edge steps) beside one of "
        "XGBoost's `multi:softprob` on the same rows with the same settings, short runs taking "
        "turns; the fastest round of each, and the ratio of the medians.",
        "",
        f"| case | GBCRF | XGBoost | ratio (≤ {MOST_RATIO}) | of medians |",
        "|---|---|---|---|---|",
    ]
    for row in result["rounds"]:
        ratio = row["ours"] / row["theirs"]
        lines.append(
            f"| {row['case']} | {row['ours'] * 1e3:.0f} ms | {row['theirs'] * 1e3:.0f} ms | "
            f"{ratio:.2f}: {verdict(ratio <= MOST_RATIO)} | {row['median_ratio']:.2f} |"
        )
    lines += [
        "",
        "What GBCRF adds to a round: two passes of inference (node and edge steps), and passes "
        "over the gradient, curvature and score arrays, (rows × K) each.",
        "",
        "Memory: 1 M positions × 50 float32 features × "
        f"{memory['labels']} labels, stacked: the peak of training lies "
        f"{memory['peak_above'] / 1e6:.0f} MB above the loaded input of "
        f"{memory['input'] / 1e6:.0f} MB, {share:.2f} times the input "
        f"(≤ {MOST_MEMORY:g}: {verdict(share <= MOST_MEMORY)}).",
        "",
        "Without edges GBCRF is that softmax: after "
        f"{margins['rounds']} rounds on OCR (depth 6) the scores differ by at most "
        f"{margins['largest_difference']:.1e}, where the largest is "
        f"{margins['largest_margin']:.1f} (≤ {MOST_DIFFERENCE:g}: "
        f"{verdict(margins['largest_difference'] <= MOST_DIFFERENCE)}).",
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=6, help="rounds of a run (%(default)s)")
    parser.add_argument("--render", action="store_true", help="only write the page anew")
    parser.add_argument("--one-case", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--one-memory", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--one-margins", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one_case is not None:
        print(json.dumps(one_case(arguments.one_case, arguments.rounds)))
        return
    if arguments.one_memory:
        print(json.dumps(one_memory(3)))
        return
    if arguments.one_margins:
        print(json.dumps(one_margins(20)))
        return
    target = RESULTS / "boosting.json"
    if not arguments.render:
        rounds = ["--rounds", str(arguments.rounds)]
        result = {
            "command": command_line(),
            "machine": machine(),
            "rounds": [
                in_new_process("--one-case", str(index), *rounds) for index in range(len(CASES))
            ],
            "memory": in_new_process("--one-memory"),
            "margins": in_new_process("--one-margins"),
        }
        write_json(target, result)
    text = page(json.loads(target.read_text(encoding="utf-8")))
    write_whole(PAGE, text)
    print(text)


if __name__ == "__main__":
    main()
