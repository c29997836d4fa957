"""What does a round of GBCRF cost beside a round of plain XGBoost, and how much memory?

Both grow trees from the same bins with the same settings; GBCRF adds inference (node and edge
steps). Beside it XGBoost is measured with the bins that it chooses itself. Every instruction set
of the processor is measured. Short runs take turns in one process, since XGBoost's threads, memory
and caches depend on their surroundings, though its code does not depend on the instruction set;
each figure is the fastest of all rounds. OCR letters, CoNLL-2003 and word vectors come from
$CRFX_DATA.

    python benchmarks/boosting.py                       # five minutes
    python benchmarks/boosting.py --sets avx2 --quick   # a first look

Writes reports/results/boosting.json and from it reports/boosting.md.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from instruction_sets import (
    NAMES,
    Target,
    answers,
    host_lines,
    in_child,
    in_turns,
    measured,
    parser_of,
    report,
    run_child,
)
from measuring import RESULTS, ROOT, peak_memory, say, verdict

from crfx import GBCRF
from crfx.datasets import load_ocr
from crfx.potentials.xgboost_learner import XGBoostLearner
from crfx.threads import thread_count
from reproduce.experiments import conll2003

LIMITS = {"avx512": 1.06, "avx2": 1.10}
TARGETS = (
    Target("ocr_6", "round on OCR, K = 26, depth 6, rounds of XGBoost", LIMITS),
    Target("ocr_10", "round on OCR, K = 26, depth 10, rounds of XGBoost", LIMITS),
    Target("conll_6", "round on CoNLL-2003, K = 9, depth 6, rounds of XGBoost", LIMITS),
)
PASSES, ROUNDS = 3, 6
RUNS = {"ocr_6": 2, "ocr_10": 2, "conll_6": 1}  # of each case in a pass
MOST_MEMORY = 3.0
MOST_DIFFERENCE = 1e-5
TARGET = RESULTS / "boosting.json"
PAGE = ROOT / "reports" / "boosting.md"


def ocr_task() -> tuple[list, list]:
    """Return all OCR letters."""
    letters = load_ocr()
    return letters.X, letters.y


def conll_task() -> tuple[list, list]:
    """Return the training sentences of CoNLL-2003, as vectors of three words."""
    train = conll2003.part(conll2003.load().train, conll2003.Options())
    return train.X, train.y


TASKS: dict[str, Callable[[], tuple[list, list]]] = {"ocr": ocr_task, "conll": conll_task}


def save_tasks(folder: Path) -> None:
    """Write the data once: all processes read the same arrays."""
    for name, task in TASKS.items():
        X, y = task()
        codes = np.unique(np.concatenate(y), return_inverse=True)[1]
        rows = np.concatenate(X).astype(np.float32)
        np.savez(
            folder / f"{name}.npz", rows=rows, codes=codes, lengths=[len(labels) for labels in y]
        )


def load_case(folder: str, case: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """Return rows, labels, lengths and the depth of a case."""
    name, _, depth = case.partition("_")
    arrays = np.load(Path(folder) / f"{name}.npz")
    return arrays["rows"], arrays["codes"], arrays["lengths"], int(depth)


def core(folder: str) -> dict[str, dict[str, float]]:
    """Measure both in the instruction set of this process: seconds of the fastest round."""
    result = {}
    for case, runs in RUNS.items():
        rows, codes, lengths, depth = load_case(folder, case)
        ours: list[float] = []
        theirs: list[float] = []
        own_bins: list[float] = []
        for _ in range(runs):
            same, other = same_bins(rows, codes), its_own_bins(rows, codes)
            theirs += xgboost_rounds(same, depth, ROUNDS)
            crf = GBCRF(ROUNDS, max_depth=depth, random_state=0)
            ours += crf.fit(rows, codes, lengths=lengths).history_["seconds"][1:]
            own_bins += xgboost_rounds(other, depth, ROUNDS)
        result[case] = {
            "ours": min(ours),
            "xgboost": min(theirs),
            "own_bins": min(own_bins),
            "share_of_bins": n_bins(other) / n_bins(same),
        }
    return result


def same_bins(rows: np.ndarray, codes: np.ndarray) -> Any:
    """Return a matrix with the bins of GBCRF."""
    matrix = XGBoostLearner(n_jobs=thread_count(None)).training_matrix(rows)
    matrix.set_label(codes)
    return matrix


def n_bins(matrix: Any) -> int:
    """Return the number of bins of all columns."""
    return len(matrix.get_quantile_cut()[1])


def its_own_bins(rows: np.ndarray, codes: np.ndarray) -> Any:
    """Return a matrix with the bins that XGBoost chooses."""
    import xgboost

    return xgboost.QuantileDMatrix(rows, codes, max_bin=256)


def xgboost_settings(n_classes: int, depth: int) -> dict[str, object]:
    """Return XGBoost's names of GBCRF's defaults."""
    return {
        "objective": "multi:softprob",
        "num_class": n_classes,
        "eta": 0.3,
        "max_depth": depth,
        "base_score": 0.0,
        "disable_default_eval_metric": True,
        "max_bin": 256,
    }


def xgboost_rounds(data: Any, depth: int, rounds: int) -> list[float]:
    """Return the seconds of every round but the first, which prepares."""
    import xgboost

    n_classes = int(data.get_label().max()) + 1
    booster = xgboost.Booster(xgboost_settings(n_classes, depth), [data])
    seconds = []
    for number in range(rounds):
        begin = time.perf_counter()
        booster.update(data, number)
        seconds.append(time.perf_counter() - begin)
    return seconds[1:]


def margins() -> dict[str, object]:
    """Measure how far GBCRF without edges lies from `multi:softprob`, on OCR."""
    import xgboost

    rounds = 20

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


def memory() -> dict[str, object]:
    """Measure the peak above the loaded input: 1 M positions, 50 float32 features, 10 labels."""
    random = np.random.default_rng(0)
    X = random.standard_normal((1_000_000, 50), dtype=np.float32)
    y = 3 * (X[:, 0] > 0) + 2 * (X[:, 1] > 0.5) + random.integers(0, 5, len(X))
    lengths = np.full(50_000, 20)
    GBCRF(1, max_depth=2).fit(X[:200], y[:200], lengths=[20] * 10)  # libraries are loaded
    before = peak_memory()
    GBCRF(3, max_depth=6, random_state=0).fit(X, y, lengths=lengths)
    return {"input": X.nbytes, "peak_above": peak_memory() - before, "labels": len(np.unique(y))}


def figure(key: str, ours: dict[str, Any], peers: dict[str, Any]) -> float:
    """Return a figure that has a target."""
    seconds = ours["seconds"][key]
    return seconds["ours"] / seconds["xgboost"]


def measure(sets: list[str], *, quick: bool) -> dict[str, Any]:
    """Measure everything."""
    with tempfile.TemporaryDirectory() as folder:
        save_tasks(Path(folder))
        result = in_turns(sets, 1 if quick else PASSES, "core", folder)
    result["sets"] = {isa: {"seconds": seconds} for isa, seconds in result["sets"].items()}
    say("memory and margins")
    once = {name: in_child(name) for name in ("memory", "margins")}
    return {"rounds": ROUNDS, **result, **once}


def page(result: dict[str, Any]) -> str:
    """Return the report, rendered from what was measured."""
    memory, margins = result["memory"], result["margins"]
    share = memory["peak_above"] / memory["input"]
    lines = [
        "# Boosting: what a round costs",
        "",
        *answers([(result, TARGETS)]),
        "",
        "One round of GBCRF (trees, and inference for the node and edge steps) beside one of "
        "XGBoost's `multi:softprob` on the same rows and bins with the same settings, on all "
        f"cores. Short runs of {result['rounds']} rounds take turns in one process; the fastest "
        "round of each but the first. XGBoost's code does not depend on the instruction set.",
        "",
        "*Its own bins*: XGBoost with the bins that it chooses itself, and how many those are, in "
        "shares of ours. Where some values are frequent, as in word vectors, XGBoost has fewer and "
        "its trees grow faster; GBCRF fills all `max_bin` bins ([decision "
        "0026](../docs/decisions/0026-bins.md)).",
        "",
        "| case | instruction set | GBCRF | XGBoost | ratio | its own bins | XGBoost | ratio |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for target in TARGETS:
        title = target.title.removeprefix("round on ").removesuffix(", rounds of XGBoost")
        for isa, figures in result["sets"].items():
            seconds = figures["seconds"][target.key]
            ours, theirs, own_bins = (seconds[key] for key in ("ours", "xgboost", "own_bins"))
            lines.append(
                f"| {title} | {NAMES[isa]} | {ours * 1e3:.0f} ms | {theirs * 1e3:.0f} ms | "
                f"{ours / theirs:.2f} | {seconds['share_of_bins']:.0%} | {own_bins * 1e3:.0f} ms | "
                f"{ours / own_bins:.2f} |"
            )
    lines += [
        "",
        "What GBCRF adds to a round: two passes of inference (node and edge steps), and passes "
        "over the gradient, curvature and score arrays, (rows × K) each.",
        "",
        "## Memory",
        "",
        "1 M positions × 50 float32 features × "
        f"{memory['labels']} labels, stacked: the peak of training lies "
        f"{memory['peak_above'] / 1e6:.0f} MB above the loaded input of "
        f"{memory['input'] / 1e6:.0f} MB, {share:.2f} times the input "
        f"(≤ {MOST_MEMORY:g}: {verdict(share <= MOST_MEMORY)}).",
        "",
        "## The same scores",
        "",
        "Without edges GBCRF is that softmax: after "
        f"{margins['rounds']} rounds on OCR (depth 6) the scores differ by at most "
        f"{margins['largest_difference']:.1e}, where the largest is "
        f"{margins['largest_margin']:.1f} (≤ {MOST_DIFFERENCE:g}: "
        f"{verdict(margins['largest_difference'] <= MOST_DIFFERENCE)}).",
        "",
        "Rendered by `benchmarks/boosting.py` from [results/boosting.json](results/boosting.json).",
        "",
        *host_lines(result, ("crfx", "numpy", "xgboost")),
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    """Measure, print, write."""
    if run_child({"core": core, "memory": memory, "margins": margins}):
        return
    arguments = parser_of(__doc__.splitlines()[0]).parse_args()

    def measure_all(sets: list[str], recorded: dict[str, Any]) -> dict[str, Any]:
        run = partial(measure, sets, quick=arguments.quick)
        return measured(sets, run, recorded, TARGETS, figure)

    report(arguments, TARGET, measure_all, PAGE, page)


if __name__ == "__main__":
    main()
